"""The k best labels of sparse documents under sparse linear classifiers, never holding n x L.

Each document adds, for each of its words, the word's row of label weights to a strip of scores
that stays in cache; rows with many labels are kept dense, where adding runs at full vector width.
A score is summed in the order of the document's words whatever the number of threads or the size
of the strip, so predictions are equal bit for bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from scipy import sparse

from methods.interface import TopK

STRIP = 8192  # labels scored at a time: 32 kB of scores
DENSE_FROM = 0.1  # share of the strip above which a word's row is kept dense
DENSE_MB = 256
ROWS_AT_ONCE = 64


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


def top_labels(
    X: sparse.csr_matrix,
    weights: sparse.csr_matrix,
    trained: np.ndarray,
    k: int,
    *,
    threads: int = 1,
    strip: int = STRIP,
) -> TopK:
    """The k largest ``w.x + b`` of each row; ``weights`` is L x (D + 1), the bias last.

    Labels that are not ``trained`` have no score and are never returned.
    """
    n, columns = X.shape
    if weights.shape[1] != columns + 1:
        raise ValueError(
            f"the model has {weights.shape[1] - 1} features, the documents have {columns}"
        )
    top = TopK.empty(n, k)
    if k == 0:
        return top
    indptr = X.indptr.astype(np.int64)
    indices = X.indices.astype(np.uint32)
    data = X.data.astype(np.float32, copy=False)
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for first in range(0, weights.shape[0], strip):
            part = weights[first : first + strip]
            by_word = sparse.csr_matrix(part.T)
            by_word.sort_indices()
            offset = np.asarray(by_word[columns].todense(), np.float32).ravel()
            offset[~trained[first : first + strip]] = -np.inf
            dense_row, dense = _dense_rows(by_word)
            jobs = [
                pool.submit(
                    _score_strip,
                    indptr,
                    indices,
                    data,
                    row,
                    min(row + ROWS_AT_ONCE, n),
                    by_word.indptr.astype(np.int64),
                    by_word.indices.astype(np.uint32),
                    by_word.data.astype(np.float32, copy=False),
                    dense_row,
                    dense,
                    offset,
                    first,
                    top.indices,
                    top.scores,
                )
                for row in range(0, n, ROWS_AT_ONCE)
            ]
            for job in jobs:
                job.result()
    return top


def _dense_rows(by_word: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """The fullest rows as a dense matrix, and the place of each row in it (-1: not dense)."""
    width = by_word.shape[1]
    lengths = np.diff(by_word.indptr)
    full = np.flatnonzero(lengths >= max(1, DENSE_FROM * width))
    room = int(DENSE_MB * 2**20 / (4 * max(width, 1)))
    full = full[np.argsort(-lengths[full], kind="stable")[:room]]
    place = np.full(by_word.shape[0], -1, np.int64)
    place[full] = np.arange(len(full))
    dense = np.zeros((len(full), width), np.float32)
    chosen = by_word[full]
    dense[np.repeat(np.arange(len(full)), np.diff(chosen.indptr)), chosen.indices] = chosen.data
    return place, dense
