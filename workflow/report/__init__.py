"""The report page of a run, from its files: what is read, and how the parts are put together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common.atomic import write_text
from benchmarks.data.prepared import read_meta
from benchmarks.evaluation.conventions import CONVENTIONS, DEFAULT
from benchmarks.papers.artefacts import DATASETS, Artefact, all_artefacts
from benchmarks.papers.spec import load_papers
from benchmarks.papers.verdict_view import findings_of, paper_view, printed_at
from benchmarks.papers.verdicts import DOES_NOT_FOLLOW, IMPOSSIBLE
from benchmarks.records.bins import read_bins
from benchmarks.records.cell import PLAIN, RECORD, Cell, Setup
from benchmarks.records.files import read_record
from benchmarks.records.labels import read_labels
from benchmarks.records.results import Results
from benchmarks.records.summary import Summary
from benchmarks.render.charts import palette, script, specifications
from benchmarks.render.page import render_page
from benchmarks.render.report import drawing, fragment, has_rows, truth_section
from benchmarks.render.views import answer, cost, passport, quality, tail
from benchmarks.render.views.numbers import data
from methods.controls import Oracle, Popularity, Random
from workflow.planning.actual import planned_seconds
from workflow.planning.laws import spread_of
from workflow.report.commands import command_of, commands_for
from workflow.runtime import provenance

CONTROLS = (Oracle.name, Popularity.name, Random.name)


@dataclass(frozen=True)
class Run:
    """What the page is told of the run beside its files.

    ``papers`` are folders of the user's own papers, ``own_data`` the names of the user's own
    datasets, ``configfiles`` what the run was started with.
    """

    folder: Path
    papers: Mapping[str, str]
    own_data: Sequence[str] = ()
    configfiles: Sequence[str] = ()

    @cached_property
    def results(self) -> Results:
        """The files of the run."""
        return Results(self.folder)

    @cached_property
    def summary(self) -> Summary:
        """Everything measured, by setup."""
        bins = read_bins(self.folder / "bins.csv")
        return Summary(self.results.cells, self.results.intervals, bins)

    @cached_property
    def datasets(self) -> list[str]:
        """The datasets of the run's cells."""
        return list(dict.fromkeys(setup.dataset for setup in self.summary.setups))

    @property
    def is_own(self) -> bool:
        """Whether every dataset is the user's: no paper has anything to say on it."""
        return bool(self.datasets) and set(self.datasets) <= set(self.own_data)

    @cached_property
    def labels(self) -> dict[str, pd.DataFrame]:
        """Per-label results by dataset."""
        return {name: read_labels(self.folder / f"labels/{name}.csv") for name in self.datasets}

    @cached_property
    def records(self) -> dict[Cell, dict[str, Any]]:
        """The ``run.json`` of every cell."""
        cells = [cell for seeds in self.summary.seeds.values() for cell in seeds]
        return {cell: read_record(cell.file(RECORD, self.folder).parent) for cell in cells}

    @cached_property
    def planned(self) -> dict[Cell, float]:
        """CPU seconds that a cell was expected to take, compiling apart."""
        metas = {name: read_meta(self.folder / "data" / name) for name in self.datasets}
        return planned_seconds(self.records, metas)

    def id_of(self, setup: Setup) -> str:
        """The setup's name in the page's data and anchors."""
        return f"s{self._numbers[setup]}"

    def id_or_none(self, setup: Setup) -> str | None:
        """The same, None for a setup that this run has not."""
        return self.id_of(setup) if setup in self._numbers else None

    @cached_property
    def _numbers(self) -> dict[Setup, int]:
        return {setup: number for number, setup in enumerate(self.summary.setups)}


def build(run: Run, output: Path) -> None:
    """Write the page of a run."""
    write_text(output, render(run))


def render(run: Run) -> str:
    """The page as one HTML file that needs nothing else."""
    summary, ids = run.summary, run.id_of
    papers = {} if run.is_own else _papers(run)
    sentences = answer.sentences(summary, ids)
    truth = truth_section(run.results.cells, leave_out=[Oracle.name])
    views = papers.get("views", [])
    rows = answer.method_rows(summary, ids, DEFAULT, printed_at(views), CONTROLS)
    ks = answer.cutoffs(summary)
    costs = cost.cost_rows(summary, run.results.runs, run.planned, ids)
    return render_page(
        "report",
        run=run,
        status=dict(run.results.runs["status"].value_counts()),
        n_cells=len(run.results.runs),
        sentences=sentences,
        kinds=answer.KINDS,
        columns=answer.columns(summary),
        rows=rows,
        headlines={kind: summary.headline(kind) for kind in ("PS", "vanilla")},
        papers=papers,
        definitions=tail.definitions(run.labels),
        bin_names=tail.NAMES,
        tail_metric=f"P@{ks[-1]}" if ks else "P@5",
        tail_tables=tail.TABLES,
        truth=truth,
        costs=costs,
        plan_error=_plan_error(costs),
        checks=quality.checks(summary, run.results.runs, ids, CONTROLS, Popularity.name),
        data_section=_data_section(run),
        conventions=_conventions(summary),
        default_convention=DEFAULT,
        facts=_facts(),
        page_data=data(_page_data(run, sentences)),
        vega=script(),
        plain_word=PLAIN,
    )


def _page_data(run: Run, sentences: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the page's script draws from."""
    summary, ids = run.summary, run.id_of
    setups = summary.setups
    # Those with variants come first: there are more bases than colours, and these are compared.
    compared = [s.base for s in setups if s.variant != PLAIN]
    bases = list(dict.fromkeys([*compared, *(s.base for s in setups)]))
    variants = list(dict.fromkeys(s.variant for s in setups))
    fits = {row["id"]: row for row in cost.cost_rows(summary, run.results.runs, {}, ids)}
    return {
        "setups": {
            ids(s): {**s._asdict(), "cells": [cell.path for cell in summary.seeds[s]]}
            for s in setups
        },
        "order": [ids(s) for s in setups],
        "plain": PLAIN,
        "values": {ids(s): own for s, own in summary.values.items()},
        "intervals": {
            ids(s): {
                name: [estimate.low, estimate.high, estimate.seeds]
                for name in summary.values.get(s, {}).get(DEFAULT, {})
                if (estimate := summary.value(s, name)).known
            }
            for s in setups
        },
        "bins": tail.binned(summary, ids),
        "binNames": list(tail.NAMES),
        "norms": tail.norms(run.labels, ids),
        "moved": tail.moved_labels(run.labels, ids),
        "headline": answer.headline_points(summary, ids),
        "fit": {
            name: [row["numbers"]["fit"], row["texts"]["fit"], row["texts"]["memory"]]
            for name, row in fits.items()
        },
        "runs": {
            cell.path: passport.passport(
                record, run.planned.get(cell, math.nan), command_of(cell, run.configfiles)
            )
            for cell, record in run.records.items()
        },
        "charts": specifications(bases, variants),
        "palette": palette(),
        "first": sentences[0]["setup"] if sentences else None,
        "convention": DEFAULT,
    }


def _papers(run: Run) -> dict[str, Any]:
    """Verdicts, the audit and the papers' own tables and figures."""
    loaded = load_papers(run.papers)
    audit = pd.read_csv(run.folder / "audit.csv")
    findings = findings_of(audit)
    views = []
    for paper in loaded:
        frame = pd.read_csv(run.folder / f"compare/{paper.id}.csv")
        view = paper_view(paper, frame, findings, run.id_or_none)
        view["redrawn"] = _body(_own_artefacts(run, paper.id))
        view["command"] = "" if view["measured"] else commands_for(paper)
        views.append(view)
    grave = [f for f in findings if f["verdict"] in (IMPOSSIBLE, DOES_NOT_FOLLOW)]
    return {
        "views": views,
        "open": [view for view in views if view["measured"]],
        "closed": [view for view in views if not view["measured"]],
        "findings": findings,
        "grave": len(grave),
        "checks": len(audit),
        "measured": sum(view["measured"] for view in views),
        "printed": sum(view["printed"] for view in views),
        "tables": sorted({t["number"] for v in views if v["measured"] for t in v["tables"]}),
    }


def _own_artefacts(run: Run, paper: str) -> list[Artefact]:
    """What a paper declares to be drawn, the tables of datasets apart."""
    declared = all_artefacts(run.papers)[paper]
    return [artefact for artefact in declared if artefact.section != DATASETS]


def _data_section(run: Run) -> str:
    """The datasets' own tables and figures: those of no paper alone, on the user's own data."""
    declared = all_artefacts(run.papers)
    wanted = declared[""] if run.is_own else [a for own in declared.values() for a in own]
    return _body([artefact for artefact in wanted if artefact.section == DATASETS])


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
    return "".join(parts)


def _conventions(summary: Summary) -> list[tuple[str, str]]:
    """The conventions that this run's cells were scored under, with their sources."""
    seen = {name for own in summary.values.values() for name in own}
    return [(name, CONVENTIONS[name].source) for name in CONVENTIONS if name in seen]


def _plan_error(costs: Sequence[Mapping[str, Any]]) -> str:
    """How far the plan was off, over the rows of the table; empty where there was none."""
    ratios = [row["numbers"]["ratio"] for row in costs if row["numbers"]["ratio"]]
    if not ratios:
        return ""
    median, most, _ = spread_of(max(ratio, 1 / ratio) for ratio in ratios)
    return (
        f"Planned against actual: the median of {len(ratios)} methods is off by a factor of "
        f"{median:.2f}, nine in ten by {most:.2f} or less."
    )


def _facts() -> dict[str, str]:
    commit = provenance.commit()
    return {
        "made at commit": (commit["commit"] or "unknown")[:12]
        + (" with changes" if commit["dirty"] else ""),
        "machine": provenance.node()["cpu"],
        **{name: version for name, version in provenance.versions().items() if version},
    }
