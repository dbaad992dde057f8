"""The sections of the report page, from the files of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_text
from benchmarks.papers.ranknet_taug.page import FIGURES, has_data
from benchmarks.records.cells import read_cells
from benchmarks.render.report import (
    Section,
    audit_section,
    drawing,
    fragment,
    papers_section,
    render,
    truth_section,
)
from workflow.runtime import provenance

DATASET_FIGURES = {
    "label_frequencies": "Documents a label, labels sorted by frequency (PW Fig. 1)",
    "label_distributions": "Label frequencies and correlations (HTTN Fig. 1)",
    "inverse_propensities": "How inverse propensities are distributed (TailMix Fig. 2)",
}


def build(
    cells: Path,
    runs: Path,
    improvement: Path,
    norms: Path,
    losses: Path,
    ranknet_taug: Path,
    audit: Path,
    verdicts: Path,
    dataset_tables: Sequence[Path],
    dataset_figures: Sequence[Path],
    ranknet_taug_figures: Sequence[Path],
    output: Path,
) -> None:
    """Write the page."""
    frame = read_cells(cells)
    truth = truth_section(frame)
    sections = [
        Section(
            "improvement",
            "Do the variants help the tail?",
            "Propensity-scored metrics (PSP, PSnDCG) weigh a hit on a rare label more; vanilla "
            "metrics (P, nDCG) count every hit alike. The controls bound each column: the oracle "
            "from above, popularity and random from below.",
            fragment(improvement),
        ),
        Section(
            "norms",
            "Weight norms against label frequency",
            "One dot a label, a running median a method; rare labels get shorter vectors from "
            "the plain loss, which is what the variants change.",
            drawing(norms, "Norm of each label's classifier (RankNet+Taug Fig. 1)"),
        ),
        Section(
            "losses",
            "The losses behind PW",
            "The unbiased loss turns downwards: it has no minimum to train to. Its convex "
            "surrogate keeps the shape of the plain loss and a larger weight.",
            drawing(losses, "Losses of a relevant label (PW Fig. 2), from the code that trains"),
        ),
        Section(
            "ranknet_taug",
            "RankNet and Taug, table by table",
            "The paper's tables and figures redrawn for the datasets of this run, and its claims "
            "judged on them. The paper's own datasets, where a figure can be compared with the "
            "printed one, are in the next sections.",
            fragment(ranknet_taug)
            + "".join(
                drawing(path, FIGURES[path.stem]) for path in ranknet_taug_figures if has_data(path)
            ),
        ),
        *([truth] if truth is not None else []),
        papers_section(pd.read_csv(verdicts)),
        audit_section(pd.read_csv(audit)),
        _datasets(dataset_tables, dataset_figures),
    ]
    commit = provenance.commit()
    facts = {
        "commit": (commit["commit"] or "unknown")[:12] + (" + changes" if commit["dirty"] else ""),
        "machine": provenance.node()["cpu"],
        **{k: v for k, v in provenance.versions().items() if v},
    }
    write_text(output, render(frame, pd.read_csv(runs), sections, facts))


def _datasets(tables: Sequence[Path], figures: Sequence[Path]) -> Section:
    overview, *printed = map(fragment, tables)
    drawings = [drawing(path, DATASET_FIGURES[path.stem]) for path in figures]
    folded = "".join(printed)
    return Section(
        "datasets",
        "The datasets",
        "What the data say beside what the papers print of them; a mark and a reason where the "
        "two differ.",
        overview
        + f"<details><summary>The papers' dataset tables, checked</summary>{folded}</details>"
        + "".join(drawings),
    )
