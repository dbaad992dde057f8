"""Which documents of a tree node are positives of which of its targets.

Compiled, since a forest has thousands of small nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from scipy import sparse


def grouped_positives(
    by_label: sparse.csc_matrix, groups: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The documents of each group of labels: (indptr, documents), ascending within a group."""
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    return positives_of(by_label.indptr, by_label.indices, np.concatenate(groups), starts)


def document_counts(by_label: sparse.csc_matrix, groups: Sequence[np.ndarray]) -> np.ndarray:
    """How many documents carry any label of each group, int64[groups]."""
    return np.diff(grouped_positives(by_label, groups)[0])


@njit(cache=True, nogil=True)
def positives_of(indptr, indices, labels, group_indptr):  # type: ignore[no-untyped-def]
    """The documents of each group of labels: (indptr, documents), ascending within a group."""
    n_groups = len(group_indptr) - 1
    total = 0
    for label in labels:
        total += indptr[label + 1] - indptr[label]
    out_indptr = np.zeros(n_groups + 1, np.int64)
    out = np.empty(total, np.int64)
    at = 0
    for g in range(n_groups):
        start = at
        for q in range(group_indptr[g], group_indptr[g + 1]):
            for p in range(indptr[labels[q]], indptr[labels[q] + 1]):
                out[at] = indices[p]
                at += 1
        if group_indptr[g + 1] - group_indptr[g] > 1:
            at = start + _sort_unique(out[start:at])
        out_indptr[g + 1] = at
    return out_indptr, out[:at].copy()


@njit(cache=True, nogil=True)
def _sort_unique(values):  # type: ignore[no-untyped-def]
    """Sort in place, move each value once to the front, and say how many there are."""
    values.sort()
    kept = 0
    for i in range(len(values)):
        if i == 0 or values[i] != values[i - 1]:
            values[kept] = values[i]
            kept += 1
    return kept
