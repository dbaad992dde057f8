"""Figure 1 of the HTTN paper: label frequencies and correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.records.results import Results, joined
from benchmarks.render.figure import COLOURS, Figure, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEATMAP_LABELS, HEATMAP_GROUPS = 300, 120
"""A heat map of more labels than the first shows means over so many groups of near ranks."""


def label_distributions(results: Results) -> Figure:
    """Label frequencies and pairwise label correlation, most frequent first (Fig. 1).

    The data behind it are the heat maps, one row per entry.
    """
    frames = []
    count = len(results.training)

    def draw(axes: np.ndarray) -> None:
        pairs = axes.reshape(-1, 2)
        for (left, right), (name, train) in zip(pairs, results.training.items(), strict=False):
            frequency = train.label_counts()
            order = np.argsort(-frequency, kind="stable")
            order = order[frequency[order] > 0]
            correlation = label_correlation(train.labels, order)
            _draw_distribution(left, name, frequency[order])
            _draw_correlation(right, correlation, len(order))
            row, column = np.indices(correlation.shape)
            entries = {"row": row.ravel(), "column": column.ravel(), "mean": correlation.ravel()}
            frames.append(pd.DataFrame({"dataset": name, **entries}))

    columns = 2 * min(2, max(1, count))
    ratios = {"width_ratios": [1.15, 1] * (columns // 2)} if count else {}
    drawing = panels(2 * count, columns, draw, (3.7, 3.2), **ratios)
    return Figure(drawing, joined(frames, ["dataset", "row", "column", "mean"]))


def _draw_distribution(axis: Axes, name: str, counts: np.ndarray) -> None:
    axis.fill_between(np.arange(1, len(counts) + 1), counts, step="mid", color=COLOURS[0])
    axis.set_yscale("log")
    axis.set_xlim(1, max(2, len(counts)))
    axis.set_xlabel("labels, most frequent first")
    axis.set_ylabel("training documents")
    axis.set_title(name, loc="left", fontweight="bold")


def _draw_correlation(axis: Axes, correlation: np.ndarray, labels: int) -> None:
    groups = len(correlation)
    shown = correlation.copy()
    if groups == labels:
        np.fill_diagonal(shown, np.nan)  # a label goes with itself; its 1 would hide the rest
    top = max(float(np.nanquantile(shown, 0.995)) if groups > 1 else 1.0, 1e-3)
    image = axis.imshow(shown, cmap="magma", vmin=0, vmax=top, extent=(1, labels, labels, 1))
    axis.grid(visible=False)
    axis.set_xlabel("labels, most frequent first")
    per_cell = labels / max(1, groups)
    title = "label correlation"
    if per_cell > 1:
        title += f", {per_cell:.0f} x {per_cell:.0f} labels per cell"
    axis.set_title(title, loc="left", fontsize=9)
    axis.figure.colorbar(image, ax=axis, fraction=0.046, pad=0.03, extend="both")


def label_correlation(labels: sparse.csr_matrix, order: np.ndarray) -> np.ndarray:
    """Pearson correlation between labels in the given order.

    More than 300 labels are gathered into 120 groups of neighbouring ranks; an entry is then the
    mean over pairs of two different labels.
    """
    n, size = labels.shape[0], len(order)
    Y = sparse.csc_matrix(labels[:, order], dtype=np.float64)
    mean = np.asarray(Y.mean(axis=0)).ravel()
    spread = np.sqrt(mean * (1 - mean))
    spread[spread == 0] = np.inf  # a label on every document goes with none in particular
    together = sparse.coo_matrix(Y.T @ Y) / n
    # corr = (P(i and j) - P(i) P(j)) / (s_i s_j); the second term is an outer product, so the
    # sums over groups need no dense L x L matrix.
    groups = size if size <= HEATMAP_LABELS else HEATMAP_GROUPS
    group = (np.arange(size) * groups) // size
    scaled = together.data / (spread[together.row] * spread[together.col])
    off = together.row != together.col
    sums = np.zeros((groups, groups))
    np.add.at(sums, (group[together.row[off]], group[together.col[off]]), scaled[off])
    part = np.bincount(group, weights=mean / spread, minlength=groups)
    own = np.bincount(group, weights=(mean / spread) ** 2, minlength=groups)
    sums -= np.outer(part, part) - np.diag(own)
    members = np.bincount(group, minlength=groups).astype(float)
    pairs = np.outer(members, members) - np.diag(members)
    result = np.divide(sums, pairs, out=np.ones_like(sums), where=pairs > 0)
    return np.asarray(result)
