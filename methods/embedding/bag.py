"""The input layer: sparse documents times a matrix of word vectors, and its update.

The layer is an embedding bag: a document is the sum of the vectors of its words, each times the
word's value. Nothing dense of the size of the vocabulary is made, neither for the documents nor
for the gradient: only the vectors of a batch's words are read and written, O(d nnz) as the GLaS
paper counts (sec. 4). The update is row-wise Adagrad: each vector has one step size, its rate over
the root of the sum of its mean squared gradients so far, so that the state is one number per word.

Sums run in the order of the words, or of the documents, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from scipy import sparse

EPSILON = np.float32(1e-8)
PARTS = 16
"""Parts in which a batch's words are updated: fixed, so that sums over parts are, too."""


class WordVectors:
    """float32[D, d] vectors with their Adagrad sums.

    A column holds the weights of one output. ``squares`` are the squared lengths of the columns,
    which weight normalisation divides by; they are kept up to date only if ``measured``.
    """

    def __init__(self, vectors: np.ndarray, measured: bool = False) -> None:
        self.vectors = vectors
        self.sums = np.zeros(len(vectors), np.float32)
        self.squares = column_squares(vectors) if measured else np.empty(0)

    def measure(self) -> None:
        """Take the squared lengths anew, without the rounding of many updates."""
        if len(self.squares):
            self.squares = column_squares(self.vectors)

    def update(self, X: sparse.csr_matrix, gradient: np.ndarray, rate: float) -> None:
        """One step against ``X.T @ gradient``, for the words that occur in X only."""
        by_word = X.tocsc()
        words = np.flatnonzero(np.diff(by_word.indptr))
        _update_words(
            by_word.indptr,
            by_word.indices,
            by_word.data,
            words,
            np.ascontiguousarray(gradient),
            self.vectors,
            self.sums,
            self.squares,
            np.float32(rate),
        )


def bag(X: sparse.csr_matrix, vectors: np.ndarray) -> np.ndarray:
    """``X @ vectors``, float32[n, d], for C-ordered float32 vectors."""
    out = np.empty((X.shape[0], vectors.shape[1]), np.float32)
    _sum_words(X.indptr, X.indices, X.data, vectors, out)
    return out


def column_squares(vectors: np.ndarray) -> np.ndarray:
    """The squared Euclidean length of each column, float64[d]."""
    return np.einsum("wj,wj->j", vectors, vectors, dtype=np.float64)


def update_rows(
    vectors: np.ndarray,
    sums: np.ndarray,
    rows: np.ndarray,
    gradient: np.ndarray,
    rate: float,
    unit: bool = False,
) -> None:
    """One row-wise Adagrad step of distinct rows, ``gradient`` holding one row for each.

    With ``unit`` the rows are scaled back to length 1.
    """
    _update_rows(vectors, sums, rows, np.ascontiguousarray(gradient), np.float32(rate), unit)


def picked_products(a: np.ndarray, b: np.ndarray, picked: np.ndarray) -> np.ndarray:
    """``out[i, j] = a[i] . b[picked[i, j]]``, float32."""
    out = np.empty(picked.shape, np.float32)
    _picked_products(a, b, picked, out)
    return out


def thinned(X: sparse.csr_matrix, keep: float, rng: np.random.Generator) -> sparse.csr_matrix:
    """Input dropout: each non-zero stays with probability ``keep`` (GLaS sec. 3.3).

    The others are left out of the copy, so that they cost nothing later.
    """
    if keep >= 1.0:
        return X
    kept = rng.random(X.nnz, dtype=np.float32) < keep
    before = np.concatenate([[0], np.cumsum(kept)])
    return sparse.csr_matrix(
        (X.data[kept], X.indices[kept], before[X.indptr].astype(X.indptr.dtype)), shape=X.shape
    )


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _weighted_sum(rows, weights, vectors, out):  # type: ignore[no-untyped-def]
    """The sum of some rows times their weights; four at a time, so that ``out`` is read less."""
    d = out.shape[0]
    out[:] = 0.0
    q = 0
    while q + 4 <= rows.shape[0]:
        a, b = vectors[rows[q]], vectors[rows[q + 1]]
        c, e = vectors[rows[q + 2]], vectors[rows[q + 3]]
        wa, wb, wc, we = weights[q], weights[q + 1], weights[q + 2], weights[q + 3]
        for j in range(d):
            out[j] += (wa * a[j] + wb * b[j]) + (wc * c[j] + we * e[j])
        q += 4
    while q < rows.shape[0]:
        a, wa = vectors[rows[q]], weights[q]
        for j in range(d):
            out[j] += wa * a[j]
        q += 1


@njit(nogil=True, cache=True, fastmath={"contract"}, parallel=True)
def _sum_words(indptr, indices, data, vectors, out):  # type: ignore[no-untyped-def]
    for i in prange(out.shape[0]):
        lo, hi = indptr[i], indptr[i + 1]
        _weighted_sum(indices[lo:hi], data[lo:hi], vectors, out[i])


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Sums of vector width: reordered by the compiler, once and for all."""
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(nogil=True, cache=True, fastmath={"contract"})
def _step(vector, total, gradient, rate):  # type: ignore[no-untyped-def]
    """Move a vector; the new sum of its mean squared gradients."""
    total += _dot(gradient, gradient) / np.float32(vector.shape[0])
    size = rate / (np.sqrt(total) + EPSILON)
    for j in range(vector.shape[0]):
        vector[j] -= size * gradient[j]
    return total


@njit(nogil=True, cache=True, fastmath={"contract"}, parallel=True)
def _update_words(indptr, documents, data, words, gradient, vectors, sums, squares, rate):  # type: ignore[no-untyped-def]
    d = vectors.shape[1]
    change = np.zeros((PARTS, squares.shape[0]), np.float64)
    for part in prange(PARTS):
        grown = change[part]
        along = np.empty(d, np.float32)
        for at in range(part * len(words) // PARTS, (part + 1) * len(words) // PARTS):
            word = words[at]
            lo, hi = indptr[word], indptr[word + 1]
            _weighted_sum(documents[lo:hi], data[lo:hi], gradient, along)
            vector = vectors[word]
            for j in range(squares.shape[0]):
                grown[j] -= vector[j] * vector[j]
            sums[word] = _step(vector, sums[word], along, rate)
            for j in range(squares.shape[0]):
                grown[j] += vector[j] * vector[j]
    for part in range(PARTS):
        for j in range(squares.shape[0]):
            squares[j] += change[part, j]


@njit(nogil=True, cache=True, fastmath={"contract"}, parallel=True)
def _update_rows(vectors, sums, rows, gradient, rate, unit):  # type: ignore[no-untyped-def]
    for at in prange(len(rows)):
        vector = vectors[rows[at]]
        sums[rows[at]] = _step(vector, sums[rows[at]], gradient[at], rate)
        if unit:
            scale = np.float32(1.0) / (np.sqrt(_dot(vector, vector)) + EPSILON)
            for j in range(vector.shape[0]):
                vector[j] *= scale


@njit(nogil=True, cache=True, fastmath={"contract"}, parallel=True)
def _picked_products(a, b, picked, out):  # type: ignore[no-untyped-def]
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = _dot(a[i], b[picked[i, j]])
