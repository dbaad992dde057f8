"""The RankNet+Taug paper redrawn: tables 2 to 6, figures 1, 2, 4 and 5, Theorem 1, its claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from benchmarks.papers.artefacts import Artefact, Need
from benchmarks.papers.ranknet_taug import claims, decoupling, figures, readings, tables
from benchmarks.papers.run_claims import claim_tables
from benchmarks.records.results import METHOD, Results
from benchmarks.render.figure import Figure
from benchmarks.render.report import Section
from benchmarks.render.table import Table

Frame = Callable[[pd.DataFrame], pd.DataFrame]
NORMS = Section(
    "norms",
    "Weight norms against label frequency",
    "One dot per label, a running median per method; rare labels get shorter vectors from "
    "the plain loss, which is what the variants change.",
    order=20,
)
SECTION = Section(
    "ranknet_taug",
    "RankNet and Taug, table by table",
    "The paper's tables and figures redrawn for the datasets of this run, and its claims "
    "judged on them. The paper's own datasets, where a value can be compared with the "
    "printed one, are in the next sections.",
    order=40,
)


def _declared(name: str, caption: str, draw: Any, *needs: Need, kind: Any = "table") -> Artefact:
    settings = figures.SWEPT if kind == "figure" else ()
    return Artefact(f"ranknet_taug_{name}", caption, draw, kind, needs, settings, SECTION)


def _gains(name: str, caption: str, variant: str, bases: Sequence[str] = tables.BASES) -> Artefact:
    def draw(results: Results) -> Table:
        return tables.gains(results.cells, results.intervals, variant, bases)

    return _declared(name, caption, draw, "cells", "intervals")


def _table(name: str, caption: str, frame: Frame, column: str) -> Artefact:
    def draw(results: Results) -> Table:
        return Table("", frame(results.cells), ["dataset", column])

    return _declared(name, f"{caption} (RankNet+Taug Table {name[-1]})", draw, "cells")


def _figure(name: str, caption: str, draw: Callable[[Results], Figure]) -> Artefact:
    return _declared(name, caption, draw, "cells", "norms", "predictions", kind="figure")


def correlations(results: Results) -> Table:
    """Theorem 1 measured on every method with norms."""
    found = figures.norm_correlations(results.norms, results.predicted)
    names = {
        "norm_vs_times": "norm and times predicted",
        "norm_vs_count": "norm and training count",
    }
    return Table("", found.rename(columns=names), METHOD)


ARTEFACTS = (
    Artefact(
        "weight_norms",
        "Norm of each label's classifier (RankNet+Taug Fig. 1)",
        figures.weight_norms,
        kind="figure",
        needs=("norms",),
        section=NORMS,
    ),
    *claim_tables(
        "ranknet_taug",
        claims.judge,
        claims.NOTE,
        needs=("intervals", "norms", "predictions"),
        settings=figures.SWEPT,
        section=SECTION,
    ),
    _declared(
        "readings",
        "Which form of RankNet made Tables 2 and 5: every reading beside print",
        readings.readings,
        "cells",
        "intervals",
    ),
    _gains(
        "table2",
        "Each base, and what RankNet as F = r f changes (RankNet+Taug Table 2)",
        "RankNet-simple",
    ),
    _gains("table2_network", "Each base, and what RankNet's network changes", "RankNet"),
    _gains(
        "table2_chosen",
        "Each base, and what RankNet's network changes with settings chosen on the dataset's "
        "own training documents",
        "RankNet-chosen",
    ),
    _gains("table3", "Bonsai, and what Taug changes (RankNet+Taug Table 3)", "Taug-ds", ["Bonsai"]),
    Artefact(
        "ranknet_taug_decoupling",
        "What Taug does by decoupling alone and with its copies, on Bonsai",
        decoupling.decoupling,
        needs=("cells", "intervals", "data"),
        settings=figures.SWEPT,
        section=SECTION,
    ),
    _table("table4", "PSP of the methods for the tail", tables.table4, "metric"),
    _table("table5", "Vanilla metrics without and with RankNet", tables.table5, "method"),
    _table("table6", "Dropout and swap apart and together, on Bonsai", tables.table6, "method"),
    _declared(
        "correlations",
        "Rank correlations of weight norm, times predicted, and training count",
        correlations,
        "norms",
        "predictions",
    ),
    _figure(
        "figure1",
        "Label frequencies and weight norms before and after augmentation "
        "(RankNet+Taug Figs. 1 and 4)",
        figures.figure1,
    ),
    _figure(
        "figure2",
        "Weight norms and metrics as augmentation grows (RankNet+Taug Fig. 2)",
        figures.figure2,
    ),
    _figure(
        "figure5",
        "Metrics against the threshold between head and tail (RankNet+Taug Fig. 5)",
        figures.figure5,
    ),
    _figure(
        "theorem1",
        "Weight norm against times predicted (RankNet+Taug Theorem 1)",
        figures.theorem1,
    ),
)
