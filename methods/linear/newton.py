"""Newton's method for the squared hinge, many labels in step (PW eq. 22 with liblinear's 1/2).

For each label: min over w of  1/2 |w|^2 + sum_i c_i max(0, 1 - y_i w.x_i)^2.

A round of a label is: the gradient and the active rows (those inside the margin), a direction found
on these rows or a few more (:mod:`methods.linear.direction`), then an exact search in the plane of
that direction and the bias. Labels share only the product of X with their directions, which reads
the hot columns of X once for all (:mod:`methods.linear.layout`).

Three things keep the rounds few and the active sets small:

* the start is w = 0 with bias -1, where no negative is active (+1 where positives dominate), so
  that active sets grow towards the solution's instead of shrinking to it;
* one eigenvalue of the Hessian grows with the number of active rows, that of the mean row: it is
  taken out by a rank-one preconditioner, ``(I + k m m')^-1``;
* the scores move by a known amount with the bias, so that the search over it costs no product.

A label is done when its gap is certified to be at most ``tol`` (:mod:`methods.linear.gap`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.linear.direction import (
    SPARE,
    candidate_cut,
    candidate_direction,
    drop_negligible,
    newton_direction,
)
from methods.linear.gap import relative_gap
from methods.linear.kernels import (
    FUSED,
    VECTOR,
    add_columns,
    block_product,
    dot,
    pack_columns,
    row_add,
)
from methods.linear.search import search_plane

NEVER = np.float32(-1e30)  # the score of a positive row in the list of the negatives
PER_ACTIVE = 4  # candidates for each active row, at least
MOST_CANDIDATES = 0.25  # of all rows; beyond that, the active rows alone
# Of the gradient's square: so many active rows are left behind by the next rounds, and a direction
# on them need not be accurate.
ROUGH = 0.1
# The most that a direction is cut by: of what the tolerance leaves open, and of its own square.
DROPPED, DROPPED_OF_STEP = 0.1, 0.02
# A product of the cold columns row by row, for many labels, takes as long as so many by column
# for one label, and a label with a smaller share of the entries is not worth a place in it.
BY_ROW, LEAST_BY_ROW = 5.0, 0.02

# Columns of the per-label report.
OBJECTIVE, GAP, ROUNDS, PRODUCTS, ACTIVE, VISITED = range(6)
REPORT = 6


@njit(nogil=True, cache=True, fastmath=FUSED)
def _gradient(
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
    active: np.ndarray,
    twice_cost: np.ndarray,
    halfway: np.ndarray,
    g: np.ndarray,
) -> tuple[int, float, float]:
    """Fill ``g`` and the active rows; return their number, the objective and its relative gap."""
    last = w.shape[0] - 1
    n_active = 0
    neg_loss = 0.0
    neg_sum = 0.0
    g[:] = w
    for k in range(score.shape[0]):
        slack = np.float32(1) + score[k]
        if slack > np.float32(0):
            active[n_active] = k
            twice_cost[n_active] = twice_neg
            n_active += 1
            u = twice_neg * slack
            neg_loss += 0.5 * np.float64(u) * np.float64(slack)
            neg_sum += np.float64(u)
            row_add(indices[indptr[k] : indptr[k + 1]], data[indptr[k] : indptr[k + 1]], u, g)
    g[last] = np.float32(np.float64(w[last]) + neg_sum) * bias
    halfway[:] = g
    pos_loss = 0.0
    pos_sum = 0.0
    for q in range(pos_rows.shape[0]):
        slack = np.float32(1) - pos_score[q]
        if slack > np.float32(0):
            k = pos_rows[q]
            active[n_active] = k
            twice_cost[n_active] = twice_pos
            n_active += 1
            u = twice_pos * slack
            pos_loss += 0.5 * np.float64(u) * np.float64(slack)
            pos_sum += np.float64(u)
            row_add(indices[indptr[k] : indptr[k + 1]], data[indptr[k] : indptr[k + 1]], -u, g)
    g[last] = np.float32(np.float64(w[last]) + neg_sum - pos_sum) * bias
    objective, gap = relative_gap(w, halfway, g, neg_loss, pos_loss, neg_sum, pos_sum)
    return n_active, objective, gap


@njit(nogil=True, cache=True)
def train_labels(
    indptr: np.ndarray,
    hot_stop: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    columns: np.ndarray,
    n_hot: int,
    cold_indptr: np.ndarray,
    cold_rows: np.ndarray,
    cold_data: np.ndarray,
    candidates: int,
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

    X is a :class:`methods.linear.layout.Layout`, but ``columns`` holds the name of each column,
    the bias last. ``slots`` labels are in work at a time; one that is done leaves its place to the
    next. Returns the weights with ``|w| >= prune`` as (indptr, names, values), names ascending, and
    a report float64[labels, REPORT].
    """
    n = indptr.shape[0] - 1
    n_columns = columns.shape[0] - 1
    n_labels = pos_indptr.shape[0] - 1
    size = n_columns + 1
    slots = min(slots, n_labels)
    width_max = (slots + VECTOR - 1) // VECTOR * VECTOR

    weights = np.empty((slots, size), np.float32)
    steps = np.empty((slots, size), np.float32)
    hot_memory = np.empty(n_hot * width_max, np.float32)
    cold_memory = np.empty((n_columns - n_hot) * width_max, np.float32)
    by_row = np.empty(slots, np.int64)
    cold_entries = np.zeros(slots, np.int64)
    kept = np.empty(1024, np.int32)  # the cold columns of each lane's direction
    kept_indptr = np.zeros(slots + 1, np.int64)
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
    out_columns = np.empty(max(1024, size), np.int32)
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
                n_active, objective, gap = _gradient(
                    indptr,
                    indices,
                    data,
                    bias,
                    w,
                    scores[slot],
                    pos_rows[lo:hi],
                    pos_scores[lo:hi],
                    np.float32(2.0 * neg_cost[label]),
                    np.float32(2.0 * pos_cost[label]),
                    active,
                    twice_cost,
                    halfway,
                    g,
                )
                report[label, OBJECTIVE] = objective
                report[label, GAP] = gap
                report[label, ACTIVE] = n_active
                near = 0
                for a in range(n_active):
                    near += indptr[active[a] + 1] - indptr[active[a]]
                report[label, VISITED] += near
                if gap > tol and report[label, ROUNDS] < max_rounds:
                    report[label, ROUNDS] += 1.0
                    objective_of[slot] = objective
                    wanted = max(candidates, PER_ACTIVE * n_active)
                    if candidates > 0 and wanted <= MOST_CANDIDATES * n:
                        products, visited = candidate_direction(
                            indptr,
                            indices,
                            data,
                            bias,
                            w,
                            scores[slot],
                            pos_rows[lo:hi],
                            pos_scores[lo:hi],
                            np.float32(2.0 * neg_cost[label]),
                            np.float32(2.0 * pos_cost[label]),
                            candidate_cut(scores[slot], wanted),
                            mean,
                            tol,
                            active,
                            number,
                            columns_of,
                            steps[lanes],
                        )
                    else:
                        enough = SPARE * tol * objective
                        if candidates > 0:
                            enough = max(enough, ROUGH * dot(g, g))
                        products = newton_direction(
                            indptr,
                            indices,
                            data,
                            bias,
                            active,
                            twice_cost,
                            n_active,
                            g,
                            mean,
                            enough,
                            number,
                            columns_of,
                            steps[lanes],
                        )
                        visited = 2 * near * products
                    report[label, PRODUCTS] += products
                    report[label, VISITED] += visited
                    if n_hot < n_columns:
                        own = steps[lanes]
                        most = min(DROPPED * tol * objective, DROPPED_OF_STEP * dot(own, own))
                        n_kept, cold_entries[lanes] = drop_negligible(
                            own[n_hot:n_columns], cold_indptr, most, columns_of
                        )
                        if kept_indptr[lanes] + n_kept > kept.shape[0]:
                            kept = np.append(kept, np.empty(n_kept + kept.shape[0], np.int32))
                        for q in range(n_kept):
                            kept[kept_indptr[lanes] + q] = columns_of[q]
                        kept_indptr[lanes + 1] = kept_indptr[lanes] + n_kept
                    lane_slot[lanes] = slot
                    lanes += 1
                    break

                # Done: write what is kept, and let the next label in.
                if used + size > out_columns.shape[0]:
                    room = max(2 * out_columns.shape[0], used + size)
                    more_columns = np.empty(room, np.int32)
                    more_values = np.empty(room, np.float32)
                    more_columns[:used] = out_columns[:used]
                    more_values[:used] = out_values[:used]
                    out_columns = more_columns
                    out_values = more_values
                starts[label] = used
                n_kept = 0
                for j in range(size):
                    if w[j] != np.float32(0) and abs(w[j]) >= prune:
                        columns_of[n_kept] = j
                        n_kept += 1
                own_names = columns[columns_of[:n_kept]]
                for q in np.argsort(own_names):
                    out_columns[used] = own_names[q]
                    out_values[used] = w[columns_of[q]]
                    used += 1
                counts[label] = n_kept
                label_of[slot] = -1
        if lanes == 0:
            break

        for lane in range(lanes):
            moves[lane, :] = steps[lane, n_columns] * bias
        width = (lanes + VECTOR - 1) // VECTOR * VECTOR
        block = hot_memory[: n_hot * width].reshape((n_hot, width))
        everyone = np.arange(lanes)
        pack_columns(steps, everyone, 0, block)
        block_product(indptr[:-1], hot_stop, indices, data, block, 0, everyone, moves)
        n_cold = cold_rows.shape[0]
        total = 0
        for lane in range(lanes):
            if cold_entries[lane] > LEAST_BY_ROW * n_cold:
                total += cold_entries[lane]
        n_by_row = 0
        for lane in range(lanes):
            entries = cold_entries[lane]
            if total > BY_ROW * n_cold and entries > LEAST_BY_ROW * n_cold:
                by_row[n_by_row] = lane
                n_by_row += 1
            elif entries > 0:
                add_columns(
                    cold_indptr,
                    cold_rows,
                    cold_data,
                    kept[kept_indptr[lane] : kept_indptr[lane + 1]],
                    steps[lane, n_hot:n_columns],
                    moves[lane],
                )
            report[label_of[lane_slot[lane]], VISITED] += entries
        if n_by_row > 0:
            width = (n_by_row + VECTOR - 1) // VECTOR * VECTOR
            block = cold_memory[: (n_columns - n_hot) * width].reshape((n_columns - n_hot, width))
            pack_columns(steps, by_row[:n_by_row], n_hot, block)
            block_product(
                hot_stop, indptr[1:], indices, data, block, n_hot, by_row[:n_by_row], moves
            )
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
    names = np.empty(used, np.int32)
    values = np.empty(used, np.float32)
    for label in range(n_labels):
        a = order[label]
        for q in range(counts[label]):
            names[a + q] = out_columns[starts[label] + q]
            values[a + q] = out_values[starts[label] + q]
    return order, names, values, report
