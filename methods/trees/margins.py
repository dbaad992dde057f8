"""Margins of documents with all targets of a block of :mod:`methods.trees.search_index`.

A document's sums depend on the document and the block alone, never on its neighbours or threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from methods.trees.search_index import CODE_BITS, DENSE_CODE, GROUP

BATCH = 32
"""Documents whose margins are computed in one call."""
WARM_DOCUMENTS = 16
"""A block is read ahead for at least so many documents."""
CACHE_LINE = 16
"""The length of a cache line in float32 values."""
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class Documents(NamedTuple):
    """Rows of a matrix: used features by their number in the index, scaled, the bias last."""

    indptr: np.ndarray
    features: np.ndarray
    values: np.ndarray


class Workspace(NamedTuple):
    """What :func:`block_margins` needs besides its input, allocated once for many calls."""

    dense_row: np.ndarray  # uint32: the dense rows that a document meets
    dense_x: np.ndarray  # float32: the document's values there
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
    return _sorted_rows(Documents(out_indptr, features[:at], values[:at]), len(number))


@njit(cache=True, nogil=True)
def _sorted_rows(documents, n_features):  # type: ignore[no-untyped-def]
    """Each document's features by number, the commonest first.

    Common features have dense rows, rare ones short rows: sorted, they come in runs.
    """
    indptr, features, values = documents
    # By feature and back, a counting sort of all rows at once.
    starts = np.zeros(n_features + 1, np.int64)
    for f in features:
        starts[f + 1] += 1
    for f in range(n_features):
        starts[f + 1] += starts[f]
    row_of = np.empty(len(features), np.int32)
    feature_of = np.empty(len(features), np.int32)
    value_of = np.empty(len(features), np.float32)
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            at = starts[features[p]]
            starts[features[p]] += 1
            row_of[at] = i
            feature_of[at] = features[p]
            value_of[at] = values[p]
    cursor = indptr[:-1].copy()
    for p in range(len(features)):
        at = cursor[row_of[p]]
        cursor[row_of[p]] += 1
        features[at] = feature_of[p]
        values[at] = value_of[p]
    return documents


@njit(cache=True, nogil=True)
def workspace(documents, widest):  # type: ignore[no-untyped-def]
    """Room for the longest document and a batch at the widest block."""
    longest = 0
    for i in range(len(documents.indptr) - 1):
        longest = max(longest, documents.indptr[i + 1] - documents.indptr[i])
    longest += 4
    return Workspace(
        np.empty(longest, np.uint32),
        np.empty(longest, np.float32),
        np.empty(BATCH * (widest + GROUP), np.float32),
    )


@njit(cache=True, nogil=True)
def write_codes(table, blocks, b):  # type: ignore[no-untyped-def]
    """Write the codes of a block's rows into a table by feature."""
    features, lengths = blocks.features, blocks.lengths
    shift = np.uint32(blocks.shift[b])
    rounding = np.uint32((1 << blocks.shift[b]) - 1)
    n_dense = np.uint32(1 if blocks.width[b] == 2 else 0)
    n_sparse = np.uint32(0)
    for r in range(blocks.row_start[b], blocks.row_stop[b]):
        length = np.uint32(lengths[r])
        is_dense = length == np.uint32(DENSE_CODE)
        begin = n_dense if is_dense else n_sparse
        table[features[r]] = np.uint32(begin << np.uint32(CODE_BITS)) | length
        n_dense += np.uint32(is_dense)
        n_sparse += np.uint32(0) if is_dense else np.uint32((length + rounding) >> shift)


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def warm(blocks, b, work):  # type: ignore[no-untyped-def]
    """Read a block from end to end, which is fast, so that documents find it in the cache."""
    dense, weights, places = blocks.dense, blocks.weights, blocks.places
    total = np.float32(0.0)
    for at in range(blocks.dense_start[b], blocks.dense_stop[b], CACHE_LINE):
        total += dense[at]
    for at in range(blocks.entry_start[b], blocks.entry_stop[b], CACHE_LINE):
        total += weights[at] + np.float32(places[at])
    work.margins[0] = total  # of no use, but without it the compiler would read nothing


@njit(cache=True, nogil=True)
def clear_codes(table, blocks, b):  # type: ignore[no-untyped-def]
    """Reset the entries that :func:`write_codes` has written."""
    for r in range(blocks.row_start[b], blocks.row_stop[b]):
        table[blocks.features[r]] = 0


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_four(margins, m, width, dense, a0, a1, a2, a3, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    # Four rows at a time, so that the margins are loaded and stored a quarter as often; unsigned
    # indices let the compiler use vector instructions.
    for t in range(width):
        margins[m + t] += (x0 * dense[a0 + t] + x1 * dense[a1 + t]) + (
            x2 * dense[a2 + t] + x3 * dense[a3 + t]
        )


@njit(cache=True, nogil=True)
def _margins_of_pairs(table, dense, base, indptr, features, values, ids, margins, stride):  # type: ignore[no-untyped-def]
    """:func:`block_margins` for two targets, whose rows are all dense."""
    for j in range(len(ids)):
        margin_0 = margin_1 = np.float32(0.0)
        for p in range(np.uint64(indptr[ids[j]]), np.uint64(indptr[ids[j] + 1])):
            at = base + np.uint64(table[np.uint64(features[p])] >> CODE_BITS) * TWO
            margin_0 += values[p] * dense[at]
            margin_1 += values[p] * dense[at + ONE]
        margins[stride * j] = margin_0
        margins[stride * j + 1] = margin_1


@njit(cache=True, nogil=True, fastmath={"contract"})
def block_margins(table, blocks, b, documents, ids, work):  # type: ignore[no-untyped-def]
    """Into ``work.margins``: up to BATCH documents with each target of block b.

    The block's codes must be in ``table``. The margins of the j-th document begin at j times the
    block's width and a GROUP. A batch a call, since to pass and take apart tuples costs time.
    """
    features, values, indptr = documents.features, documents.values, documents.indptr
    margins, dense = work.margins, blocks.dense
    width = np.uint64(blocks.width[b])
    stride = width + np.uint64(GROUP)
    dense_base = np.uint64(blocks.dense_start[b])
    entry_base = np.uint64(blocks.entry_start[b])
    shift = np.uint64(blocks.shift[b])
    if width == 2:
        _margins_of_pairs(
            table, dense, dense_base, indptr, features, values, ids, margins, np.int64(stride)
        )
        return
    dense_row, dense_x = work.dense_row, work.dense_x
    weights, places = blocks.weights, blocks.places
    margins[: np.uint64(len(ids)) * stride] = 0.0
    for j in range(len(ids)):
        m = np.uint64(j) * stride
        # Sparse rows are added at once, dense ones noted and added four at a time.
        n_dense = np.uint64(0)
        for p in range(np.uint64(indptr[ids[j]]), np.uint64(indptr[ids[j] + 1])):
            code = np.uint32(table[np.uint64(features[p])])
            x = values[p]
            number = np.uint32(code >> np.uint32(CODE_BITS))
            kind = np.uint32(code & np.uint32(DENSE_CODE))
            if kind == np.uint32(DENSE_CODE):
                dense_row[n_dense] = number
                dense_x[n_dense] = x
                n_dense += ONE
            else:
                # Whole groups, without a branch: what follows the row goes to places of its own
                # past the width, so that no sum waits for another.
                at = entry_base + (np.uint64(number) << shift)
                for first in range(np.uint64(0), np.uint64(kind), FOUR):
                    for c in range(FOUR):
                        inside = first + c < np.uint64(kind)
                        place = np.uint64(places[at + first + c]) if inside else width + c
                        margins[m + place] += x * weights[at + first + c]
        while n_dense & (FOUR - ONE):
            dense_row[n_dense] = dense_row[0]
            dense_x[n_dense] = 0.0
            n_dense += ONE
        for r in range(np.uint64(0), n_dense, FOUR):
            _add_four(
                margins, m, width, dense,
                dense_base + dense_row[r] * width,
                dense_base + dense_row[r + ONE] * width,
                dense_base + dense_row[r + TWO] * width,
                dense_base + dense_row[r + THREE] * width,
                dense_x[r], dense_x[r + ONE], dense_x[r + TWO], dense_x[r + THREE],
            )  # fmt: skip
