"""PW Fig. 2: 0-1 and hinge loss of a relevant label, unbiased and as PW's surrogate at p = 0.5.

``python -m methods.linear.loss_figure [FOLDER]`` writes ``loss.svg``, ``loss.png`` and the values
behind them, ``loss.csv``; the curves are the functions that training uses.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.atomic import atomic_path
from methods.linear.losses import (
    hinge_negative,
    hinge_positive,
    surrogate_positive,
    unbiased_positive,
    zero_one_negative,
    zero_one_positive,
)


def loss_curves(p: float = 0.5, points: int = 401) -> pd.DataFrame:
    """The six curves on scores from -2 to 2."""
    z = np.linspace(-2.0, 2.0, points)
    w = 1.0 / p
    return pd.DataFrame(
        {
            "score": z,
            "0-1": zero_one_positive(z),
            "0-1 unbiased": unbiased_positive(z, w, zero_one_positive, zero_one_negative),
            "0-1 surrogate": surrogate_positive(z, w, zero_one_positive),
            "hinge": hinge_positive(z),
            "hinge unbiased": unbiased_positive(z, w, hinge_positive, hinge_negative),
            "hinge surrogate": surrogate_positive(z, w, hinge_positive),
        }
    )


def draw(folder: Path, p: float = 0.5) -> None:
    """Write the figure and its data."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    curves = loss_curves(p)
    figure, axes = plt.subplots(figsize=(5, 3.6))
    colours = {"": "tab:blue", " unbiased": "tab:brown", " surrogate": "tab:red"}
    for kind, style in (("0-1", "--"), ("hinge", "-")):
        for form, colour in colours.items():
            name = kind + form
            axes.plot(curves["score"], curves[name], style, color=colour, label=name)
    axes.axhline(0.0, color="grey", linewidth=0.5)
    axes.set_xlabel("score of a relevant label")
    axes.set_ylabel(f"loss (p = {p:g})")
    axes.legend(fontsize=8)
    figure.tight_layout()
    with atomic_path(folder / "loss.csv") as temporary:
        curves.to_csv(temporary, index=False)
    for suffix in ("svg", "png"):
        with atomic_path(folder / f"loss.{suffix}") as temporary:
            figure.savefig(temporary, format=suffix, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "figures/pw"))
