"""How far a label's objective is from its optimum at most, by the dual problem.

With a_i = 2 c_i slack_i, any a' >= 0 bounds the optimum from below, by
sum a' - 1/2 |sum a' y x|^2 - sum a'^2 / (4 c). For a' = a the gap is ``1/2 |g|^2``, g the gradient;
scaling the negatives' and the positives' a apart, to the best, gives about half of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.linear.kernels import SPLIT_SUMS

ROUNDING = 2e-6  # relative error of an objective from scores in float32, taken amply


@njit(nogil=True, cache=True, fastmath=SPLIT_SUMS)
def _gap_sums(
    w: np.ndarray, halfway: np.ndarray, g: np.ndarray
) -> tuple[float, float, float, float, float]:
    """w.w, g.g, and the products of n = halfway - w and p = halfway - g: n.n, p.p, n.p."""
    ww = 0.0
    gg = 0.0
    nn = 0.0
    pp = 0.0
    np_ = 0.0
    for j in range(w.shape[0]):
        n = np.float64(halfway[j]) - np.float64(w[j])
        p = np.float64(halfway[j]) - np.float64(g[j])
        ww += np.float64(w[j]) * np.float64(w[j])
        gg += np.float64(g[j]) * np.float64(g[j])
        nn += n * n
        pp += p * p
        np_ += n * p
    return ww, gg, nn, pp, np_


@njit(nogil=True, cache=True)
def relative_gap(
    w: np.ndarray,
    halfway: np.ndarray,
    g: np.ndarray,
    neg_loss: float,
    pos_loss: float,
    neg_sum: float,
    pos_sum: float,
) -> tuple[float, float]:
    """The objective, and a bound on its distance from the optimum as a share of it.

    ``halfway`` is w plus the negatives' part of the gradient ``g``; ``*_sum`` are the sums of
    2 c slack. The dual is maximised over factors of the negatives' and the positives' part.
    """
    ww, gg, nn, pp, np_ = _gap_sums(w, halfway, g)
    objective = 0.5 * ww + neg_loss + pos_loss
    if objective <= 0.0:
        return objective, 0.0
    gap = 0.5 * gg
    a, b = nn + 2.0 * neg_loss, pp + 2.0 * pos_loss
    det = a * b - np_ * np_
    if det > 1e-9 * a * b:
        neg_factor = (b * neg_sum + np_ * pos_sum) / det
        pos_factor = (a * pos_sum + np_ * neg_sum) / det
        if neg_factor >= 0.0 and pos_factor >= 0.0:
            lower = 0.5 * (neg_factor * neg_sum + pos_factor * pos_sum)
            gap = min(gap, max(objective - lower, 0.0) + ROUNDING * objective)
    return objective, gap / objective
