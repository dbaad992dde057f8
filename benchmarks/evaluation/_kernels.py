"""Compiled loops of the metrics: one pass over the test rows, top-k in.

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
def _is_in(indices, start, stop, label):  # type: ignore[no-untyped-def]
    """Whether a sorted row holds the label."""
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if indices[middle] < label:
            start = middle + 1
        else:
            stop = middle
    return start < end and indices[start] == label


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
def find_hits(top, kmax, indptr, indices):  # type: ignore[no-untyped-def]
    """Which of the first kmax labels of each row are true, bool[n, kmax]; padding is not."""
    hits = np.zeros((top.shape[0], kmax), dtype=np.bool_)
    for i in range(top.shape[0]):
        for r in range(min(kmax, top.shape[1])):
            label = top[i, r]
            hits[i, r] = label >= 0 and _is_in(indices, indptr[i], indptr[i + 1], label)
    return hits


@njit(cache=True)
def rerank_by_propensity(top, scores, weights, width):  # type: ignore[no-untyped-def]
    """DiSMEC's second ranking: within the top 5, rare labels with a positive margin go first.

    Each place takes the first of the labels still to be placed, unless a later one has a positive
    margin and a larger inverse propensity (strictly, so the better scored wins a tie).
    The first ``width`` columns are returned.
    """
    out = top[:, :width].copy()
    head = min(RERANKED, width)
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
    """Numerators [metric, k, row], ideals of PSP and PSnDCG, numerators by bin, labels found.

    ``top`` ranks for P, R and nDCG, ``ps_top`` for the propensity-scored metrics. ``bins_of`` is
    int[L, s]: the (up to s) bins of a label, padded with -1.
    """
    n = top.shape[0]
    n_ks = len(ks)
    longest = ks[-1]
    kmax = min(longest, top.shape[1], ps_top.shape[1])
    discount = 1.0 / np.log2(np.arange(longest) + 2.0)
    ideal = np.zeros(longest + 1)
    ideal[1:] = np.cumsum(discount)
    numerators = np.zeros((5, n_ks, n))
    ps_ideals = np.zeros((2, n_ks, n))
    by_bin = np.zeros((5, n_ks, n_bins))
    found = np.zeros((n_ks, len(weights)), dtype=np.bool_)
    best = np.empty(longest)
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
        # Running sums over the ranks, written down at each k (``ks`` rises).
        hits = dcg = ps_hits = ps_dcg = ps_ideal = ps_ideal_dcg = 0.0
        t = 0
        for r in range(longest):
            if r < filled:
                ps_ideal += best[r]
                ps_ideal_dcg += best[r] * discount[r]
            if r < kmax:
                label = top[i, r]
                hit = label >= 0 and _is_in(indices, start, stop, label)
                if hit:
                    hits += 1.0
                    dcg += discount[r]
                    for u in range(t, n_ks):
                        found[u, label] = True
                        if n_bins:
                            reachable = max(min(ks[u], m), 1)
                            norm = ideal[ks[u]] if fixed_ndcg else ideal[reachable]
                            for s in range(bins_of.shape[1]):
                                if bins_of[label, s] >= 0:
                                    by_bin[P, u, bins_of[label, s]] += 1.0 / ks[u]
                                    by_bin[R, u, bins_of[label, s]] += 1.0 / m
                                    by_bin[NDCG, u, bins_of[label, s]] += discount[r] / norm
                if ps_top[i, r] != label:
                    label = ps_top[i, r]
                    hit = label >= 0 and _is_in(indices, start, stop, label)
                if hit:
                    w = weights[label]
                    ps_hits += w
                    ps_dcg += w * discount[r]
                    if n_bins:
                        for u in range(t, n_ks):
                            reachable = max(min(ks[u], m), 1)
                            norm = ideal[reachable] if row_normalised_psndcg else 1.0
                            for s in range(bins_of.shape[1]):
                                if bins_of[label, s] >= 0:
                                    by_bin[PSP, u, bins_of[label, s]] += w
                                    by_bin[PSNDCG, u, bins_of[label, s]] += w * discount[r] / norm
            if r + 1 == ks[t]:
                k = ks[t]
                reachable = max(min(k, m), 1)  # a row without labels has gain 0 over any norm
                ps_norm = ideal[reachable] if row_normalised_psndcg else 1.0
                numerators[P, t, i] = hits / k
                numerators[R, t, i] = hits / max(m, 1)
                numerators[NDCG, t, i] = dcg / (ideal[k] if fixed_ndcg else ideal[reachable])
                numerators[PSP, t, i] = ps_hits
                numerators[PSNDCG, t, i] = ps_dcg / ps_norm
                ps_ideals[0, t, i] = ps_ideal
                ps_ideals[1, t, i] = ps_ideal_dcg / ps_norm
                t += 1
    return numerators, ps_ideals, by_bin, found


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
            if _is_in(indices, start, stop, label):
                row_hits[i] += 1
                label_hits[label] += 1
    return row_hits, row_predicted, label_hits, label_predicted
