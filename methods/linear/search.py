"""The exact search of a round: along the Newton direction and the bias at once.

Scores are linear in both, so the search needs no product with X, only passes over the scores.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.linear.kernels import SPLIT_SUMS

MAX_SEARCH = 40


@njit(nogil=True, cache=True, fastmath=SPLIT_SUMS)
def _hinge_sums(
    score: np.ndarray,
    move: np.ndarray,
    sign: np.float32,
    t: np.float32,
    shift: np.float32,
) -> tuple[float, float, float, float, float, float]:
    """Sums over rows of slack s = max(0, 1 + sign (score + t move + shift)), d = sign move.

    Returned: s^2, s d, s, and over rows with s > 0: d^2, d, 1.
    """
    s2 = 0.0
    sd = 0.0
    s1 = 0.0
    d2 = 0.0
    d1 = 0.0
    count = 0.0
    for k in range(score.shape[0]):
        slack = np.float32(1) + sign * (score[k] + t * move[k] + shift)
        inside = slack > np.float32(0)
        s = np.float64(slack) if inside else 0.0
        d = np.float64(sign * move[k]) if inside else 0.0
        s2 += s * s
        sd += s * d
        s1 += s
        d2 += d * d
        d1 += d
        count += 1.0 if inside else 0.0
    return s2, sd, s1, d2, d1, count


@njit(nogil=True, cache=True)
def search_plane(
    score: np.ndarray,
    move: np.ndarray,
    pos_score: np.ndarray,
    pos_move: np.ndarray,
    twice_neg: float,
    twice_pos: float,
    ws: float,
    ss: float,
    w_bias: float,
    s_bias: float,
    bias: float,
    enough: float,
) -> tuple[float, float]:
    """Minimise the objective over ``w + t s + b e``, e the bias: two-dimensional Newton.

    ``ws``, ``ss`` are w.s and s.s. Each step is halved until the objective falls, so the search
    ends lower than it began whatever the curvature. Returns (t, b).
    """
    t = 1.0
    b = 0.0
    kept_t = 0.0
    kept_b = 0.0
    best = np.inf
    step_t = 1.0
    step_b = 0.0
    scale = 1.0
    for _ in range(MAX_SEARCH):
        s2, sd, s1, d2, d1, count = _hinge_sums(
            score, move, np.float32(1), np.float32(t), np.float32(b)
        )
        p2, pd, p1, e2, e1, pcount = _hinge_sums(
            pos_score, pos_move, np.float32(-1), np.float32(t), np.float32(b)
        )
        value = (
            0.5 * (t * t * ss + b * b)
            + t * ws
            + b * (w_bias + t * s_bias)
            + 0.5 * (twice_neg * s2 + twice_pos * p2)
        )
        if not value <= best:
            scale *= 0.5
            t = kept_t + scale * step_t
            b = kept_b + scale * step_b
            continue
        kept_t = t
        kept_b = b
        best = value
        g_t = ws + t * ss + b * s_bias + twice_neg * sd + twice_pos * pd
        h_tt = ss + twice_neg * d2 + twice_pos * e2
        if bias > 0.0:
            g_b = w_bias + t * s_bias + b + twice_neg * s1 - twice_pos * p1
            h_bb = 1.0 + twice_neg * count + twice_pos * pcount
            h_tb = s_bias + twice_neg * d1 - twice_pos * e1
            det = h_tt * h_bb - h_tb * h_tb
            if det > 1e-12 * h_tt * h_bb:
                step_t = -(h_bb * g_t - h_tb * g_b) / det
                step_b = -(h_tt * g_b - h_tb * g_t) / det
            else:  # the direction is the bias itself
                step_t = 0.0
                step_b = -g_b / h_bb
        else:
            g_b = 0.0
            step_t = -g_t / h_tt
            step_b = 0.0
        if -(g_t * step_t + g_b * step_b) <= enough:
            break
        scale = 1.0
        t = kept_t + step_t
        b = kept_b + step_b
    return kept_t, kept_b
