"""Compiled kernels of the one-vs-rest solver: products with the rows of X, for one label or many.

Every sum that belongs to a label is taken in an order that depends on that label's problem only,
never on which other labels share a block, on the number of threads or on the shard: this is what
makes results equal bit for bit however the work is divided.

The bias is not stored: each row is (x, ``bias``), with ``bias`` 1 or 0, and a weight vector has
one entry more than X has columns, the bias last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

# Sums may be split over vector lanes: the split depends on the length of the array alone.
SPLIT_SUMS = {"reassoc", "contract", "nsz", "arcp"}

FUSED = {"contract"}  # a product may be added in one instruction, with one rounding

VECTOR = 8  # lanes of one vector register (float32 in 256 bits)
TILE = 16  # rows whose products are kept together until they are written label by label


def _lanes_intrinsic(vectors: int) -> Any:
    """A loop over one sparse row for ``8 * vectors`` labels at once, sums held in registers.

    Written in LLVM since numba keeps such sums in memory, which makes the loop wait for stores.
    Lanes never mix, so a label's sum is the same in whichever lane and width it is computed.
    """

    @intrinsic
    def row_times_block(
        typingctx: Any, index: Any, value: Any, length: Any, block: Any, width: Any, out: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            index_at, value_at, count, block_at, row_width, out_at = args
            real, word, long = ir.FloatType(), ir.IntType(32), ir.IntType(64)
            lanes = ir.VectorType(real, VECTOR)
            indices = builder.inttoptr(index_at, word.as_pointer())
            values = builder.inttoptr(value_at, real.as_pointer())
            weights = builder.inttoptr(block_at, real.as_pointer())
            result = builder.inttoptr(out_at, real.as_pointer())
            places = [
                builder.bitcast(
                    builder.gep(result, [long(v * VECTOR)], inbounds=True), lanes.as_pointer()
                )
                for v in range(vectors)
            ]
            starts = [builder.load(place, align=4) for place in places]
            before = builder.block
            loop = builder.append_basic_block("nonzeros")
            after = builder.append_basic_block("done")
            builder.cbranch(builder.icmp_signed(">", count, long(0)), loop, after)
            builder.position_at_end(loop)
            q = builder.phi(long)
            q.add_incoming(long(0), before)
            sums = [builder.phi(lanes) for _ in range(vectors)]
            for total, start in zip(sums, starts, strict=True):
                total.add_incoming(start, before)
            column = builder.zext(builder.load(builder.gep(indices, [q], inbounds=True)), long)
            x = builder.load(builder.gep(values, [q], inbounds=True))
            spread = builder.insert_element(ir.Constant(lanes, ir.Undefined), x, word(0))
            zeros = ir.Constant(ir.VectorType(word, VECTOR), [0] * VECTOR)
            spread = builder.shuffle_vector(spread, ir.Constant(lanes, ir.Undefined), zeros)
            base = builder.mul(column, row_width)
            added = []
            for v, total in enumerate(sums):
                at = builder.gep(weights, [builder.add(base, long(v * VECTOR))], inbounds=True)
                w = builder.load(builder.bitcast(at, lanes.as_pointer()), align=4)
                product = builder.fmul(spread, w, flags=tuple(FUSED))
                added.append(builder.fadd(total, product, flags=tuple(FUSED)))
            step = builder.add(q, long(1))
            q.add_incoming(step, loop)
            for total, value_ in zip(sums, added, strict=True):
                total.add_incoming(value_, loop)
            builder.cbranch(builder.icmp_signed("<", step, count), loop, after)
            builder.position_at_end(after)
            finals = [builder.phi(lanes) for _ in range(vectors)]
            for final, start, value_ in zip(finals, starts, added, strict=True):
                final.add_incoming(start, before)
                final.add_incoming(value_, loop)
            for final, place in zip(finals, places, strict=True):
                builder.store(final, place, align=4)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 6), codegen

    return row_times_block


_row_64 = _lanes_intrinsic(8)
_row_32 = _lanes_intrinsic(4)
_row_16 = _lanes_intrinsic(2)
_row_8 = _lanes_intrinsic(1)


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

    ``block`` is float32[columns, width], ``width`` a multiple of 8, for columns of X from
    ``first_column`` on, and no entry has another column. X is read once.
    """
    n = start.shape[0]
    width = block.shape[1]
    tile = np.zeros((TILE, width), np.float32)
    first_at = block.ctypes.data - 4 * first_column * width
    for first in range(0, n, TILE):
        rows = min(TILE, n - first)
        for b in range(lanes.shape[0]):
            for t in range(rows):
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
                    _row_64(index_at, value_at, count, block_at, width, out_at)
                    done += 64
                elif left >= 32:
                    _row_32(index_at, value_at, count, block_at, width, out_at)
                    done += 32
                elif left >= 16:
                    _row_16(index_at, value_at, count, block_at, width, out_at)
                    done += 16
                else:
                    _row_8(index_at, value_at, count, block_at, width, out_at)
                    done += 8
        for b in range(lanes.shape[0]):
            for t in range(rows):
                out[lanes[b], first + t] = tile[t, b]


@njit(nogil=True, cache=True)
def pack_columns(
    vectors: np.ndarray, lanes: np.ndarray, first_column: int, block: np.ndarray
) -> None:
    """Lay rows ``lanes`` of ``vectors``, from ``first_column`` on, out as columns of ``block``.

    Columns up to the width of the block are set to zero.
    """
    columns, width = block.shape
    for first in range(0, columns, 4 * TILE):
        last = min(first + 4 * TILE, columns)
        for b in range(lanes.shape[0]):
            for j in range(first, last):
                block[j, b] = vectors[lanes[b], first_column + j]
        for j in range(first, last):
            for b in range(lanes.shape[0], width):
                block[j, b] = np.float32(0)


@njit(nogil=True, cache=True)
def entries_of(indptr: np.ndarray, vector: np.ndarray) -> int:
    """How many entries the columns have where ``vector`` is not zero."""
    total = 0
    for j in range(vector.shape[0]):
        if vector[j] != np.float32(0):
            total += indptr[j + 1] - indptr[j]
    return total


@njit(nogil=True, cache=True, fastmath=FUSED)
def add_columns(
    indptr: np.ndarray, rows: np.ndarray, data: np.ndarray, vector: np.ndarray, out: np.ndarray
) -> None:
    """Add to ``out`` the columns of X times ``vector``, passing over its zeros.

    Entries of a row come in the order of columns, as in :func:`block_product`: the sums are the
    same, bit for bit.
    """
    for j in range(vector.shape[0]):
        x = vector[j]
        if x != np.float32(0):
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
