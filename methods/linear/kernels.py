"""Compiled kernels of the one-vs-rest solver: products with the rows of X, for one label or many.

Every sum that belongs to a label is taken in an order that depends on that label's problem only,
never on which other labels share a block, on the number of threads or on the shard: this is what
makes results equal bit for bit however the work is divided.

The bias is not stored: each row is (x, ``bias``), with ``bias`` 1 or 0, and a weight vector has
one entry more than X has columns, the bias last.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.linear.lanes import (
    FUSED,
    VECTOR,
    arrays_to_rows,
    row_times_8,
    row_times_16,
    row_times_32,
    row_times_64,
    rows_to_arrays,
)

# Sums may be split over vector lanes: the split depends on the length of the array alone.
SPLIT_SUMS = {"reassoc", "contract", "nsz", "arcp"}

TILE = 64  # rows whose products are kept together until they are written label by label


@njit(nogil=True, cache=True)
def _addresses(arrays: np.ndarray, lanes: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Where the arrays of the lanes begin; ``spare`` stands in up to the full vector."""
    width = (lanes.shape[0] + VECTOR - 1) // VECTOR * VECTOR
    found = np.empty(width, np.int64)
    for b in range(width):
        found[b] = arrays[lanes[b]].ctypes.data if b < lanes.shape[0] else spare.ctypes.data
    return found


@njit(nogil=True, cache=True)
def block_product(
    start: np.ndarray,
    stop: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    block: np.ndarray,
    first_column: int,
    lanes: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add ``x_i . block[:, b]`` to ``out[lanes[b], i]``, x_i the entries ``start[i]:stop[i]``.

    ``block`` is float32[columns, width], ``width`` the number of lanes up to a multiple of 8, for
    columns of X from ``first_column`` on, and no entry has another column. X is read once.
    """
    _block_product(
        start, stop, indices, data, block, first_column, lanes, out,
        np.zeros(start.shape[0], np.float32),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _block_product(  # type: ignore[no-untyped-def]
    start, stop, indices, data, block, first_column, lanes, out, spare
):
    """``spare`` is the caller's, which keeps it while its address is written to."""
    n = start.shape[0]
    width = block.shape[1]
    tile = np.zeros((TILE, width), np.float32)
    addresses = _addresses(out, lanes, spare)
    first_at = block.ctypes.data - 4 * first_column * width
    for first in range(0, n, TILE):
        rows = min(TILE, n - first)
        whole = rows // VECTOR * VECTOR
        for b in range(0, width, VECTOR):
            for t in range(0, whole, VECTOR):
                tile_at = tile.ctypes.data + 4 * (t * width + b)
                arrays_to_rows(addresses.ctypes.data + 8 * b, 4 * (first + t), tile_at, 4 * width)
        for b in range(lanes.shape[0]):
            for t in range(whole, rows):
                tile[t, b] = out[lanes[b], first + t]
        for t in range(rows):
            lo = start[first + t]
            count = stop[first + t] - lo
            index_at = indices.ctypes.data + 4 * lo
            value_at = data.ctypes.data + 4 * lo
            done = 0
            while done < width:
                block_at = first_at + 4 * done
                out_at = tile.ctypes.data + 4 * (t * width + done)
                left = width - done
                if left >= 64:
                    row_times_64(index_at, value_at, count, block_at, width, out_at)
                    done += 64
                elif left >= 32:
                    row_times_32(index_at, value_at, count, block_at, width, out_at)
                    done += 32
                elif left >= 16:
                    row_times_16(index_at, value_at, count, block_at, width, out_at)
                    done += 16
                else:
                    row_times_8(index_at, value_at, count, block_at, width, out_at)
                    done += 8
        for b in range(0, width, VECTOR):
            for t in range(0, whole, VECTOR):
                tile_at = tile.ctypes.data + 4 * (t * width + b)
                rows_to_arrays(addresses.ctypes.data + 8 * b, 4 * (first + t), tile_at, 4 * width)
        for b in range(lanes.shape[0]):
            for t in range(whole, rows):
                out[lanes[b], first + t] = tile[t, b]


@njit(nogil=True, cache=True)
def pack_columns(
    vectors: np.ndarray, lanes: np.ndarray, first_column: int, block: np.ndarray
) -> None:
    """Lay rows ``lanes`` of ``vectors``, from ``first_column`` on, out as columns of ``block``.

    Columns up to the width of the block are set to zero.
    """
    zeros = np.zeros(first_column + block.shape[0], np.float32)
    _pack_columns(vectors, lanes, first_column, block, zeros)


@njit(nogil=True, cache=True)
def _pack_columns(vectors, lanes, first_column, block, zeros):  # type: ignore[no-untyped-def]
    """``zeros`` is the caller's, which keeps it while its address is read from."""
    columns, width = block.shape
    addresses = _addresses(vectors, lanes, zeros)
    whole = columns // VECTOR * VECTOR
    for j in range(0, whole, VECTOR):
        for b in range(0, width, VECTOR):
            arrays_to_rows(
                addresses.ctypes.data + 8 * b,
                4 * (first_column + j),
                block.ctypes.data + 4 * (j * width + b),
                4 * width,
            )
    for j in range(whole, columns):
        for b in range(width):
            if b < lanes.shape[0]:
                block[j, b] = vectors[lanes[b], first_column + j]
            else:
                block[j, b] = np.float32(0)


@njit(nogil=True, cache=True, fastmath=FUSED)
def add_columns(
    indptr: np.ndarray,
    rows: np.ndarray,
    data: np.ndarray,
    columns: np.ndarray,
    vector: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add to ``out`` the given columns of X times their entries of ``vector``.

    With columns ascending, the entries of a row come in the order of :func:`block_product`: the
    sums are the same, bit for bit.
    """
    for j in columns:
        x = vector[j]
        for q in range(indptr[j], indptr[j + 1]):
            out[rows[q]] += x * data[q]


@njit(nogil=True, cache=True, inline="always")
def row_dot(columns: np.ndarray, values: np.ndarray, vector: np.ndarray) -> np.float32:
    """A sparse row times a dense vector, in four running sums to hide the latency of adding."""
    count = values.shape[0]
    whole = count // 4 * 4
    s0 = np.float32(0)
    s1 = np.float32(0)
    s2 = np.float32(0)
    s3 = np.float32(0)
    for q in range(0, whole, 4):
        s0 += values[q] * vector[columns[q]]
        s1 += values[q + 1] * vector[columns[q + 1]]
        s2 += values[q + 2] * vector[columns[q + 2]]
        s3 += values[q + 3] * vector[columns[q + 3]]
    for q in range(whole, count):
        s0 += values[q] * vector[columns[q]]
    return (s0 + s1) + (s2 + s3)


@njit(nogil=True, cache=True, inline="always")
def row_add(columns: np.ndarray, values: np.ndarray, factor: np.float32, to: np.ndarray) -> None:
    """``to += factor * row``."""
    for q in range(values.shape[0]):
        to[columns[q]] += factor * values[q]


@njit(nogil=True, cache=True, fastmath=SPLIT_SUMS)
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Inner product of two float32 vectors, summed in float64."""
    total = 0.0
    for j in range(a.shape[0]):
        total += np.float64(a[j]) * np.float64(b[j])
    return total


@njit(nogil=True, cache=True, fastmath=FUSED)
def curvature_product(
    start: np.ndarray,
    stop: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    bias: np.float32,
    twice_cost: np.ndarray,
    p: np.ndarray,
    out: np.ndarray,
) -> float:
    """Add ``X' (2 C) X p`` to ``out``; return ``p' X' (2 C) X p``.

    Row i of X is ``indices[start[i]:stop[i]]`` with their data.
    """
    columns = p.shape[0] - 1
    p_bias = p[columns] * bias
    to_bias = 0.0
    total = 0.0
    for i in range(start.shape[0]):
        lo, hi = start[i], stop[i]
        product = row_dot(indices[lo:hi], data[lo:hi], p) + p_bias
        u = twice_cost[i] * product
        total += np.float64(u) * np.float64(product)
        to_bias += np.float64(u)
        row_add(indices[lo:hi], data[lo:hi], u, out)
    out[columns] += np.float32(to_bias) * bias
    return total


@njit(nogil=True, cache=True, fastmath=SPLIT_SUMS)
def cg_advance(
    alpha: np.float32,
    p: np.ndarray,
    hp: np.ndarray,
    s: np.ndarray,
    r: np.ndarray,
    mean: np.ndarray,
) -> tuple[float, float]:
    """``s += alpha p``, ``r -= alpha Hp``; return ``r.r`` and ``mean.r``."""
    rr = 0.0
    mr = 0.0
    for j in range(s.shape[0]):
        s[j] += alpha * p[j]
        left = r[j] - alpha * hp[j]
        r[j] = left
        rr += np.float64(left) * np.float64(left)
        mr += np.float64(left) * np.float64(mean[j])
    return rr, mr


@njit(nogil=True, cache=True, fastmath=SPLIT_SUMS)
def cg_turn(
    beta: np.float32,
    shift: np.float32,
    r: np.ndarray,
    mean: np.ndarray,
    p: np.ndarray,
    hp: np.ndarray,
) -> float:
    """``p = (r - shift mean) + beta p`` and ``hp = p`` (H starts from the identity); ``p.p``."""
    pp = 0.0
    for j in range(p.shape[0]):
        turned = r[j] - shift * mean[j] + beta * p[j]
        p[j] = turned
        hp[j] = turned
        pp += np.float64(turned) * np.float64(turned)
    return pp
