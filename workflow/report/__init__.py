"""The sections of the report page, from the files of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_text
from benchmarks.papers.artefacts import Artefact, all_artefacts
from benchmarks.papers.spec import load_paper
from benchmarks.records.results import Results
from benchmarks.render.figure import NOTHING
from benchmarks.render.report import (
    Section,
    audit_section,
    drawing,
    fragment,
    has_rows,
    papers_section,
    render,
    truth_section,
)
from methods.controls import Oracle
from workflow.runtime import provenance


def build(folder: Path, papers: Mapping[str, str], output: Path) -> None:
    """Write the page of the run in ``folder``; ``papers`` are folders of the user's own."""
    results = Results(folder)
    truth = truth_section(results.cells, leave_out=[Oracle.name])
    sections = [
        *artefact_sections(papers),
        *([truth] if truth is not None else []),
        papers_section(pd.read_csv(folder / "compare/summary.csv")),
        audit_section(pd.read_csv(folder / "audit.csv")),
    ]
    commit = provenance.commit()
    facts = {
        "commit": (commit["commit"] or "unknown")[:12] + (" + changes" if commit["dirty"] else ""),
        "machine": provenance.node()["cpu"],
        **{k: v for k, v in provenance.versions().items() if v},
    }
    write_text(output, render(results.cells, results.runs, sections, facts))


def artefact_sections(papers: Mapping[str, str]) -> list[Section]:
    """What the papers declare, by section; a paper's own where its artefacts name none."""
    found: dict[str, tuple[Section, list[Artefact]]] = {}
    for paper, declared in all_artefacts(papers).items():
        for artefact in declared:
            section = artefact.section or Section(
                paper,
                load_paper(paper, papers).title,
                "The paper's tables and figures redrawn for the datasets of this run.",
            )
            found.setdefault(section.key, (section, []))[1].append(artefact)
    return [replace(section, body=_body(artefacts)) for section, artefacts in found.values()]


def _body(artefacts: Iterable[Artefact]) -> str:
    """Tables, then figures, without empty ones; those of one fold share a closed block."""
    files = {artefact: Path(artefact.files[0]) for artefact in artefacts}
    shown = [artefact for artefact, path in files.items() if has_rows(path.with_suffix(".csv"))]
    order = {"table": 0, "figure": 1}
    parts = []
    for fold, group in groupby(sorted(shown, key=lambda a: order[a.kind]), key=lambda a: a.fold):
        body = "".join(
            drawing(files[a], a.caption) if a.kind == "figure" else fragment(files[a])
            for a in group
        )
        parts.append(f"<details><summary>{fold}</summary>{body}</details>" if fold else body)
    return "".join(parts) or f"<p>{NOTHING.capitalize()}.</p>"
