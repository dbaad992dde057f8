"""The k best of some candidates by their scores, ties to the lower label."""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.evaluation.topk import TopK


def reordered(indices: np.ndarray, scores: np.ndarray, k: int) -> TopK:
    """Candidates in the order of new scores, ties to the lower label, the best k of them."""
    new = np.where(indices >= 0, scores, -np.inf).astype(np.float32)
    order = np.lexsort((indices, -new))[:, :k]
    top = TopK.empty(len(indices), k)
    width = order.shape[1]
    top.indices[:, :width] = np.take_along_axis(indices, order, axis=1)
    top.scores[:, :width] = np.take_along_axis(new, order, axis=1)
    return top


@njit(cache=True, nogil=True)
def _worse(score_a, label_a, score_b, label_b):  # type: ignore[no-untyped-def]
    return score_a < score_b or (score_a == score_b and label_a > label_b)


@njit(cache=True, nogil=True)
def _sift_down(labels, scores, n):  # type: ignore[no-untyped-def]
    """Restore a heap whose root is the worst, after its root was replaced."""
    at = 0
    while True:
        worst = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < n and _worse(scores[child], labels[child], scores[worst], labels[worst]):
                worst = child
        if worst == at:
            return
        labels[at], labels[worst] = labels[worst], labels[at]
        scores[at], scores[worst] = scores[worst], scores[at]
        at = worst


@njit(cache=True, nogil=True)
def best_of(scores, candidates, out_labels, out_scores):  # type: ignore[no-untyped-def]
    """Write the best candidates by ``scores[label]`` into a row that is padded already.

    Scores are compared as float32, as they are stored: equal in the output means tied.
    """
    k = min(len(out_labels), len(candidates))
    heap_labels = np.empty(k, np.int32)
    heap_scores = np.empty(k, np.float32)
    n = 0
    for label in candidates:
        value = np.float32(scores[label])
        if n < k:
            # Sift up.
            at = n
            n += 1
            while at > 0:
                parent = (at - 1) // 2
                if not _worse(value, label, heap_scores[parent], heap_labels[parent]):
                    break
                heap_labels[at] = heap_labels[parent]
                heap_scores[at] = heap_scores[parent]
                at = parent
            heap_labels[at] = label
            heap_scores[at] = value
        elif k > 0 and _worse(heap_scores[0], heap_labels[0], value, label):
            heap_labels[0] = label
            heap_scores[0] = value
            _sift_down(heap_labels, heap_scores, n)
    while n > 0:
        n -= 1
        out_labels[n] = heap_labels[0]
        out_scores[n] = heap_scores[0]
        heap_labels[0] = heap_labels[n]
        heap_scores[0] = heap_scores[n]
        _sift_down(heap_labels, heap_scores, n)
