"""The GLaS paper redrawn: Tables 1, 2 and 4, Figure 1, Theorem 2.1, and its claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers.artefacts import Artefact, Need
from benchmarks.papers.glas import claims, tables
from benchmarks.papers.run_claims import claim_tables
from benchmarks.records.cell import PLAIN
from benchmarks.records.results import Results
from benchmarks.render.figure import COLOURS, Figure, panels
from benchmarks.render.report import Section
from benchmarks.render.table import Table

SECTION = Section(
    "glas",
    "GLaS, table by table",
    "The paper's ablation, generalisation gap and curves redrawn for the datasets of this run, and "
    "its claims judged on them. Printed values beside measured ones are in the next sections.",
    order=45,
)
GAP_VARIANTS = (PLAIN, "GLaS", "spread-out", "gravity", "Laplacian")
GAP_NOTE = (
    "train: P@1 on the training documents that have labels, measured by the fit when it ends, "
    "without input dropout; test: P@1 as everywhere. Change of gap: against the plain base."
)
PSP_NOTE = (
    "The paper's program counts labels in the test set (its appendix D), the other methods' "
    "columns are copied from the repository. nearest: which of the four is closest to the print."
)


def _declared(name: str, caption: str, draw: Any, *needs: Need, kind: Any = "table") -> Artefact:
    return Artefact(f"glas_{name}", caption, draw, kind, needs, section=SECTION)


def table1(results: Results) -> Table:
    """Sensitivity to each setting."""
    return Table("", tables.ablation(results.cells), ["dataset", "varied", "variant"])


def table2(results: Results) -> Table:
    """The generalisation gap of every method that knows its training accuracy."""
    frame = tables.gap_table(results.cells, results.runs, GAP_VARIANTS)
    return Table("", frame, ["dataset", "base", "variant", "seeds"], notes=[GAP_NOTE])


def table4(results: Results) -> Table:
    """PSP under both sources of the propensities."""
    frame = tables.sources_of_propensity(results.cells)
    return Table("", frame, ["method", "metric"], {"off by": "+.2f"}, notes=[PSP_NOTE])


def theorem(results: Results) -> Table:
    """Training accuracy by dimension."""
    frame = tables.by_dimension(results.cells, results.runs)
    return Table("", frame, ["dataset", "variant", "dimension"])


def figure1(results: Results) -> Figure:
    """Training and test P@1 against epochs; every point is a fit of that many epochs."""
    data = tables.by_epoch(results.cells, results.runs)
    parts = list(data.groupby("dataset", sort=False))

    def draw(axes: np.ndarray) -> None:
        for axis, (dataset, part) in zip(axes.flat, parts, strict=False):
            for number, (variant, own) in enumerate(part.groupby("variant", sort=False)):
                # The first is drawn wider, so that it shows beneath a second that coincides.
                _curves(axis, own, str(variant), COLOURS[number % len(COLOURS)], 4.5 - 3 * number)
            axis.set_xticks(sorted(set(part["epochs"])))
            axis.set_title(str(dataset), loc="left", fontweight="bold")
            axis.set_xlabel("epochs")
            axis.set_ylabel("P@1")
            axis.legend()

    return Figure(panels(len(parts), 3, draw, (4.6, 3.4)), data)


def _curves(axis: Any, part: pd.DataFrame, variant: str, colour: str, width: float) -> None:
    name = "no regulariser" if variant == PLAIN else variant
    for column, style in (("train", "o-"), ("test", "s--")):
        axis.plot(
            part["epochs"],
            part[column],
            style,
            color=colour,
            linewidth=width,
            markersize=4 + 1.5 * width,
            label=f"{name}, {column}",
        )


ARTEFACTS = (
    *claim_tables(
        "glas",
        claims.judge,
        claims.NOTE,
        needs=("cells", "intervals", "runs"),
        section=SECTION,
    ),
    _declared("table1", "Sensitivity to each setting (GLaS Table 1)", table1, "cells"),
    _declared("table2", "Gap between train and test P@1 (GLaS Table 2)", table2, "cells", "runs"),
    _declared(
        "table4",
        "EURLex-4K: PSP under train and test propensities beside the print (GLaS Table 4)",
        table4,
        "cells",
    ),
    _declared(
        "theorem", "Training accuracy by dimension (GLaS Theorem 2.1)", theorem, "cells", "runs"
    ),
    _declared(
        "figure1",
        "Training and test accuracy by epoch (GLaS Fig. 1)",
        figure1,
        "cells",
        "runs",
        kind="figure",
    ),
)
