"""L1-regularised logistic regression on sparse columns: the hyperplane of a FastXML node.

Newton steps with coordinate descent on the quadratic model and a line search (Yuan, Ho and Lin's
newGLMNET, liblinear's -s 6), with the bounds that FastXML sets: at most 10 Newton steps of at most
10 rounds. The bias is a column like any other, and is regularised.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.trees._mersenne import shuffle

EPS = 0.01
NEWTON_STEPS = 10
ROUNDS = 10
LINE_SEARCHES = 20
_DAMPING = 1e-12
_SUFFICIENT = 0.01
_LONGEST_STEP = 10.0
# Fields that are read together lie together: columns come in random order, rows with gaps.
_SLOPE = np.dtype([("pull", np.float64), ("weight", np.float64)])
"""Of a row, at its margin w.x_i: cost / (1 + exp(w.x_i)), and its loss' second derivative."""
_ROW = np.dtype([("weight", np.float64), ("moved", np.float64)])
"""That second derivative again, and (trial - w).x_i: the two that coordinate descent reads."""
_COLUMN = np.dtype(
    [
        ("start", np.uint64),
        ("stop", np.uint64),
        ("gradient", np.float64),
        ("curvature", np.float64),
        ("w", np.float64),
        ("trial", np.float64),
    ]
)


@njit(cache=True, nogil=True)
def fit(indptr, entries, target, costs, state):  # type: ignore[no-untyped-def]
    """Minimise |w|_1 + sum_i costs[i] log(1 + exp(-target[i] w.x_i)).

    Column j is ``entries[indptr[j]:indptr[j + 1]]``, which are of ``_columns.ENTRY``; targets are
    -1 and 1. Sums run in the order of the authors' program, whose weights these are to the bit.
    Gives w, float64[columns].
    """
    n_columns = len(indptr) - 1
    n = len(target)
    columns = np.zeros(n_columns, _COLUMN)
    for j in range(n_columns):
        columns[j].start = indptr[j]
        columns[j].stop = indptr[j + 1]
    slopes = np.zeros(n, _SLOPE)
    rows = np.zeros(n, _ROW)
    index = np.arange(n_columns).astype(np.uint32)
    odds = np.ones(n)  # exp(w.x_i)
    new_odds = np.empty(n)
    sizes = np.empty(n_columns)
    _derivatives(odds, costs, slopes, rows)
    negative = _negative_sums(columns, entries, target, costs)

    first_violation = 0.0
    widest = np.inf
    accuracy = 1.0
    w_norm = 0.0
    for newton in range(NEWTON_STEPS):
        _gradients(columns, entries, slopes, negative, widest / n, sizes)
        violation = 0.0
        new_widest = 0.0
        n_active = n_columns
        s = 0
        while s < n_active:
            size = sizes[index[s]]
            if size < 0.0:
                n_active -= 1
                index[s], index[n_active] = index[n_active], index[s]
                continue
            new_widest = max(new_widest, size)
            violation += size
            s += 1
        if newton == 0:
            first_violation = violation
        if violation <= EPS * first_violation:
            break

        rounds = _minimise_model(
            columns, entries, rows, index, n_active, accuracy * first_violation, state
        )
        trial_norm = 0.0
        descent = 0.0
        for j in range(n_columns):
            trial_norm += abs(columns[j].trial)
            descent += columns[j].gradient * (columns[j].trial - columns[j].w)
        descent += trial_norm - w_norm
        if not _line_search(
            odds, new_odds, rows, columns, target, costs, w_norm, trial_norm, descent
        ):
            break
        w_norm = 0.0
        for j in range(n_columns):
            columns[j].w = columns[j].trial
            w_norm += abs(columns[j].w)
        odds[:] = new_odds
        _derivatives(odds, costs, slopes, rows)
        if rounds == 1:
            accuracy *= 0.25
        widest = new_widest
    w = np.empty(n_columns)
    for j in range(n_columns):
        w[j] = columns[j].w
    return w


@njit(cache=True, nogil=True)
def _negative_sums(columns, entries, target, costs):  # type: ignore[no-untyped-def]
    """By column, the values of rows of target -1 times their costs.

    The loss of a row of target -1 is that of target 1 and its margin, times its cost.
    """
    of_row = np.zeros(len(target), np.float32)
    for i in range(len(target)):
        if target[i] < 0:
            of_row[i] = costs[i]
    out = np.zeros(len(columns))
    for j in range(len(columns)):
        total = 0.0
        for p in range(columns[j].start, columns[j].stop):
            total += of_row[entries[p].row] * entries[p].value
        out[j] = total
    return out


@njit(cache=True, nogil=True)
def _gradients(columns, entries, slopes, negative, clear, sizes):  # type: ignore[no-untyped-def]
    """First and second derivatives by all columns, in the order in which they are stored.

    ``sizes`` become their violations, or -1 for a weight of zero whose gradient is more than
    ``clear`` away from moving it: this Newton step leaves it out.
    """
    for j in range(len(columns)):
        column = columns[j]
        pulled = 0.0
        h = _DAMPING
        for p in range(column.start, column.stop):
            x = entries[p].value
            row = entries[p].row
            pulled += x * slopes[row].pull
            h += x * x * slopes[row].weight
        g = negative[j] - pulled
        column.gradient = g
        column.curvature = h
        size = _violation(g, column.w)
        left_out = column.w == 0.0 and size == 0.0 and 1.0 - abs(g) > clear
        sizes[j] = -1.0 if left_out else size


@njit(cache=True, nogil=True)
def _violation(g, w):  # type: ignore[no-untyped-def]
    """How far a coordinate is from optimal: the distance of 0 from its subgradient."""
    if w > 0.0:
        return abs(g + 1.0)
    if w < 0.0:
        return abs(g - 1.0)
    return max(abs(g) - 1.0, 0.0)


@njit(cache=True, nogil=True)
def _derivatives(odds, costs, slopes, rows):  # type: ignore[no-untyped-def]
    for i in range(len(odds)):
        sigma = 1.0 / (1.0 + odds[i])
        slopes[i].pull = costs[i] * sigma
        slopes[i].weight = costs[i] * odds[i] * (sigma * sigma)
        rows[i].weight = slopes[i].weight


@njit(cache=True, nogil=True)
def _minimise_model(columns, entries, rows, index, n_active, enough, state):  # type: ignore[no-untyped-def]
    """Coordinate descent on the quadratic model with the L1 norm; the number of rounds."""
    n = len(rows)
    for i in range(n):
        rows[i].moved = 0.0
    n_left = n_active
    widest = np.inf
    rounds = 0
    while rounds < ROUNDS:
        new_widest = 0.0
        total = 0.0
        shuffle(state, index, n_left)
        clear = widest / n
        s = 0
        while s < n_left:
            column = columns[index[s]]
            h = column.curvature
            at = column.trial
            g = column.gradient + (at - column.w) * _DAMPING
            for p in range(column.start, column.stop):
                row = entries[p].row
                g += entries[p].value * rows[row].weight * rows[row].moved
            size = _violation(g, at)
            if at == 0.0 and size == 0.0 and 1.0 - abs(g) > clear:
                n_left -= 1
                index[s], index[n_left] = index[n_left], index[s]
                continue
            new_widest = max(new_widest, size)
            total += size
            s += 1
            if g + 1.0 < h * at:
                step = -(g + 1.0) / h
            elif g - 1.0 > h * at:
                step = -(g - 1.0) / h
            else:
                step = -at
            if abs(step) < 1e-12:
                continue
            step = min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
            column.trial = at + step
            for p in range(column.start, column.stop):
                rows[entries[p].row].moved += entries[p].value * step
        rounds += 1
        if total <= enough:
            if n_left == n_active:
                break
            n_left = n_active
            widest = np.inf
        else:
            widest = new_widest
    return rounds


@njit(cache=True, nogil=True, error_model="numpy")
def _line_search(  # type: ignore[no-untyped-def]
    odds, new_odds, rows, columns, target, costs, w_norm, trial_norm, descent
):
    """Halve the step (in ``rows`` and ``columns``) until the objective falls enough.

    A step so long that the odds overflow gives infinity or not-a-number, and is halved, too.
    """
    n = len(odds)
    from_negatives = 0.0
    for i in range(n):
        if target[i] < 0:
            from_negatives += costs[i] * rows[i].moved
    for _ in range(LINE_SEARCHES):
        change = trial_norm - w_norm + from_negatives - _SUFFICIENT * descent
        for i in range(n):
            factor = np.exp(rows[i].moved)
            new_odds[i] = odds[i] * factor
            change += costs[i] * np.log((1.0 + new_odds[i]) / (factor + new_odds[i]))
        if change <= 0.0:
            return True
        trial_norm = 0.0
        for j in range(len(columns)):
            columns[j].trial = 0.5 * (columns[j].w + columns[j].trial)
            trial_norm += abs(columns[j].trial)
        for i in range(n):
            rows[i].moved *= 0.5
        from_negatives *= 0.5
        descent *= 0.5
    return False
