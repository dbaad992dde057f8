"""The k best labels of sparse documents under sparse linear classifiers, never holding n x L.

Each document adds, for each of its words, the word's row of label weights to a strip of scores
that stays in cache; rows with many labels are kept dense, where adding runs at full vector width.
A score is summed in the order of the document's words whatever the number of threads or the size
of the strip, so predictions are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from benchmarks.evaluation.topk import TopK

STRIP = 512  # labels scored at a time, so that their part of the index stays in cache
WIDE_STRIP = 8192  # with millions of words, whose list of positions is then the larger part
INDEX_MB = 1024  # an index estimated to be larger is made anew for each prediction
DENSE_FROM = 0.06  # share of the strip above which a word's row is kept dense
DENSE_MB = 16


class Strip(NamedTuple):
    """The classifiers of some neighbouring labels, by word."""

    first_label: int
    word_indptr: np.ndarray
    word_labels: np.ndarray
    word_weights: np.ndarray
    dense_row: np.ndarray
    dense: np.ndarray
    offset: np.ndarray


@njit(nogil=True, cache=True)
def _score_strip(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    first_row: int,
    last_row: int,
    word_indptr: np.ndarray,
    word_labels: np.ndarray,
    word_weights: np.ndarray,
    dense_row: np.ndarray,
    dense: np.ndarray,
    offset: np.ndarray,
    first_label: int,
    best: np.ndarray,
    best_scores: np.ndarray,
) -> None:
    """Merge the labels of a strip into the best of each row, both kept sorted."""
    width = offset.shape[0]
    k = best.shape[1]
    scores = np.empty(width, np.float32)
    for i in range(first_row, last_row):
        scores[:] = offset
        for q in range(indptr[i], indptr[i + 1]):
            word = indices[q]
            x = data[q]
            d = dense_row[word]
            if d >= 0:
                row = dense[d]
                for label in range(width):
                    scores[label] += x * row[label]
            else:
                lo, hi = word_indptr[word], word_indptr[word + 1]
                labels = word_labels[lo:hi]
                weights = word_weights[lo:hi]
                for e in range(hi - lo):
                    scores[labels[e]] += x * weights[e]
        floor = best_scores[i, k - 1]
        for label in range(width):
            score = scores[label]
            # Labels come in rising order and must beat what is kept: the lower wins a tie.
            if score > floor:
                at = k - 1
                while at > 0 and best_scores[i, at - 1] < score:
                    best_scores[i, at] = best_scores[i, at - 1]
                    best[i, at] = best[i, at - 1]
                    at -= 1
                best_scores[i, at] = score
                best[i, at] = first_label + label
                floor = best_scores[i, k - 1]


def strip_width(weights: sparse.csr_matrix) -> int:
    """How many labels a strip holds."""
    n_labels, columns = weights.shape
    narrow_mb = 12.0 * columns * (n_labels / STRIP) / 2**20
    return STRIP if narrow_mb <= INDEX_MB else WIDE_STRIP


def is_small(weights: sparse.csr_matrix) -> bool:
    """Whether the strips of all labels may be kept in memory together."""
    strips = -(-weights.shape[0] // strip_width(weights))
    size_mb = (8.0 * weights.nnz + 12.0 * weights.shape[1] * strips) / 2**20 + DENSE_MB * strips
    return size_mb <= INDEX_MB


def make_strips(
    weights: sparse.csr_matrix, trained: np.ndarray, width: int | None = None
) -> Iterator[Strip]:
    """The index of ``weights``, L x (D + 1) with the bias last, in the order of the labels."""
    width = width or strip_width(weights)
    for first in range(0, weights.shape[0], width):
        by_word = sparse.csr_matrix(weights[first : first + width].T)
        by_word.sort_indices()
        offset = np.asarray(by_word[-1].todense(), np.float32).ravel()
        offset[~trained[first : first + width]] = -np.inf
        dense_row, dense = _dense_rows(by_word)
        yield Strip(
            first,
            by_word.indptr.astype(np.int64),
            by_word.indices.astype(np.uint16),
            by_word.data.astype(np.float32, copy=False),
            dense_row,
            dense,
            offset,
        )


def top_labels(X: sparse.csr_matrix, strips: Iterable[Strip], k: int, threads: int = 1) -> TopK:
    """The k largest ``w.x + b`` of each row.

    Labels that are not trained have no score and are never returned.
    """
    n = X.shape[0]
    top = TopK.empty(n, k)
    if k == 0:
        return top
    indptr = X.indptr.astype(np.int64)
    indices = X.indices.astype(np.uint32)
    data = X.data.astype(np.float32, copy=False)
    share = max(64, -(-n // (4 * max(1, threads))))
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for strip in strips:
            jobs = [
                pool.submit(
                    _score_strip,
                    indptr,
                    indices,
                    data,
                    row,
                    min(row + share, n),
                    strip.word_indptr,
                    strip.word_labels,
                    strip.word_weights,
                    strip.dense_row,
                    strip.dense,
                    strip.offset,
                    strip.first_label,
                    top.indices,
                    top.scores,
                )
                for row in range(0, n, share)
            ]
            for job in jobs:
                job.result()
    return top


def _dense_rows(by_word: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """The fullest rows as a dense matrix, and the position of each row in it (-1: not dense)."""
    width = by_word.shape[1]
    lengths = np.diff(by_word.indptr)
    full = np.flatnonzero(lengths >= max(1, DENSE_FROM * width))
    room = int(DENSE_MB * 2**20 / (4 * max(width, 1)))
    full = full[np.argsort(-lengths[full], kind="stable")[:room]]
    position = np.full(by_word.shape[0], -1, np.int32)
    position[full] = np.arange(len(full), dtype=np.int32)
    dense = np.zeros((len(full), width), np.float32)
    chosen = by_word[full]
    dense[np.repeat(np.arange(len(full)), np.diff(chosen.indptr)), chosen.indices] = chosen.data
    return position, dense
