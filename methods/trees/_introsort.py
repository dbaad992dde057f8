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
    """Sort ``keys`` from high to low in place, and ``names`` along with them.

    Keys are float32 and not negative, so that their bits as whole numbers are ordered as they are;
    names are below 2^32. A key and its name travel as one number, the key's bits in front.
    """
    bits = keys.view(np.uint32)
    pairs = np.empty(len(keys), np.uint64)
    for i in range(len(keys)):
        pairs[i] = (np.uint64(bits[i]) << np.uint64(32)) | np.uint64(names[i])
    sort_pairs(pairs)
    for i in range(len(keys)):
        bits[i] = pairs[i] >> np.uint64(32)
        names[i] = pairs[i] & np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def sort_pairs(pairs):  # type: ignore[no-untyped-def]
    """Sort numbers of 64 bits in place by their upper 32, from high to low."""
    n = len(pairs)
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
                _sort_stably(pairs[start:stop])
                break
            left -= 1
            cut = _partition(pairs, start, stop)
            starts[waiting], stops[waiting], depths[waiting] = start, cut, left
            waiting += 1
            start = cut
    for i in range(1, n):
        pair = pairs[i]
        at = i
        while at > 0 and _before(pair, pairs[at - 1]):
            pairs[at] = pairs[at - 1]
            at -= 1
        pairs[at] = pair


@njit(cache=True, nogil=True)
def _before(a, b):  # type: ignore[no-untyped-def]
    return (a >> np.uint64(32)) > (b >> np.uint64(32))


@njit(cache=True, nogil=True)
def _partition(pairs, start, stop):  # type: ignore[no-untyped-def]
    """Put what belongs before the median of three in front; where the second part begins."""
    a, b, c = start + 1, start + (stop - start) // 2, stop - 1
    if _before(pairs[a], pairs[b]):
        median = b if _before(pairs[b], pairs[c]) else (c if _before(pairs[a], pairs[c]) else a)
    else:
        median = a if _before(pairs[a], pairs[c]) else (c if _before(pairs[b], pairs[c]) else b)
    pairs[start], pairs[median] = pairs[median], pairs[start]
    pivot = pairs[start]
    low, high = start + 1, stop
    while True:
        while _before(pairs[low], pivot):
            low += 1
        high -= 1
        while _before(pivot, pairs[high]):
            high -= 1
        if low >= high:
            return low
        pairs[low], pairs[high] = pairs[high], pairs[low]
        low += 1


@njit(cache=True, nogil=True)
def _sort_stably(pairs):  # type: ignore[no-untyped-def]
    """For parts that resist quicksort. std::sort takes a heap there: ties may differ."""
    order = np.argsort(~(pairs >> np.uint64(32)), kind="mergesort")
    pairs[:] = pairs[order]
