"""Descending sort with the order among equals of GNU C++'s std::sort.

Which side of a FastXML node a document goes to depends on the order of labels of equal weight, so
only the same order grows the authors' trees. The method is Musser's introsort (1997): quicksort by
the median of three, down to short runs, then one insertion sort.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SHORT = 16
_DEEPEST = 64


@njit(cache=True, nogil=True)
def sort_descending(keys, names):  # type: ignore[no-untyped-def]
    """Sort ``keys`` from high to low in place, and ``names`` along with them."""
    n = len(keys)
    depth = 0
    while n >> (depth + 1):
        depth += 1
    # Parts still to be sorted. The right one is done first, but they do not touch one another.
    starts = np.empty(_DEEPEST, np.int64)
    stops = np.empty(_DEEPEST, np.int64)
    depths = np.empty(_DEEPEST, np.int64)
    starts[0], stops[0], depths[0] = 0, n, 2 * depth
    waiting = 1
    while waiting:
        waiting -= 1
        start, stop, left = starts[waiting], stops[waiting], depths[waiting]
        while stop - start > _SHORT:
            if left == 0:
                _sort_stably(keys, names, start, stop)
                break
            left -= 1
            cut = _partition(keys, names, start, stop)
            starts[waiting], stops[waiting], depths[waiting] = start, cut, left
            waiting += 1
            start = cut
    for i in range(1, n):
        key, name = keys[i], names[i]
        at = i
        while at > 0 and key > keys[at - 1]:
            keys[at], names[at] = keys[at - 1], names[at - 1]
            at -= 1
        keys[at], names[at] = key, name


@njit(cache=True, nogil=True)
def _swap(keys, names, i, j):  # type: ignore[no-untyped-def]
    keys[i], keys[j] = keys[j], keys[i]
    names[i], names[j] = names[j], names[i]


@njit(cache=True, nogil=True)
def _partition(keys, names, start, stop):  # type: ignore[no-untyped-def]
    """Put what belongs before the median of three in front; where the second part begins."""
    a, b, c = start + 1, start + (stop - start) // 2, stop - 1
    if keys[a] > keys[b]:
        median = b if keys[b] > keys[c] else (c if keys[a] > keys[c] else a)
    else:
        median = a if keys[a] > keys[c] else (c if keys[b] > keys[c] else b)
    _swap(keys, names, start, median)
    pivot = keys[start]
    low, high = start + 1, stop
    while True:
        while keys[low] > pivot:
            low += 1
        high -= 1
        while pivot > keys[high]:
            high -= 1
        if low >= high:
            return low
        _swap(keys, names, low, high)
        low += 1


@njit(cache=True, nogil=True)
def _sort_stably(keys, names, start, stop):  # type: ignore[no-untyped-def]
    """For parts that resist quicksort. std::sort takes a heap there: ties may differ."""
    order = np.argsort(-keys[start:stop], kind="mergesort")
    keys[start:stop] = keys[start:stop][order]
    names[start:stop] = names[start:stop][order]
