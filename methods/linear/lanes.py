"""Labels side by side in vector registers: products of a sparse row with a block, and transposing.

Written in LLVM, where numba keeps sums in memory or moves numbers one by one. Lanes never mix: a
label's sum is the same in whichever lane and width it is computed.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

FUSED = {"contract"}  # a product may be added in one instruction, with one rounding
VECTOR = 8  # lanes of one vector register (float32 in 256 bits)


def _product_intrinsic(vectors: int) -> Any:
    """A loop over one sparse row for ``8 * vectors`` labels at once, sums held in registers."""

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


row_times_64 = _product_intrinsic(8)
row_times_32 = _product_intrinsic(4)
row_times_16 = _product_intrinsic(2)
row_times_8 = _product_intrinsic(1)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Eight vectors of eight: element j of vector i becomes element i of vector j."""
    word = ir.IntType(32)
    for distance in (1, 2, 4):
        kept = [j if j & distance == 0 else VECTOR + j - distance for j in range(VECTOR)]
        taken = [j + distance if j & distance == 0 else VECTOR + j for j in range(VECTOR)]
        masks = [ir.Constant(ir.VectorType(word, VECTOR), mask) for mask in (kept, taken)]
        for i in range(VECTOR):
            if i & distance == 0:
                pair = rows[i], rows[i + distance]
                rows[i], rows[i + distance] = (
                    builder.shuffle_vector(*pair, mask) for mask in masks
                )
    return rows


def _transposing_intrinsic(gathers: bool) -> Any:
    """Eight arrays, by their addresses, from a byte offset on: eight numbers of each become eight
    rows with a ``stride`` in bytes (``gathers``), or the other way round."""

    @intrinsic
    def transpose(typingctx: Any, addresses: Any, offset: Any, matrix: Any, stride: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            addresses_at, offset_by, matrix_at, row_stride = args
            long = ir.IntType(64)
            lanes = ir.VectorType(ir.FloatType(), VECTOR)
            table = builder.inttoptr(addresses_at, long.as_pointer())

            def place(address: Any) -> Any:
                return builder.inttoptr(address, lanes.as_pointer())

            arrays = [
                place(
                    builder.add(
                        builder.load(builder.gep(table, [long(b)], inbounds=True)), offset_by
                    )
                )
                for b in range(VECTOR)
            ]
            rows = [
                place(builder.add(matrix_at, builder.mul(row_stride, long(r))))
                for r in range(VECTOR)
            ]
            source, target = (arrays, rows) if gathers else (rows, arrays)
            vectors = _transposed(builder, [builder.load(at, align=4) for at in source])
            for vector, at in zip(vectors, target, strict=True):
                builder.store(vector, at, align=4)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 4), codegen

    return transpose


arrays_to_rows = _transposing_intrinsic(gathers=True)
rows_to_arrays = _transposing_intrinsic(gathers=False)
