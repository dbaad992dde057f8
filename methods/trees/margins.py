"""Margins of documents with all targets of a block of :mod:`methods.trees.search_index`.

A document's sums depend on the document and the block alone, never on its neighbours or threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Documents(NamedTuple):
    """Rows of a matrix: used features by their number in the index, scaled, the bias last."""

    indptr: np.ndarray
    features: np.ndarray
    values: np.ndarray


class Workspace(NamedTuple):
    """What :func:`block_margins` needs besides its input, allocated once for many calls."""

    dense_at: np.ndarray  # uint64: where the dense rows that a document meets start
    dense_x: np.ndarray  # float32: the document's values there
    sparse_row: np.ndarray  # int64
    sparse_x: np.ndarray  # float32
    margins: np.ndarray  # float32


@njit(cache=True, nogil=True)
def gather(indptr, indices, data, scales, start, stop, number, bias):  # type: ignore[no-untyped-def]
    """Documents start..stop - 1 as the search reads them."""
    n = stop - start
    out_indptr = np.zeros(n + 1, np.int64)
    room = indptr[stop] - indptr[start] + n
    features = np.empty(room, np.int32)
    values = np.empty(room, np.float32)
    at = 0
    for i in range(n):
        scale = scales[start + i]
        for p in range(indptr[start + i], indptr[start + i + 1]):
            f = number[indices[p]]
            features[at] = f
            values[at] = data[p] * scale
            at += f >= 0
        f = number[len(number) - 1]
        features[at] = f
        values[at] = bias
        at += f >= 0
        out_indptr[i + 1] = at
    return Documents(out_indptr, features, values)


@njit(cache=True, nogil=True)
def workspace(documents, widest):  # type: ignore[no-untyped-def]
    """Room for the longest document and the widest block."""
    longest = 0
    for i in range(len(documents.indptr) - 1):
        longest = max(longest, documents.indptr[i + 1] - documents.indptr[i])
    longest += 4
    return Workspace(
        np.empty(longest, np.uint64),
        np.empty(longest, np.float32),
        np.empty(longest, np.int64),
        np.empty(longest, np.float32),
        np.empty(widest, np.float32),
    )


@njit(cache=True, nogil=True)
def spread_out(table, blocks, b):  # type: ignore[no-untyped-def]
    """Write the codes of a block's rows into a table by feature."""
    for r in range(blocks.row_indptr[b], blocks.row_indptr[b + 1]):
        table[blocks.features[r]] = blocks.codes[r]


@njit(cache=True, nogil=True)
def take_in(table, blocks, b):  # type: ignore[no-untyped-def]
    """Undo :func:`spread_out`."""
    for r in range(blocks.row_indptr[b], blocks.row_indptr[b + 1]):
        table[blocks.features[r]] = 0


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_four(margins, width, dense, a0, a1, a2, a3, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    # Four rows at a time, so that the margins are loaded and stored a quarter as often; unsigned
    # indices let the compiler use vector instructions.
    for t in range(np.uint64(width)):
        margins[t] += (x0 * dense[a0 + t] + x1 * dense[a1 + t]) + (
            x2 * dense[a2 + t] + x3 * dense[a3 + t]
        )


@njit(cache=True, nogil=True, fastmath={"contract"})
def block_margins(table, blocks, b, documents, i, work):  # type: ignore[no-untyped-def]
    """Into ``work.margins``: document i with each target of block b, whose codes are in table."""
    features, values = documents.features, documents.values
    first, last = documents.indptr[i], documents.indptr[i + 1]
    margins = work.margins
    dense = blocks.dense
    base = np.uint64(blocks.dense_start[b])
    width = np.uint64(blocks.width[b])
    if width == 2:  # all rows dense
        margin_0 = margin_1 = np.float32(0.0)
        for p in range(first, last):
            at = base + np.uint64(table[features[p]]) * np.uint64(2)
            margin_0 += values[p] * dense[at]
            margin_1 += values[p] * dense[at + np.uint64(1)]
        margins[0] = margin_0
        margins[1] = margin_1
        return

    # The rows that the document meets, told apart without branches: these could not be predicted.
    dense_at, dense_x = work.dense_at, work.dense_x
    sparse_row, sparse_x = work.sparse_row, work.sparse_x
    n_dense_rows = blocks.n_dense[b]
    sparse_base = blocks.row_indptr[b] - n_dense_rows - 1
    n_dense = 0
    n_sparse = 0
    for p in range(first, last):
        code = np.int64(table[features[p]])
        x = values[p]
        dense_at[n_dense] = base + np.uint64(code) * width
        dense_x[n_dense] = x
        n_dense += (code > 0) & (code <= n_dense_rows)
        sparse_row[n_sparse] = sparse_base + code
        sparse_x[n_sparse] = x
        n_sparse += code > n_dense_rows
    for _ in range(3):  # to a multiple of four
        if n_dense % 4:
            dense_at[n_dense] = base
            dense_x[n_dense] = 0.0
            n_dense += 1
    margins[:width] = 0.0
    for j in range(0, n_dense, 4):
        _add_four(
            margins, width, dense,
            dense_at[j], dense_at[j + 1], dense_at[j + 2], dense_at[j + 3],
            dense_x[j], dense_x[j + 1], dense_x[j + 2], dense_x[j + 3],
        )  # fmt: skip
    places, weights = blocks.places, blocks.values
    for j in range(n_sparse):
        row = sparse_row[j]
        x = sparse_x[j]
        for e in range(blocks.entry_indptr[row], blocks.entry_indptr[row + 1]):
            margins[np.uint64(places[e])] += x * weights[e]
