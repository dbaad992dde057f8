"""The TailMix paper redrawn: inverse propensities."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.papers.artefacts import DATASETS, Artefact
from benchmarks.records.results import Results, joined
from benchmarks.render.figure import COLOURS, Figure, panels


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


ARTEFACTS = (
    Artefact(
        "inverse_propensities",
        "How inverse propensities are distributed (TailMix Fig. 2)",
        inverse_propensities,
        kind="figure",
        needs=("data",),
        section=DATASETS,
    ),
)
