"""Figures of results, each as svg and png with the CSV behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.data.prepared import open_prepared, read_meta

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by colour-blind readers and in grey print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "tailtables",  # the same ids in every run
    "svg.fonttype": "none",
}
MEDIAN_SHARE = 0.05


def write_figure(figure: Figure, data: pd.DataFrame, stem: str | Path) -> None:
    """Write ``stem``.svg, .png and .csv."""
    import matplotlib.pyplot as plt

    with atomic_path(f"{stem}.csv") as temporary:
        data.to_csv(temporary, index=False)
    with atomic_path(f"{stem}.svg") as temporary:
        figure.savefig(temporary, metadata={"Date": None}, bbox_inches="tight")
    with atomic_path(f"{stem}.png") as temporary:
        figure.savefig(temporary, dpi=160, bbox_inches="tight")
    plt.close(figure)


def weight_norms(norms: pd.DataFrame) -> Figure:
    """Norm of each label's classifier against its frequency rank (RankNet+Taug Fig. 1).

    ``norms`` has columns dataset, base, variant, label, count, rank, norm. A dot is a label, a
    line the running median: what the paper shows as a trend.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(norms.groupby(["dataset", "base"], sort=False))
    with plt.rc_context(STYLE):
        columns = min(3, max(1, len(panels)))
        rows = max(1, -(-len(panels) // columns))
        figure, axes = plt.subplots(
            rows, columns, figsize=(1.2 + 4.6 * columns, 3.2 * rows), squeeze=False
        )
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, ((dataset, base), panel) in zip(axes.flat, panels, strict=False):
            for number, (variant, part) in enumerate(panel.groupby("variant", sort=False)):
                colour = COLOURS[number % len(COLOURS)]
                part = part.sort_values("rank")
                axis.plot(part["rank"], part["norm"], ".", ms=3, alpha=0.35, color=colour)
                axis.plot(
                    part["rank"],
                    running_median(part["norm"].to_numpy()),
                    color=colour,
                    lw=1.8,
                    label=variant,
                )
            axis.set_title(f"{base} on {dataset}", loc="left", fontweight="bold")
            axis.set_xlabel("labels, most frequent first")
            axis.set_ylabel("norm of the weight vector")
            axis.set_yscale("log")  # a variant that diverges must not flatten the others
            axis.legend()
        if not panels:
            axes.flat[0].set_visible(True)
            axes.flat[0].text(0.5, 0.5, "no method with weight norms has run", ha="center")
        figure.tight_layout()
    return figure


def norms_frame(
    cells: Sequence[tuple[str, str, str]], files: Sequence[Path], data: Sequence[Path]
) -> pd.DataFrame:
    """The norms of cells (dataset, base, variant) as one long frame, by frequency rank.

    ``data`` are the folders of the prepared datasets; those that could not be had are passed over.
    """
    ready = [folder for folder in data if "unavailable" not in read_meta(folder)]
    counts = {folder.name: open_prepared(folder)[0].label_counts() for folder in ready}
    frames = []
    for (dataset, base, variant), path in zip(cells, files, strict=True):
        if dataset not in counts:
            continue
        with np.load(path) as stored:
            norms = stored["norms"]
        rank = np.empty(len(norms), np.int64)
        rank[np.argsort(-counts[dataset], kind="stable")] = np.arange(1, len(norms) + 1)
        frame = pd.DataFrame(
            {
                "dataset": dataset,
                "base": base,
                "variant": variant,
                "label": np.arange(len(norms)),
                "count": counts[dataset],
                "rank": rank,
                "norm": norms,
            }
        )
        frames.append(frame[frame["norm"].notna()])
    columns = ["dataset", "base", "variant", "label", "count", "rank", "norm"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def running_median(values: np.ndarray) -> np.ndarray:
    """The median over a centred window of 5% of the points, at least 5."""
    window = max(5, int(len(values) * MEDIAN_SHARE) | 1)
    series = pd.Series(values)
    return series.rolling(window, center=True, min_periods=1).median().to_numpy()
