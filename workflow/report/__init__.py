"""The sections of the report page, from the files of a run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.atomic import write_text
from benchmarks.cells import read_cells
from benchmarks.report import figure_section, render, table_section, truth_section
from workflow.runtime import provenance


def build(cells: Path, runs: Path, improvement: Path, norms: Path, output: Path) -> None:
    """Write the page."""
    frame = read_cells(cells)
    truth = truth_section(frame)
    sections = [
        table_section(
            "improvement",
            "Do the variants help the tail?",
            "Propensity-scored metrics (PSP, PSnDCG) weigh a hit on a rare label more; vanilla "
            "metrics (P, nDCG) count every hit alike. The controls bound each column: the oracle "
            "from above, popularity and random from below.",
            improvement,
        ),
        figure_section(
            "norms",
            "Weight norms against label frequency",
            "One dot a label, a running median a method; rare labels get shorter vectors from "
            "the plain loss, which is what the variants change (RankNet+Taug Fig. 1).",
            norms,
        ),
        *([truth] if truth is not None else []),
    ]
    commit = provenance.commit()
    facts = {
        "commit": (commit["commit"] or "unknown")[:12] + (" + changes" if commit["dirty"] else ""),
        "machine": provenance.node()["cpu"],
        **{k: v for k, v in provenance.versions().items() if v},
    }
    write_text(output, render(frame, pd.read_csv(runs), sections, facts))
