"""Grouping labels by what their documents say: Parabel's balanced 2-means, Bonsai's k-means.

A label is the unit sum of the unit vectors of its training documents (no bias), and nearness is
the cosine. Seeds are drawn from the generator of the node, ties go to the lower label.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse

from methods._kernels.random import shuffle

ROWS_AT_ONCE = 65_536
EPS = 1e-4
"""The mean cosine must rise by this much for another round (Parabel -e, Bonsai -k)."""


def row_scales(X: sparse.csr_matrix) -> np.ndarray:
    """1 / Euclidean norm of each row, float32; 1 for an empty row."""
    squares = np.zeros(X.shape[0], np.float64)
    # Some rows at a time: the squares of all entries in float64 would take twice the memory of X.
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        starts = X.indptr[first : first + ROWS_AT_ONCE + 1]
        if starts[-1] > starts[0]:
            filled = np.diff(starts) > 0
            squared = X.data[starts[0] : starts[-1]].astype(np.float64) ** 2
            sums = np.add.reduceat(squared, starts[:-1][filled] - starts[0])
            squares[first : first + len(filled)][filled] = sums
    return (1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))).astype(np.float32)


def label_centroids(
    X: sparse.csr_matrix, scales: np.ndarray, labels: sparse.csr_matrix
) -> sparse.csr_matrix:
    """L x D: the unit sum of each label's unit documents; zero for a label without any."""
    weighted = sparse.csr_matrix(labels, dtype=np.float32, copy=True)
    weighted.data = np.repeat(scales, np.diff(weighted.indptr)).astype(np.float32)
    sums = sparse.csr_matrix(weighted.T.tocsr() @ X, dtype=np.float32)
    sums.data *= np.repeat(row_scales(sums), np.diff(sums.indptr))
    return sums


@njit(cache=True, nogil=True)
def _local_rows(indptr, indices, data, labels, n_features):  # type: ignore[no-untyped-def]
    """The rows of some labels over the features that occur in them: n_local, indptr, ..."""
    n = len(labels)
    local = np.full(n_features, -1, np.int32)
    d = 0
    out_indptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        out_indptr[i + 1] = out_indptr[i] + indptr[labels[i] + 1] - indptr[labels[i]]
    out_indices = np.empty(out_indptr[n], np.int32)
    out_data = np.empty(out_indptr[n], np.float32)
    at = 0
    for label in labels:
        for p in range(indptr[label], indptr[label + 1]):
            if local[indices[p]] < 0:
                local[indices[p]] = d
                d += 1
            out_indices[at] = local[indices[p]]
            out_data[at] = data[p]
            at += 1
    return d, out_indptr, out_indices, out_data


@njit(cache=True, nogil=True)
def balanced_halves(indptr, indices, data, labels, n_features, state):  # type: ignore[no-untyped-def]
    """Side (0 or 1) of each label by spherical 2-means with halves of equal size.

    Each round labels are ranked by how much nearer they are to the second centre than to the
    first, and the upper half goes to the second.
    """
    n = len(labels)
    d, indptr, indices, data = _local_rows(indptr, indices, data, labels, n_features)
    whole = np.zeros(d, np.float32)
    for p in range(indptr[n]):
        whole[indices[p]] += data[p]
    pick = np.arange(n)
    shuffle(state, pick, n)
    towards = np.zeros(d, np.float32)  # second centre minus first
    for s in range(2):
        for p in range(indptr[pick[s]], indptr[pick[s] + 1]):
            towards[indices[p]] += data[p] if s == 1 else -data[p]
    side = np.zeros(n, np.int8)
    nearer = np.empty(n, np.float32)
    cosine = -10000.0
    while True:
        for i in range(n):
            total = np.float32(0.0)
            for p in range(indptr[i], indptr[i + 1]):
                total += towards[indices[p]] * data[p]
            nearer[i] = total
        order = np.argsort(nearer, kind="mergesort")
        upper = np.zeros(d, np.float32)
        for rank in range(n):
            side[order[rank]] = 0 if rank < n // 2 else 1
        for i in range(n):
            if side[i] == 1:
                for p in range(indptr[i], indptr[i + 1]):
                    upper[indices[p]] += data[p]
        norm_0 = norm_1 = 0.0
        for f in range(d):
            norm_1 += np.float64(upper[f]) ** 2
            norm_0 += np.float64(whole[f] - upper[f]) ** 2
        norm_0, norm_1 = np.sqrt(norm_0), np.sqrt(norm_1)
        # A sum of unit vectors times its own direction is its norm, so the mean cosine of the
        # labels with their centres is the two norms over n.
        previous = cosine
        cosine = (norm_0 + norm_1) / n
        if cosine - previous < EPS:
            return side
        scale_0 = np.float32(1.0 / max(norm_0, 1e-30))
        scale_1 = np.float32(1.0 / max(norm_1, 1e-30))
        for f in range(d):
            towards[f] = upper[f] * scale_1 - (whole[f] - upper[f]) * scale_0


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _cosines(indptr, indices, data, label, centres, width, out):  # type: ignore[no-untyped-def]
    out[:] = 0.0
    for p in range(indptr[label], indptr[label + 1]):
        x = data[p]
        o = np.uint64(indices[p]) * width
        for c in range(width):
            out[c] += x * centres[o + c]


@njit(cache=True, nogil=True)
def k_means(indptr, indices, data, labels, n_features, n_clusters, state):  # type: ignore[no-untyped-def]
    """Cluster (0..) of each label by spherical k-means from k random labels, not balanced.

    A label alone in its cluster joins the next nearest one; clusters are numbered without gaps.
    """
    n = len(labels)
    K = min(n_clusters, n)
    width = np.uint64((K + 7) // 8 * 8)
    d, sub_indptr, sub_indices, sub_data = _local_rows(indptr, indices, data, labels, n_features)
    pick = np.arange(n)
    shuffle(state, pick, n)
    cluster = np.full(n, -1, np.int64)
    cluster[pick[:K]] = np.arange(K)
    cosines = np.empty((n, width), np.float32)
    cosine = -10000.0
    while True:
        centres = np.zeros(d * width, np.float32)
        for i in range(n):
            if cluster[i] >= 0:
                for p in range(sub_indptr[i], sub_indptr[i + 1]):
                    centres[sub_indices[p] * width + np.uint64(cluster[i])] += sub_data[p]
        norms = np.zeros(width, np.float64)
        for f in range(d):
            for c in range(K):
                norms[c] += np.float64(centres[f * width + c]) ** 2
        for f in range(d):
            for c in range(K):
                if norms[c] > 0.0:
                    centres[f * width + c] /= np.sqrt(norms[c])
        total = 0.0
        for i in range(n):
            _cosines(sub_indptr, sub_indices, sub_data, i, centres, width, cosines[i])
            best = 0
            for c in range(1, K):
                if cosines[i, c] > cosines[i, best]:
                    best = c
            cluster[i] = best
            total += cosines[i, best]
        previous = cosine
        cosine = total / n
        if cosine - previous < EPS:
            break

    sizes = np.bincount(cluster, minlength=K)
    for i in range(n):
        if sizes[cluster[i]] == 1 and n > 1:
            own = cluster[i]
            best = -1
            for c in range(K):
                taken = c != own and sizes[c] > 0
                if taken and (best < 0 or cosines[i, c] > cosines[i, best]):
                    best = c
            sizes[own] = 0
            sizes[best] += 1
            cluster[i] = best
    number = np.cumsum(sizes > 0) - 1
    return number[cluster]
