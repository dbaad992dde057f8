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


@njit(cache=True, nogil=True)
def fit(indptr, rows, values, target, costs, state):  # type: ignore[no-untyped-def]
    """Minimise |w|_1 + sum_i costs[i] log(1 + exp(-target[i] w.x_i)).

    Column j is ``rows[indptr[j]:indptr[j + 1]]`` with their values; targets are -1 and 1.
    Gives w, float64[columns].
    """
    n_columns = len(indptr) - 1
    n = len(target)
    w = np.zeros(n_columns)
    trial = np.zeros(n_columns)
    gradient = np.zeros(n_columns)
    curvature = np.zeros(n_columns)
    index = np.arange(n_columns)
    odds = np.ones(n)  # exp(w.x_i)
    new_odds = np.empty(n)
    moved = np.zeros(n)  # (trial - w).x_i
    pull = np.empty(n)  # costs[i] / (1 + odds[i])
    weight = np.empty(n)  # second derivative of the loss of row i at its margin
    # Values times their row's weight: the rounds of a Newton step read them in order instead of
    # looking up weights, and every product is rounded as it is without.
    weighted = np.empty(len(values))
    _derivatives(odds, costs, pull, weight)
    # The loss of a row of target -1 is that of target 1 and its margin, times its cost.
    negative = np.zeros(n_columns)
    for j in range(n_columns):
        for p in range(indptr[j], indptr[j + 1]):
            if target[rows[p]] < 0:
                negative[j] += costs[rows[p]] * values[p]

    first_violation = 0.0
    widest = np.inf
    accuracy = 1.0
    w_norm = 0.0
    for newton in range(NEWTON_STEPS):
        violation = 0.0
        new_widest = 0.0
        n_active = n_columns
        s = 0
        while s < n_active:
            j = index[s]
            pulled = 0.0
            h = _DAMPING
            for p in range(indptr[j], indptr[j + 1]):
                x = values[p]
                row = rows[p]
                pulled += x * pull[row]
                h += x * x * weight[row]
                weighted[p] = x * weight[row]
            g = negative[j] - pulled
            gradient[j] = g
            curvature[j] = h
            size = _violation(g, w[j])
            if w[j] == 0.0 and size == 0.0 and 1.0 - abs(g) > widest / n:
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
            indptr, rows, values, weighted, gradient, curvature, w, trial, moved, index, n_active,
            accuracy * first_violation, state,
        )  # fmt: skip
        trial_norm = 0.0
        descent = 0.0
        for j in range(n_columns):
            trial_norm += abs(trial[j])
            descent += gradient[j] * (trial[j] - w[j])
        descent += trial_norm - w_norm
        if not _line_search(
            odds, new_odds, moved, target, costs, w, trial, w_norm, trial_norm, descent
        ):
            break
        w_norm = 0.0
        for j in range(n_columns):
            w[j] = trial[j]
            w_norm += abs(w[j])
        odds[:] = new_odds
        _derivatives(odds, costs, pull, weight)
        if rounds == 1:
            accuracy *= 0.25
        widest = new_widest
    return w


@njit(cache=True, nogil=True)
def _violation(g, w):  # type: ignore[no-untyped-def]
    """How far a coordinate is from optimal: the distance of 0 from its subgradient."""
    if w > 0.0:
        return abs(g + 1.0)
    if w < 0.0:
        return abs(g - 1.0)
    return max(abs(g) - 1.0, 0.0)


@njit(cache=True, nogil=True)
def _derivatives(odds, costs, pull, weight):  # type: ignore[no-untyped-def]
    for i in range(len(odds)):
        sigma = 1.0 / (1.0 + odds[i])
        pull[i] = costs[i] * sigma
        weight[i] = costs[i] * odds[i] * (sigma * sigma)


@njit(cache=True, nogil=True)
def _minimise_model(  # type: ignore[no-untyped-def]
    indptr, rows, values, weighted, gradient, curvature, w, trial, moved, index, n_active, enough,
    state,
):  # fmt: skip
    """Coordinate descent on the quadratic model with the L1 norm; the number of rounds."""
    n = len(moved)
    moved[:] = 0.0
    n_left = n_active
    widest = np.inf
    rounds = 0
    while rounds < ROUNDS:
        new_widest = 0.0
        total = 0.0
        shuffle(state, index, n_left)
        s = 0
        while s < n_left:
            j = index[s]
            h = curvature[j]
            g = gradient[j] + (trial[j] - w[j]) * _DAMPING
            for p in range(indptr[j], indptr[j + 1]):
                g += weighted[p] * moved[rows[p]]
            size = _violation(g, trial[j])
            if trial[j] == 0.0 and size == 0.0 and 1.0 - abs(g) > widest / n:
                n_left -= 1
                index[s], index[n_left] = index[n_left], index[s]
                continue
            new_widest = max(new_widest, size)
            total += size
            s += 1
            if g + 1.0 < h * trial[j]:
                step = -(g + 1.0) / h
            elif g - 1.0 > h * trial[j]:
                step = -(g - 1.0) / h
            else:
                step = -trial[j]
            if abs(step) < 1e-12:
                continue
            step = min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
            trial[j] += step
            for p in range(indptr[j], indptr[j + 1]):
                moved[rows[p]] += values[p] * step
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
    odds, new_odds, moved, target, costs, w, trial, w_norm, trial_norm, descent
):
    """Halve the step (in ``moved`` and ``trial``) until the objective falls enough.

    A step so long that the odds overflow gives infinity or not-a-number, and is halved, too.
    """
    n = len(odds)
    from_negatives = 0.0
    for i in range(n):
        if target[i] < 0:
            from_negatives += costs[i] * moved[i]
    for _ in range(LINE_SEARCHES):
        change = trial_norm - w_norm + from_negatives - _SUFFICIENT * descent
        for i in range(n):
            factor = np.exp(moved[i])
            new_odds[i] = odds[i] * factor
            change += costs[i] * np.log((1.0 + new_odds[i]) / (factor + new_odds[i]))
        if change <= 0.0:
            return True
        trial_norm = 0.0
        for j in range(len(w)):
            trial[j] = 0.5 * (w[j] + trial[j])
            trial_norm += abs(trial[j])
        for i in range(n):
            moved[i] *= 0.5
        from_negatives *= 0.5
        descent *= 0.5
    return False
