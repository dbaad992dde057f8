"""PW Fig. 2: 0-1 and hinge loss of a relevant label, unbiased and as PW's surrogate at p = 0.5.

The curves are the functions that training uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.evaluation.losses import (
    hinge_negative,
    hinge_positive,
    surrogate_positive,
    unbiased_positive,
    zero_one_negative,
    zero_one_positive,
)
from benchmarks.render.figure import COLOURS, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def draw(curves: pd.DataFrame, p: float = 0.5) -> Figure:
    """PW Fig. 2: dashed the 0-1 loss, solid the hinge; as it is, unbiased, and as surrogate."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5.2, 3.6))
        for form, colour in zip(("", " unbiased", " surrogate"), COLOURS, strict=False):
            for kind, style in (("0-1", "--"), ("hinge", "-")):
                name = kind + form
                axes.plot(curves["score"], curves[name], style, color=colour, label=name)
        axes.axhline(0.0, color="#888888", linewidth=0.6)
        axes.set_xlabel("score of a relevant label")
        axes.set_ylabel(f"loss at p = {p:g}")
        axes.legend()
        figure.tight_layout()
    return figure
