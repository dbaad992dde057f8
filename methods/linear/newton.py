"""Newton's method for the squared hinge, many labels in step (PW eq. 22 with liblinear's 1/2).

For each label: min over w of  1/2 |w|^2 + sum_i c_i max(0, 1 - y_i w.x_i)^2.

A round of a label is: the gradient and the active rows (those inside the margin), conjugate
gradients on the active rows alone, then an exact search in the plane of that direction and the
bias. Labels share only the product of X with their directions, which reads X once for all.

Three things keep the rounds few and the active sets small:

* the start is w = 0 with bias -1, where no negative is active (+1 where positives dominate), so
  that active sets grow towards the solution's instead of shrinking to it;
* one eigenvalue of the Hessian grows with the number of active rows, that of the mean row: it is
  taken out by a rank-one preconditioner, ``(I + k m m')^-1``;
* the scores move by a known amount with the bias, so that the search over it costs no product.

The stop is certified by the dual problem: with a_i = 2 c_i slack_i, any a' >= 0 bounds the optimum
from below, by sum a' - 1/2 |sum a' y x|^2 - sum a'^2 / (4 c). For a' = a the gap is ``1/2 |g|^2``;
scaling the two sides' a apart, to the best, about halves it (see :func:`relative_gap`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.linear.kernels import (
    SPLIT_SUMS,
    VECTOR,
    block_product,
    cg_advance,
    cg_turn,
    curvature_product,
    dot,
    gather_rows,
    pack_columns,
    row_add,
)

NEVER = np.float32(-1e30)  # the score of a positive row in the list of the negatives
FORCING = 0.1  # how far a round reduces the residual of its Newton system
SPARE = 3.0  # a residual of at most this many times tol * objective is accurate enough
MAX_CG = 250
ROUNDING = 2e-6  # relative error of an objective from scores in float32, taken amply
MAX_SEARCH = 40

# Columns of the per-label report.
OBJECTIVE, GAP, ROUNDS, PRODUCTS, ACTIVE = range(5)
REPORT = 5


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


@njit(nogil=True, cache=True)
def _newton_direction(
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
    """Conjugate gradients for ``H step = -gradient``; returns the products with H made.

    H is the identity on columns that no active row has, where the solution is at hand; the
    others are renumbered. Ends when the residual is small against the gradient in the
    preconditioner's norm, or when ``r.r <= enough``: the residual is the gradient after the
    step, should no row change sides.
    """
    for j in range(step.shape[0]):
        step[j] = -gradient[j]
    near_indptr, near_indices, near_data, used = gather_rows(
        indptr, indices, data, active, n_active, number, columns
    )
    columns[used] = step.shape[0] - 1  # the bias
    size = used + 1
    s = np.zeros(size, np.float32)
    p = np.zeros(size, np.float32)
    hp = np.zeros(size, np.float32)
    r = np.empty(size, np.float32)
    near_mean = np.empty(size, np.float32)
    for j in range(size):
        r[j] = step[columns[j]]
        near_mean[j] = mean[columns[j]]
    total_cost = 0.0
    for a in range(n_active):
        total_cost += np.float64(twice_cost[a])
    pull = total_cost / (1.0 + total_cost * dot(near_mean, near_mean))
    rr, mr = cg_advance(np.float32(0), p, hp, s, r, near_mean)
    rz = rr - pull * mr * mr
    target = FORCING * FORCING * rz
    pp = cg_turn(np.float32(0), np.float32(pull * mr), r, near_mean, p, hp)
    products = 0
    while products < MAX_CG:
        php = pp + curvature_product(near_indptr, near_indices, near_data, bias, twice_cost, p, hp)
        products += 1
        rr, mr = cg_advance(np.float32(rz / php), p, hp, s, r, near_mean)
        after = rr - pull * mr * mr
        if after <= target or rr <= enough:
            break
        pp = cg_turn(np.float32(after / rz), np.float32(pull * mr), r, near_mean, p, hp)
        rz = after
    for j in range(size):
        step[columns[j]] = s[j]
    return products


@njit(nogil=True, cache=True)
def train_labels(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    n_columns: int,
    bias: np.float32,
    pos_indptr: np.ndarray,
    pos_rows: np.ndarray,
    pos_cost: np.ndarray,
    neg_cost: np.ndarray,
    tol: float,
    max_rounds: int,
    slots: int,
    prune: np.float32,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Train the labels whose positive rows are ``pos_rows[pos_indptr[l]:pos_indptr[l + 1]]``.

    ``slots`` labels are in work at a time; one that is done leaves its place to the next.
    Returns the weights with ``|w| >= prune`` as (indptr, columns, values), the bias in column
    ``n_columns``, and a report float64[labels, REPORT].
    """
    n = indptr.shape[0] - 1
    n_labels = pos_indptr.shape[0] - 1
    size = n_columns + 1
    slots = min(slots, n_labels)
    width_max = (slots + VECTOR - 1) // VECTOR * VECTOR

    weights = np.empty((slots, size), np.float32)
    steps = np.empty((slots, size), np.float32)
    block_memory = np.empty(n_columns * width_max, np.float32)
    offset_memory = np.empty(width_max, np.float32)
    scores = np.empty((slots, n), np.float32)
    moves = np.empty((slots, n), np.float32)
    pos_scores = np.empty(pos_rows.shape[0], np.float32)
    pos_moves = np.empty(pos_rows.shape[0], np.float32)
    label_of = np.full(slots, -1, np.int64)
    lane_slot = np.empty(slots, np.int64)
    objective_of = np.empty(slots, np.float64)
    active = np.empty(n, np.int64)
    twice_cost = np.empty(n, np.float32)
    g = np.empty(size, np.float32)
    halfway = np.empty(size, np.float32)
    number = np.full(size, -1, np.int32)
    columns_of = np.empty(size, np.int64)

    mean = np.zeros(size, np.float32)
    share = np.float32(1.0 / max(n, 1))
    for i in range(n):
        row_add(indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]], share, mean)
    mean[n_columns] = bias

    report = np.zeros((n_labels, REPORT), np.float64)
    starts = np.zeros(n_labels, np.int64)
    counts = np.zeros(n_labels, np.int64)
    out_columns = np.empty(max(1024, size), np.int64)
    out_values = np.empty(max(1024, size), np.float32)
    used = 0
    next_label = 0

    while True:
        lanes = 0
        for slot in range(slots):
            while True:
                if label_of[slot] < 0:
                    if next_label == n_labels:
                        break
                    label = next_label
                    next_label += 1
                    label_of[slot] = label
                    lo, hi = pos_indptr[label], pos_indptr[label + 1]
                    negatives_win = neg_cost[label] * (n - (hi - lo)) >= pos_cost[label] * (hi - lo)
                    start = -bias if negatives_win else bias
                    weights[slot, :] = np.float32(0)
                    weights[slot, n_columns] = start
                    scores[slot, :] = start * bias
                    for q in range(lo, hi):
                        scores[slot, pos_rows[q]] = NEVER
                        pos_scores[q] = start * bias
                label = label_of[slot]
                lo, hi = pos_indptr[label], pos_indptr[label + 1]
                w = weights[slot]
                score = scores[slot]

                n_active = 0
                neg_loss = 0.0
                neg_sum = 0.0
                g[:] = w
                double = np.float32(2.0 * neg_cost[label])
                for k in range(n):
                    slack = np.float32(1) + score[k]
                    if slack > np.float32(0):
                        active[n_active] = k
                        twice_cost[n_active] = double
                        n_active += 1
                        neg_loss += 0.5 * np.float64(double) * np.float64(slack) * np.float64(slack)
                        u = double * slack
                        neg_sum += np.float64(u)
                        a, b = indptr[k], indptr[k + 1]
                        row_add(indices[a:b], data[a:b], u, g)
                g[n_columns] = np.float32(np.float64(w[n_columns]) + neg_sum) * bias
                halfway[:] = g
                pos_loss = 0.0
                pos_sum = 0.0
                double = np.float32(2.0 * pos_cost[label])
                for q in range(lo, hi):
                    slack = np.float32(1) - pos_scores[q]
                    if slack > np.float32(0):
                        k = pos_rows[q]
                        active[n_active] = k
                        twice_cost[n_active] = double
                        n_active += 1
                        pos_loss += 0.5 * np.float64(double) * np.float64(slack) * np.float64(slack)
                        u = -double * slack
                        pos_sum -= np.float64(u)
                        a, b = indptr[k], indptr[k + 1]
                        row_add(indices[a:b], data[a:b], u, g)
                at_bias = np.float64(w[n_columns]) + neg_sum - pos_sum
                g[n_columns] = np.float32(at_bias) * bias
                objective, gap = relative_gap(w, halfway, g, neg_loss, pos_loss, neg_sum, pos_sum)
                report[label, OBJECTIVE] = objective
                report[label, GAP] = gap
                report[label, ACTIVE] = n_active
                if gap > tol and report[label, ROUNDS] < max_rounds:
                    report[label, ROUNDS] += 1.0
                    objective_of[slot] = objective
                    report[label, PRODUCTS] += _newton_direction(
                        indptr,
                        indices,
                        data,
                        bias,
                        active,
                        twice_cost,
                        n_active,
                        g,
                        mean,
                        SPARE * tol * objective,
                        number,
                        columns_of,
                        steps[lanes],
                    )
                    lane_slot[lanes] = slot
                    lanes += 1
                    break

                # Done: write what is kept, and let the next label in.
                if used + size > out_columns.shape[0]:
                    room = max(2 * out_columns.shape[0], used + size)
                    more_columns = np.empty(room, np.int64)
                    more_values = np.empty(room, np.float32)
                    more_columns[:used] = out_columns[:used]
                    more_values[:used] = out_values[:used]
                    out_columns = more_columns
                    out_values = more_values
                starts[label] = used
                for j in range(size):
                    if w[j] != np.float32(0) and abs(w[j]) >= prune:
                        out_columns[used] = j
                        out_values[used] = w[j]
                        used += 1
                counts[label] = used - starts[label]
                label_of[slot] = -1
        if lanes == 0:
            break

        width = (lanes + VECTOR - 1) // VECTOR * VECTOR
        block = block_memory[: n_columns * width].reshape((n_columns, width))
        offset = offset_memory[:width]
        pack_columns(steps, lanes, block, offset)
        block_product(indptr, indices, data, block, offset * bias, lanes, moves)
        for lane in range(lanes):
            slot = lane_slot[lane]
            label = label_of[slot]
            lo, hi = pos_indptr[label], pos_indptr[label + 1]
            w, s = weights[slot], steps[lane]
            score, move = scores[slot], moves[lane]
            for q in range(lo, hi):
                pos_moves[q] = move[pos_rows[q]]
            t, b = search_plane(
                score,
                move,
                pos_scores[lo:hi],
                pos_moves[lo:hi],
                2.0 * neg_cost[label],
                2.0 * pos_cost[label],
                dot(w, s),
                dot(s, s),
                np.float64(w[n_columns]),
                np.float64(s[n_columns]),
                np.float64(bias),
                min(1e-5, 0.01 * tol) * objective_of[slot],
            )
            t32 = np.float32(t)
            b32 = np.float32(b)
            for j in range(size):
                w[j] += t32 * s[j]
            w[n_columns] += b32
            for k in range(n):
                score[k] += t32 * move[k] + b32
            for q in range(lo, hi):
                pos_scores[q] += t32 * pos_moves[q] + b32

    order = np.zeros(n_labels + 1, np.int64)
    for label in range(n_labels):
        order[label + 1] = order[label] + counts[label]
    columns = np.empty(used, np.int64)
    values = np.empty(used, np.float32)
    for label in range(n_labels):
        a = order[label]
        for q in range(counts[label]):
            columns[a + q] = out_columns[starts[label] + q]
            values[a + q] = out_values[starts[label] + q]
    return order, columns, values, report
