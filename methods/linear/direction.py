"""The direction of a round of Newton's method: by conjugate gradients, on few rows.

Plain: one Newton step on the active rows. In wide problems, where the product of X with the
direction costs far more than the direction does, it is worth more: the label is solved to its
tolerance on the rows that are active or nearly so, its *candidates*, and the direction leads there.
Were no other row to become active, one such round would be the last.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from methods._kernels.rows import gather_renumbered
from methods.linear.kernels import (
    cg_advance,
    cg_turn,
    curvature_product,
    dot,
    row_add,
    row_dot,
)
from methods.linear.search import search_plane

FORCING = 0.1  # how far a round reduces the residual of its Newton system
SPARE = 3.0  # a residual of at most this many times tol * objective is accurate enough
MAX_CG = 250
MAX_INNER = 20  # rounds on the candidates
IN_CACHE = 8192  # so many float32 stay in the fastest cache: renumbering would gain nothing
ORDERS = 64  # of magnitude, below 1, that squares of steps are told apart by
SAMPLED = 32  # every so many-th score tells how they are distributed
BINS, BIN = 200, 0.005  # of the distance from the margin


@njit(nogil=True, cache=True)
def _solve_system(
    start: np.ndarray,
    stop: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    bias: np.float32,
    twice_cost: np.ndarray,
    r: np.ndarray,
    mean: np.ndarray,
    enough: float,
) -> tuple[np.ndarray, int]:
    """Conjugate gradients for ``H s = r``; returns s and the products with H made.

    H is that of the given rows. Ends when the residual is small against r in the preconditioner's
    norm, or when its square is at most ``enough``; ``r`` is the residual on return.
    """
    s = np.zeros_like(r)
    p = np.zeros_like(r)
    hp = np.zeros_like(r)
    total_cost = 0.0
    for a in range(twice_cost.shape[0]):
        total_cost += np.float64(twice_cost[a])
    pull = total_cost / (1.0 + total_cost * dot(mean, mean))
    rr, mr = cg_advance(np.float32(0), p, hp, s, r, mean)
    rz = rr - pull * mr * mr
    target = FORCING * FORCING * rz
    pp = cg_turn(np.float32(0), np.float32(pull * mr), r, mean, p, hp)
    products = 0
    while products < MAX_CG:
        php = pp + curvature_product(start, stop, indices, data, bias, twice_cost, p, hp)
        products += 1
        rr, mr = cg_advance(np.float32(rz / php), p, hp, s, r, mean)
        after = rr - pull * mr * mr
        if after <= target or rr <= enough:
            break
        pp = cg_turn(np.float32(after / rz), np.float32(pull * mr), r, mean, p, hp)
        rz = after
    return s, products


@njit(nogil=True, cache=True)
def newton_direction(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    bias: np.float32,
    active: np.ndarray,
    twice_cost: np.ndarray,
    n_active: int,
    gradient: np.ndarray,
    mean: np.ndarray,
    enough: float,
    number: np.ndarray,
    columns: np.ndarray,
    step: np.ndarray,
) -> int:
    """Fill ``step`` with the Newton step on the active rows; returns the products with H made.

    With many columns, those that an active row has are renumbered: on the others H is the
    identity and the solution at hand. The residual is the gradient after the step, should no row
    change sides.
    """
    for j in range(step.shape[0]):
        step[j] = -gradient[j]
    if step.shape[0] > IN_CACHE:
        start, stop, near_indices, near_data, used = gather_renumbered(
            indptr, indices, data, active, n_active, number, columns
        )
    else:
        start = indptr[active[:n_active]]
        stop = indptr[active[:n_active] + 1]
        near_indices, near_data = indices, data
        used = step.shape[0] - 1
        columns[:used] = np.arange(used)
    columns[used] = step.shape[0] - 1  # the bias
    size = used + 1
    r = np.empty(size, np.float32)
    near_mean = np.empty(size, np.float32)
    for j in range(size):
        r[j] = step[columns[j]]
        near_mean[j] = mean[columns[j]]
    s, products = _solve_system(
        start, stop, near_indices, near_data, bias, twice_cost[:n_active], r, near_mean, enough
    )
    for j in range(size):
        step[columns[j]] = s[j]
    return products


@njit(nogil=True, cache=True)
def candidate_cut(score: np.ndarray, wanted: int) -> np.float32:
    """A score above which there are about ``wanted`` rows or fewer, at most -1: the margin."""
    histogram = np.zeros(BINS, np.int64)
    above = 0
    for k in range(0, score.shape[0], SAMPLED):
        distance = np.float32(-1) - score[k]
        if distance < np.float32(0):
            above += 1
        elif distance < np.float32(BINS * BIN):
            histogram[min(int(distance / BIN), BINS - 1)] += 1
    bins = 0
    while bins < BINS and (above + histogram[bins]) * SAMPLED <= wanted:
        above += histogram[bins]
        bins += 1
    return np.float32(-1.0 - bins * BIN)


@njit(nogil=True, cache=True)
def candidate_direction(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    bias: np.float32,
    w: np.ndarray,
    score: np.ndarray,
    pos_rows: np.ndarray,
    pos_score: np.ndarray,
    twice_neg: np.float32,
    twice_pos: np.float32,
    cut: np.float32,
    mean: np.ndarray,
    tol: float,
    rows: np.ndarray,
    number: np.ndarray,
    columns: np.ndarray,
    step: np.ndarray,
) -> tuple[int, int]:
    """Fill ``step`` with the way from w to the solution on the positives and rows above ``cut``.

    ``rows`` is room for the candidates. Returns the products with H made and the entries of X that
    were visited.
    """
    n_pos = pos_rows.shape[0]
    n_neg = 0
    for k in range(score.shape[0]):
        if score[k] > cut:
            rows[n_neg] = k
            n_neg += 1
    n = n_neg + n_pos
    scores = score[rows[:n_neg]]
    rows[n_neg:n] = pos_rows
    pos_scores = pos_score.copy()
    start, stop, near_indices, near_data, used = gather_renumbered(
        indptr, indices, data, rows, n, number, columns
    )
    columns[used] = w.shape[0] - 1  # the bias
    v = np.empty(used + 1, np.float32)
    for j in range(used + 1):
        v[j] = w[columns[j]]
    # On columns of no candidate the objective is 1/2 |w|^2 alone: there the direction is -w.
    far_square = max(0.0, dot(w, w) - dot(v, v))
    far = 1.0  # what is left of w there
    g = np.empty_like(v)
    s = np.empty_like(v)
    near_indptr = np.append(start, stop[-1:])
    near_number = np.full(used + 1, -1, np.int32)
    near_columns = np.empty(used + 1, np.int64)
    active = np.empty(n, np.int64)
    twice_cost = np.empty(n, np.float32)
    moves = np.empty(n, np.float32)
    products = 0
    visited = near_indices.shape[0]
    for inner in range(MAX_INNER):
        g[:] = v
        n_active = 0
        bias_sum = 0.0
        loss = 0.0
        for i in range(n):
            is_negative = i < n_neg
            slack = (
                np.float32(1) + scores[i] if is_negative else np.float32(1) - pos_scores[i - n_neg]
            )
            if slack > np.float32(0):
                twice = twice_neg if is_negative else twice_pos
                active[n_active] = i
                twice_cost[n_active] = twice
                n_active += 1
                u = twice * slack if is_negative else -twice * slack
                bias_sum += np.float64(u)
                loss += 0.5 * np.float64(twice) * np.float64(slack) * np.float64(slack)
                row_add(near_indices[start[i] : stop[i]], near_data[start[i] : stop[i]], u, g)
                visited += stop[i] - start[i]
        g[used] = np.float32(np.float64(v[used]) + bias_sum) * bias
        objective = 0.5 * (dot(v, v) + far * far * far_square) + loss
        enough = SPARE * tol * objective
        if inner > 0 and dot(g, g) + far * far * far_square <= enough:
            break
        near = 0
        for a in range(n_active):
            near += stop[active[a]] - start[active[a]]
        for j in range(used + 1):
            g[j] = -g[j]
        # Columns of no active row are solved at once: there the Hessian is the identity.
        own_start, own_stop, own_indices, own_data, own_used = gather_renumbered(
            near_indptr, near_indices, near_data, active, n_active, near_number, near_columns
        )
        near_columns[own_used] = used  # the bias
        own_g = np.empty(own_used + 1, np.float32)
        own_mean = np.empty(own_used + 1, np.float32)
        for j in range(own_used + 1):
            own_g[j] = g[near_columns[j]]
            own_mean[j] = mean[columns[near_columns[j]]]
        own_s, made = _solve_system(
            own_start,
            own_stop,
            own_indices,
            own_data,
            bias,
            twice_cost[:n_active],
            own_g,
            own_mean,
            enough,
        )
        s[:] = g
        for j in range(own_used + 1):
            s[near_columns[j]] = own_s[j]
        products += made
        visited += 2 * near * made + near + near_indices.shape[0]
        for i in range(n):
            moves[i] = (
                row_dot(near_indices[start[i] : stop[i]], near_data[start[i] : stop[i]], s)
                + s[used] * bias
            )
        t, b = search_plane(
            scores,
            moves[:n_neg],
            pos_scores,
            moves[n_neg:],
            np.float64(twice_neg),
            np.float64(twice_pos),
            dot(v, s) - far * far * far_square,
            dot(s, s) + far * far * far_square,
            np.float64(v[used]),
            np.float64(s[used]),
            np.float64(bias),
            min(1e-5, 0.01 * tol) * objective,
        )
        t32 = np.float32(t)
        b32 = np.float32(b)
        for j in range(used + 1):
            v[j] += t32 * s[j]
        v[used] += b32
        far *= 1.0 - t
        for i in range(n_neg):
            scores[i] += t32 * moves[i] + b32
        for q in range(n_pos):
            pos_scores[q] += t32 * moves[n_neg + q] + b32
    for j in range(w.shape[0]):
        step[j] = np.float32(far - 1.0) * w[j]
    for j in range(used + 1):
        step[columns[j]] = v[j] - w[columns[j]]
    return products, visited


@njit(nogil=True, cache=True)
def drop_negligible(
    step: np.ndarray, indptr: np.ndarray, most: float, kept: np.ndarray
) -> tuple[int, int]:
    """Set to zero what is smallest in the cold part of a direction, against what it costs.

    ``step`` is that part, ``indptr`` that of the cold columns. A column contributes the square of
    its step and costs a product its entries; the squares dropped add up to ``most`` at most.
    Fills ``kept`` with the columns left, ascending; returns their number and that of their entries.
    """
    n = 0
    sums = np.zeros(ORDERS, np.float64)
    for j in range(step.shape[0]):
        if step[j] != np.float32(0):
            kept[n] = j
            n += 1
            sums[_order_of_worth(step[j], indptr[j + 1] - indptr[j])] += np.float64(step[j]) ** 2
    least = 0
    dropped = sums[0]
    while least + 1 < ORDERS and dropped <= most:
        least += 1
        dropped += sums[least]
    left = 0
    entries = 0
    for q in range(n):
        j = kept[q]
        of_column = indptr[j + 1] - indptr[j]
        if _order_of_worth(step[j], of_column) < least:
            step[j] = np.float32(0)
        else:
            kept[left] = j
            left += 1
            entries += of_column
    return left, entries


@njit(nogil=True, cache=True)
def _order_of_worth(step: np.float32, entries: int) -> int:
    """The binary order of magnitude of a step's square per entry, counted from 0."""
    square = np.float64(step) * np.float64(step)
    return min(max(math.frexp(square / entries)[1] + ORDERS, 0), ORDERS - 1)
