"""Figures of label distributions: PW Fig. 1, HTTN Fig. 1, TailMix Fig. 2, for any dataset.

Each function returns the figure and the numbers behind it; ``write_figure``
puts both on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.papers.dataset_counts import prepared_names
from benchmarks.render.figure import COLOURS, STYLE, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEATMAP_LABELS, HEATMAP_GROUPS = 300, 120
"""A heat map of more labels than the first shows means over so many groups of near ranks."""


def frequency_data(datasets: Mapping[str, Split]) -> pd.DataFrame:
    """Columns dataset, rank, count, share of pairs: labels of train, most frequent first."""
    frames = []
    for name, train in datasets.items():
        counts = np.sort(train.label_counts())[::-1]
        counts = counts[counts > 0]
        share = np.cumsum(counts) / counts.sum()
        rank = np.arange(1, len(counts) + 1)
        frames.append(
            pd.DataFrame({"dataset": name, "rank": rank, "count": counts, "cumulative": share})
        )
    return pd.concat(frames, ignore_index=True)


def power_law(counts: np.ndarray) -> tuple[float, float]:
    """Scale and beta of n(r) ~ scale r^-beta (PW section 2), by least squares in log-log.

    Ranks are thinned to even steps of their logarithm, or the tail's many labels would decide.
    """
    counts = np.sort(counts[counts > 0])[::-1]
    if len(counts) < 2:
        return float("nan"), float("nan")
    picked = np.unique(np.geomspace(1, len(counts), 200).astype(int)) - 1
    slope, intercept = np.polyfit(np.log(picked + 1.0), np.log(counts[picked]), 1)
    return float(np.exp(intercept)), float(-slope)


def label_frequencies(datasets: Mapping[str, Split]) -> tuple[Figure, pd.DataFrame]:
    """Documents of each label against its rank, both logarithmic (PW Fig. 1)."""
    plt = _pyplot()
    data = frequency_data(datasets)
    with plt.rc_context(STYLE):
        figure, axes = _panels(len(datasets), 3.1, 2.5)
        for axis, (name, part) in zip(axes, data.groupby("dataset", sort=False), strict=True):
            scale, beta = power_law(part["count"].to_numpy())
            rank = part["rank"].to_numpy(dtype=float)
            axis.loglog(rank, part["count"], color=COLOURS[0], lw=1.8, label="labels")
            axis.loglog(
                rank,
                scale * rank**-beta,
                "--",
                color=COLOURS[1],
                lw=1.1,
                label=rf"power law, $\beta$ = {beta:.2f}",
            )
            axis.set_ylim(0.7, float(part["count"].max()) * 3)
            axis.set_title(str(name), loc="left", fontweight="bold")
            axis.legend(loc="lower left")
        _label_axes(figure, "label rank, most frequent first", "training documents")
    return figure, data


def label_distributions(datasets: Mapping[str, Split]) -> tuple[Figure, pd.DataFrame]:
    """Label frequencies and pairwise label correlation, most frequent first (HTTN Fig. 1).

    The data behind it are the heat maps, one row a cell.
    """
    plt = _pyplot()
    frames = []
    with plt.rc_context(STYLE):
        columns = min(2, len(datasets))
        rows = -(-len(datasets) // columns)
        figure, grid = plt.subplots(
            rows,
            2 * columns,
            figsize=(7.4 * columns, 3.2 * rows),
            width_ratios=[1.15, 1] * columns,
            squeeze=False,
        )
        axes = list(grid.flat)
        for axis in axes[2 * len(datasets) :]:
            axis.set_visible(False)
        for number, (name, train) in enumerate(datasets.items()):
            frequency = train.label_counts()
            order = np.argsort(-frequency, kind="stable")
            order = order[frequency[order] > 0]
            correlation = label_correlation(train.labels, order)
            _draw_distribution(axes[2 * number], name, frequency[order])
            _draw_correlation(figure, axes[2 * number + 1], correlation, len(order))
            row, column = np.indices(correlation.shape)
            frame = {"row": row.ravel(), "column": column.ravel(), "mean": correlation.ravel()}
            frames.append(pd.DataFrame({"dataset": name, **frame}))
        figure.tight_layout()
    return figure, pd.concat(frames, ignore_index=True)


def _draw_distribution(axis: Axes, name: str, counts: np.ndarray) -> None:
    axis.fill_between(np.arange(1, len(counts) + 1), counts, step="mid", color=COLOURS[0])
    axis.set_yscale("log")
    axis.set_xlim(1, max(2, len(counts)))
    axis.set_xlabel("labels, most frequent first")
    axis.set_ylabel("training documents")
    axis.set_title(name, loc="left", fontweight="bold")


def _draw_correlation(figure: Figure, axis: Axes, correlation: np.ndarray, labels: int) -> None:
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
        title += f", {per_cell:.0f} x {per_cell:.0f} labels a cell"
    axis.set_title(title, loc="left", fontsize=9)
    figure.colorbar(image, ax=axis, fraction=0.046, pad=0.03, extend="both")


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


def inverse_propensities(datasets: Mapping[str, Split]) -> tuple[Figure, pd.DataFrame]:
    """How 1 / p is distributed over labels, and over label assignments (TailMix Fig. 2)."""
    plt = _pyplot()
    frames = []
    for name, train in datasets.items():
        counts = train.label_counts()
        weights = train.inverse_propensity()
        frames.append(pd.DataFrame({"dataset": name, "count": counts, "inverse": weights}))
    data = pd.concat(frames, ignore_index=True)
    with plt.rc_context(STYLE):
        figure, axes = _panels(len(datasets), 3.1, 2.3)
        for axis, (name, part) in zip(axes, data.groupby("dataset", sort=False), strict=True):
            values, counts = part["inverse"].to_numpy(), part["count"].to_numpy()
            edges = np.linspace(1, values.max() * 1.02, 31).tolist()
            even = np.full(len(values), 1 / len(values))
            axis.hist(values, edges, weights=even, color=COLOURS[0], alpha=0.55, label="labels")
            axis.hist(
                values,
                edges,
                weights=counts / counts.sum(),
                histtype="step",
                color=COLOURS[1],
                lw=1.6,
                label="label assignments",
            )
            axis.set_title(str(name), loc="left", fontweight="bold")
            median = f"median label {np.median(values):.1f}"
            axis.set_title(median, loc="right", fontsize=8, color="#555555")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower right", ncols=2)
        _label_axes(figure, "inverse propensity 1/p", "share")
    return figure, data


def _pyplot():  # type: ignore[no-untyped-def]
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _panels(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    plt = _pyplot()
    columns = min(3, count)
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows + 0.3), squeeze=False
    )
    axes = list(grid.flat)
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def _label_axes(figure: Figure, x: str, y: str) -> None:
    figure.supxlabel(x, fontsize=10)
    figure.supylabel(y, fontsize=10)
    figure.tight_layout()


def write_all(data: str | Path, folder: str | Path) -> list[str]:
    """Write the three figures of every prepared dataset below ``data``; the datasets' names."""
    names = prepared_names(data)
    if not names:
        raise ValueError(f"no dataset is prepared in {data}; run `snakemake --cores 2 datasets`")
    trains = {name: open_prepared(Path(data) / name)[0] for name in names}
    drawings = {
        "label_frequencies": label_frequencies,
        "label_distributions": label_distributions,
        "inverse_propensities": inverse_propensities,
    }
    for stem, draw in drawings.items():
        write_figure(*draw(trains), Path(folder) / stem)
    return names
