"""PfastreXML's second look at a shortlist: how near a document is to the mean of each label."""

from __future__ import annotations

import numpy as np
from numba import njit

from methods._kernels.topk import best_of


@njit(cache=True, nogil=True)
def _by_label(labels, n_labels):  # type: ignore[no-untyped-def]
    """Where each label is in rows of labels, -1 being none: its places are at ``first[label]:``."""
    first = np.zeros(n_labels + 1, np.int64)
    for row in range(labels.shape[0]):
        for label in labels[row]:
            if label >= 0:
                first[label + 1] += 1
    for label in range(n_labels):
        first[label + 1] += first[label]
    at = first[:-1].copy()
    rows = np.empty(first[-1], np.int32)
    ranks = np.empty(first[-1], np.int32)
    for row in range(labels.shape[0]):
        for rank in range(labels.shape[1]):
            label = labels[row, rank]
            if label >= 0:
                rows[at[label]] = row
                ranks[at[label]] = rank
                at[label] += 1
    return first, rows, ranks


@njit(cache=True, nogil=True)
def rerank_rows(  # type: ignore[no-untyped-def]
    indptr, indices, data, scales, n_features, bias, m_indptr, m_indices, m_data, squares,
    gamma, alpha, top_labels, top_scores, start, stop, n_labels, out_labels, out_scores,
):  # fmt: skip
    """Score the shortlists of rows again, label by label.

    A label's mean has many more features than a document, so it is the mean that is spread out,
    once for all its documents.
    """
    x_squares = np.empty(stop - start)
    for i in range(start, stop):
        x_square = (bias * scales[i]) ** 2
        for p in range(indptr[i], indptr[i + 1]):
            x_square += (data[p] * scales[i]) ** 2
        x_squares[i - start] = x_square
    first, rows, ranks = _by_label(top_labels[start:stop], n_labels)
    scores = np.empty((stop - start, top_labels.shape[1]))
    mean = np.zeros(n_features + 1, np.float32)
    for label in range(n_labels):
        if first[label] == first[label + 1]:
            continue
        for p in range(m_indptr[label], m_indptr[label + 1]):
            mean[m_indices[p]] = m_data[p]
        for q in range(first[label], first[label + 1]):
            i = start + rows[q]
            dot = np.float32(0.0)
            for p in range(indptr[i], indptr[i + 1]):
                dot += mean[indices[p]] * (data[p] * scales[i])
            dot += mean[n_features] * (bias * scales[i])
            distance = x_squares[rows[q]] - np.float32(2.0) * dot + squares[label]
            far = gamma * distance
            # In logs: tail underflows where a label is far away.
            score = np.log(max(top_scores[i, ranks[q]], np.float32(1e-30)))
            scores[rows[q], ranks[q]] = alpha * score - (1.0 - alpha) * np.log1p(np.exp(far))
        for p in range(m_indptr[label], m_indptr[label + 1]):
            mean[m_indices[p]] = 0.0
    new = np.zeros(n_labels, np.float64)
    for i in range(start, stop):
        n = 0
        while n < top_labels.shape[1] and top_labels[i, n] >= 0:
            new[top_labels[i, n]] = scores[i - start, n]
            n += 1
        best_of(new, top_labels[i, :n], out_labels[i], out_scores[i])
        for r in range(min(n, out_scores.shape[1])):
            out_scores[i, r] = np.exp(out_scores[i, r])
