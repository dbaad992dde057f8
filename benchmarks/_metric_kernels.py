"""Compiled loops behind :mod:`benchmarks.metrics`: one pass over the test rows, top-k in.

Rows are walked in order by one thread: the sums do not depend on the number of cores, and the
work is bound by memory, not by arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import njit

P, R, NDCG, PSP, PSNDCG = range(5)
"""Places of the per-point metrics on the first axis of the arrays below."""

RERANKED = 5
"""How many labels DiSMEC's post-processor moves."""


@njit(cache=True)
def _position(indices, start, stop, label):  # type: ignore[no-untyped-def]
    """Where the label is, or would be, in a sorted row."""
    while start < stop:
        middle = (start + stop) // 2
        if indices[middle] < label:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True)
def find_fault(top, kmax, n_labels):  # type: ignore[no-untyped-def]
    """The first row whose top holds a label twice or out of range, as (row, label), or (-1, -1)."""
    for i in range(top.shape[0]):
        for r in range(kmax):
            label = top[i, r]
            if label >= n_labels or label < -1:
                return i, label
            if label < 0:
                continue
            for s in range(r):
                if top[i, s] == label:
                    return i, label
    return -1, -1


@njit(cache=True)
def rerank_by_propensity(top, scores, weights):  # type: ignore[no-untyped-def]
    """DiSMEC's second ranking: within the top 5, rare labels with a positive margin go first.

    Each place takes the first of the labels still to be placed, unless a later one has a positive
    margin and a larger inverse propensity (strictly, so the better scored wins a tie).
    """
    out = top.copy()
    head = min(RERANKED, top.shape[1])
    waiting = np.empty(head, dtype=np.int64)
    for i in range(top.shape[0]):
        n_waiting = 0
        for r in range(head):
            if top[i, r] >= 0:
                waiting[n_waiting] = r
                n_waiting += 1
        for place in range(n_waiting):
            left = n_waiting - place
            best = 0
            for j in range(1, left):
                rank = waiting[j]
                if scores[i, rank] > 0 and (weights[top[i, rank]] > weights[top[i, waiting[best]]]):
                    best = j
            out[i, place] = top[i, waiting[best]]
            for j in range(best, left - 1):
                waiting[j] = waiting[j + 1]
        for place in range(n_waiting, head):
            out[i, place] = -1
    return out


@njit(cache=True)
def score_rows(  # type: ignore[no-untyped-def]
    top,
    ps_top,
    indptr,
    indices,
    weights,
    counted,
    ks,
    fixed_ndcg,
    row_normalised_psndcg,
    bins_of,
    n_bins,
):
    """Numerators and denominators [metric, k, row], numerators by bin, and labels found.

    ``top`` ranks for P, R and nDCG, ``ps_top`` for the propensity-scored metrics. ``bins_of`` is
    int[L, s]: the (up to s) bins of a label, padded with -1.
    """
    n, kmax = top.shape
    n_ks = len(ks)
    longest = ks.max()
    discount = 1.0 / np.log2(np.arange(longest) + 2.0)
    ideal = np.zeros(longest + 1)
    ideal[1:] = np.cumsum(discount)
    numerators = np.zeros((5, n_ks, n))
    denominators = np.zeros((5, n_ks, n))
    by_bin = np.zeros((5, n_ks, n_bins))
    found = np.zeros((n_ks, len(weights)), dtype=np.bool_)
    best = np.empty(longest)
    gain = np.empty(5)
    for i in range(n):
        if not counted[i]:
            continue
        start, stop = indptr[i], indptr[i + 1]
        m = stop - start
        filled = 0
        for e in range(start, stop):
            w = weights[indices[e]]
            if filled == longest and w <= best[filled - 1]:
                continue
            place = min(filled, longest - 1)
            while place > 0 and best[place - 1] < w:
                best[place] = best[place - 1]
                place -= 1
            best[place] = w
            filled = min(filled + 1, longest)
        for t in range(n_ks):
            k = ks[t]
            reachable = max(min(k, m), 1)  # a row without labels has gain 0 over any norm
            ndcg_norm = ideal[k] if fixed_ndcg else ideal[reachable]
            ps_norm = ideal[reachable] if row_normalised_psndcg else 1.0
            denominators[P, t, i] = 1.0
            denominators[R, t, i] = 1.0
            denominators[NDCG, t, i] = 1.0
            for r in range(min(k, m)):
                denominators[PSP, t, i] += best[r]
                denominators[PSNDCG, t, i] += best[r] * discount[r] / ps_norm
            for r in range(min(k, kmax)):
                for side in range(2):
                    label = top[i, r] if side == 0 else ps_top[i, r]
                    if label < 0:
                        continue
                    at = _position(indices, start, stop, label)
                    if at == stop or indices[at] != label:
                        continue
                    gain[:] = 0.0
                    if side == 0:
                        gain[P] = 1.0 / k
                        gain[R] = 1.0 / m
                        gain[NDCG] = discount[r] / ndcg_norm
                        found[t, label] = True
                    else:
                        gain[PSP] = weights[label]
                        gain[PSNDCG] = weights[label] * discount[r] / ps_norm
                    for q in range(5):
                        numerators[q, t, i] += gain[q]
                    for s in range(bins_of.shape[1]):
                        b = bins_of[label, s]
                        if b >= 0:
                            for q in range(5):
                                by_bin[q, t, b] += gain[q]
    return numerators, denominators, by_bin, found


@njit(cache=True)
def count_above(top, scores, indptr, indices, counted, threshold, n_labels):  # type: ignore[no-untyped-def]
    """True and all positives among the labels scored above a threshold, by row and by label."""
    n = top.shape[0]
    row_hits = np.zeros(n, dtype=np.int64)
    row_predicted = np.zeros(n, dtype=np.int64)
    label_hits = np.zeros(n_labels, dtype=np.int64)
    label_predicted = np.zeros(n_labels, dtype=np.int64)
    for i in range(n):
        if not counted[i]:
            continue
        start, stop = indptr[i], indptr[i + 1]
        for r in range(top.shape[1]):
            label = top[i, r]
            if label < 0 or not scores[i, r] > threshold:
                continue
            row_predicted[i] += 1
            label_predicted[label] += 1
            at = _position(indices, start, stop, label)
            if at < stop and indices[at] == label:
                row_hits[i] += 1
                label_hits[label] += 1
    return row_hits, row_predicted, label_hits, label_predicted
