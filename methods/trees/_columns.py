"""The documents of a FastXML node by column, as its hyperplane is fitted."""

from __future__ import annotations

import numpy as np
from numba import njit

ENTRY = np.dtype([("row", np.uint32), ("value", np.float32)])
"""One entry of a column. Row and value side by side: columns are read in random order, and each
first touch of one costs a wait for memory. Unsigned: no index is taken for negative."""


@njit(cache=True, nogil=True)
def columns_of(indptr, indices, data, n_features, bias):  # type: ignore[no-untyped-def]
    """All documents by column over the features that occur, the bias last: where every tree starts.

    Gives the features, where the column of each begins, and the columns' entries.
    """
    n = len(indptr) - 1
    count = np.zeros(n_features, np.int64)
    for f in indices:
        count[f] += 1
    nnz = len(indices)
    d = 0
    for f in range(n_features):
        d += count[f] > 0
    features = np.empty(d + 1, np.int32)
    out_indptr = np.empty(d + 2, np.int64)
    out_indptr[0] = 0
    at = 0
    for f in range(n_features):
        if count[f] > 0:
            features[at] = f
            out_indptr[at + 1] = out_indptr[at] + count[f]
            count[f] = out_indptr[at]
            at += 1
    features[d] = n_features
    out_indptr[d + 1] = out_indptr[d] + n
    entries = np.empty(nnz + n, ENTRY)
    for row in range(n):
        for p in range(indptr[row], indptr[row + 1]):
            q = count[indices[p]]
            entries[q].row = row
            entries[q].value = data[p]
            count[indices[p]] = q + 1
        entries[nnz + row].row = row
        entries[nnz + row].value = bias
    return features, out_indptr, entries


@njit(cache=True, nogil=True)
def divide(features, indptr, entries, code, out, n_upper):  # type: ignore[no-untyped-def]
    """A node's columns dealt out to its children, the upper one's ``n_upper`` entries first.

    ``code`` is twice the number that a row has in its child, plus 1 for the upper one. Reading the
    parent's columns in order is several times faster than gathering them from documents. Gives
    features and indptr of both children.
    """
    d = len(features)
    upper_features = np.empty(d, np.int32)
    lower_features = np.empty(d, np.int32)
    upper_indptr = np.empty(d + 1, np.int64)
    lower_indptr = np.empty(d + 1, np.int64)
    upper_indptr[0] = 0
    lower_indptr[0] = 0
    n_up = 0
    n_low = 0
    up = np.uint64(0)
    first = np.uint64(n_upper)
    low = first
    one = np.uint64(1)
    for j in range(d):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            to = code[entries[p].row]
            is_up = np.uint64(to) & one
            # Without a branch, which would be mispredicted every other time.
            at = low + is_up * (up - low)
            out[at].row = to >> np.uint32(1)
            out[at].value = entries[p].value
            up += is_up
            low += one - is_up
        # Written in any case, and kept if the child has the feature.
        upper_features[n_up] = features[j]
        upper_indptr[n_up + 1] = up
        n_up += np.int64(up) > upper_indptr[n_up]
        lower_features[n_low] = features[j]
        lower_indptr[n_low + 1] = low - first
        n_low += np.int64(low - first) > lower_indptr[n_low]
    return (
        upper_features[:n_up].copy(),
        upper_indptr[: n_up + 1].copy(),
        lower_features[:n_low].copy(),
        lower_indptr[: n_low + 1].copy(),
    )
