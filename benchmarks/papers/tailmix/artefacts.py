"""The TailMix paper redrawn: tables 2 to 4 with training time, inverse propensities, its claims."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.papers.artefacts import DATASETS, Artefact
from benchmarks.papers.run_claims import claim_tables
from benchmarks.papers.tailmix import claims, tables
from benchmarks.records.results import Results, joined
from benchmarks.render.figure import COLOURS, Figure, panels
from benchmarks.render.report import Section
from benchmarks.render.table import Table

SECTION = Section(
    "tailmix",
    "TailMix, table by table",
    "The paper's tables redrawn for the datasets of this run, and its claims judged on them. "
    "LaMiniLM is LaRoBERTa with a smaller encoder, under a name of its own.",
    order=50,
)
Frame = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


def inverse_propensities(results: Results) -> Figure:
    """How 1 / p is distributed over labels, and over label assignments (Fig. 2)."""
    frames = []
    for name, train in results.training.items():
        counts = train.label_counts()
        weights = train.inverse_propensity()
        frames.append(pd.DataFrame({"dataset": name, "count": counts, "inverse": weights}))
    data = joined(frames, ["dataset", "count", "inverse"])

    def draw(axes: np.ndarray) -> None:
        for axis, (name, part) in zip(axes.flat, data.groupby("dataset", sort=False), strict=False):
            values, counts = part["inverse"].to_numpy(), part["count"].to_numpy()
            bins = np.linspace(1, values.max() * 1.02, 31)
            even, line = np.full(len(values), 1 / len(values)), {"histtype": "step", "lw": 1.6}
            axis.hist(values, bins, weights=even, color=COLOURS[0], alpha=0.55, label="labels")
            shares = {"weights": counts / counts.sum(), "label": "label assignments"}
            axis.hist(values, bins, color=COLOURS[1], **shares, **line)
            axis.set_title(str(name), loc="left", fontweight="bold")
            median = f"median label {np.median(values):.1f}"
            axis.set_title(median, loc="right", fontsize=8, color="#555555")
        axes[0, 0].legend(fontsize=8)
        axes[0, 0].figure.supxlabel("inverse propensity 1/p", fontsize=10)
        axes[0, 0].figure.supylabel("share", fontsize=10)

    return Figure(panels(data["dataset"].nunique(), 3, draw, (3.1, 2.3)), data)


def _table(number: int, caption: str, frame: Frame) -> Artefact:
    def draw(results: Results) -> Table:
        found = frame(results.cells, results.runs)
        keys = [c for c in ("dataset", "base", "variant", "Sim", "LPG") if c in found]
        return Table("", found, keys, formats={tables.HOURS: ".3f"})

    return Artefact(
        f"tailmix_table{number}",
        f"{caption} (TailMix Table {number})",
        draw,
        needs=("cells", "runs"),
        section=SECTION,
    )


ARTEFACTS = (
    *claim_tables(
        "tailmix",
        claims.judge,
        claims.NOTE,
        needs=("cells", "intervals", "runs", "instances"),
        section=SECTION,
    ),
    _table(2, "TailMix on label-attention models, beside other methods", tables.table2),
    _table(3, "TailMix beside other ways to mix", tables.table3),
    _table(4, "TailMix without its parts", tables.table4),
    Artefact(
        "inverse_propensities",
        "How inverse propensities are distributed (TailMix Fig. 2)",
        inverse_propensities,
        kind="figure",
        needs=("data",),
        section=DATASETS,
    ),
)
