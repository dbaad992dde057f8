"""Figures of results, each as svg and png with the CSV behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FIGURE_FORMATS = ("svg", "png", "csv")
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
    "svg.fonttype": "none",
}
# Ids within a drawing are made when it is saved: the same in every run, so that the bytes are, too.
SAVING: dict[Any, Any] = {"svg.hashsalt": "tailtables"}
MEDIAN_SHARE = 0.05
NOTHING = "no cell of this run has what is drawn here"


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure and the numbers it shows."""

    drawing: Drawing
    frame: pd.DataFrame


def write_figure(figure: Figure, stem: str | Path) -> None:
    """Write ``stem``.svg, .png and .csv."""
    import matplotlib.pyplot as plt

    write_csv(f"{stem}.csv", figure.frame)
    with atomic_path(f"{stem}.svg") as temporary, plt.rc_context(SAVING):
        figure.drawing.savefig(temporary, metadata={"Date": None}, bbox_inches="tight")
    with atomic_path(f"{stem}.png") as temporary:
        figure.drawing.savefig(temporary, dpi=160, bbox_inches="tight")
    plt.close(figure.drawing)


def panels(
    count: int,
    columns: int,
    draw: Callable[[np.ndarray], None],
    size: tuple[float, float] = (4.2, 3.2),
    **options: Any,
) -> Drawing:
    """A grid of ``count`` panels of ``size`` inches, filled by ``draw(axes[rows, columns])``.

    Without any panel the figure says that there is nothing to draw. ``options`` are matplotlib's
    for ``subplots``.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    figsize = (0.6 + size[0] * columns, 0.3 + size[1] * rows)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=figsize, squeeze=False, **options)
        for axis in axes.flat[count:]:
            axis.set_visible(False)
        if count:
            draw(axes)
        else:
            axes[0, 0].set_visible(True)
            axes[0, 0].set_axis_off()
            axes[0, 0].text(0.5, 0.5, NOTHING, ha="center")
        figure.tight_layout()
    return figure


def running_median(values: np.ndarray) -> np.ndarray:
    """The median over a centred window of 5% of the points, at least 5."""
    window = max(5, int(len(values) * MEDIAN_SHARE) | 1)
    series = pd.Series(values)
    return series.rolling(window, center=True, min_periods=1).median().to_numpy()
