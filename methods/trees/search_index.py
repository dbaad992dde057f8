"""A forest laid out for search: which weights a document has to read, and in what order.

The weights of a node form a block, a row for each feature and a column for each target. A row that
many targets use is stored dense, so that it is added to all margins by vector instructions; the
others are lists of weights and places. The upper levels of all trees, which nearly every document
passes, are joined into one block, the head: one pass over a document serves them all.

:mod:`methods.trees.index_builder` makes the index from the weights of nodes. It is the only form
in which a trained forest is kept: weights at scale are gigabytes, and a second form as many more.
"""

from __future__ import annotations

from typing import Any, BinaryIO, NamedTuple

import numpy as np

DENSE_SHARE = 5
"""A row is made dense if at least one target in so many uses it."""
HEAD_NODES = 32
"""The head of a tree ends before the first level with more inner nodes than this."""
GROUP = 4
"""Entries of a sparse row that are added side by side."""
CODE_BITS = 8
"""Lower bits of a row's code, which say how many entries it has or that it is dense."""
DENSE_CODE = (1 << CODE_BITS) - 1
"""These bits of a dense row."""
LONGEST = 248
"""Entries of a sparse row, at most; longer rows are dense."""
CODE_NUMBERS = 1 << (32 - CODE_BITS)
"""Numbers that the upper bits of a code can tell apart."""


class Blocks(NamedTuple):
    """Weights of blocks of classifiers, of block b between ``_start[b]`` and ``_stop[b]``.

    Row r belongs to ``features[r]`` and has ``lengths[r]`` entries, or is dense where that is
    DENSE_CODE: then it is the next ``width[b]`` values of the block in ``dense``. Entries are a
    weight and the place of its target, each in an array of its own and without padding, since most
    rows of a large forest have one or two; a row begins at a multiple of ``2 ** shift[b]``, which
    is 1 but for blocks with millions of entries. GROUP entries follow the last of all, so that a
    reader may go past the end of a row.

    In the search a row is known by its code, which is its length and, above CODE_BITS, where it
    begins: its number among the block's dense rows, or its first entry, counted in multiples of
    ``2 ** shift[b]``. A block of two targets has only dense rows, and one of zeros as number 0:
    the code 0 of features that it does not use needs no test there.
    """

    width: np.ndarray  # int64[blocks]
    shift: np.ndarray  # int64[blocks]
    row_start: np.ndarray  # int64[blocks]
    row_stop: np.ndarray  # int64[blocks]
    dense_start: np.ndarray  # int64[blocks]
    dense_stop: np.ndarray  # int64[blocks]
    entry_start: np.ndarray  # int64[blocks]
    entry_stop: np.ndarray  # int64[blocks]
    features: np.ndarray  # int32[rows], as numbered by SearchIndex.number
    lengths: np.ndarray  # uint8[rows]
    dense: np.ndarray  # float32
    weights: np.ndarray  # float32
    places: np.ndarray  # uint16, or int32 where a block has more targets than that can number


class SearchIndex(NamedTuple):
    """What the beam search reads. Nodes of all trees have one numbering.

    Node v leads to ``targets[target_indptr[v]:target_indptr[v + 1]]``: nodes, or labels where
    ``leaf[v]``.
    """

    number: np.ndarray  # int32[n_features + 1]: features by falling use, -1 for unused ones
    n_used: int
    bias: np.float32
    n_labels: int
    roots: np.ndarray
    leaf: np.ndarray
    target_indptr: np.ndarray
    targets: np.ndarray
    nodes: Blocks  # a block per node; empty for nodes of the head
    head: Blocks  # one block
    head_codes: np.ndarray  # uint32[n_used]: the code of each feature's row in the head
    head_start: np.ndarray  # int64[nodes]: the node's first column in the head, or -1
    leaf_of: np.ndarray  # int32[trees, n_labels]: the leaf that holds a label, or -1
    place_of: np.ndarray  # int32[trees, n_labels]: its place in that leaf


_BLOCKS = ("nodes", "head")
_SCALARS = {"n_used": int, "bias": np.float32, "n_labels": int}


def save(index: SearchIndex, file: BinaryIO) -> None:
    """Write all arrays, one after another: no archive, whose checksums would slow down loading."""
    for value in index:
        for array in value if isinstance(value, Blocks) else [value]:
            np.save(file, np.asarray(array))


def load(file: BinaryIO) -> SearchIndex:
    """The index that :func:`save` wrote at this place of the file."""
    found: dict[str, Any] = {}
    for name in SearchIndex._fields:
        if name in _BLOCKS:
            found[name] = Blocks(*(np.load(file) for _ in Blocks._fields))
        else:
            value = np.load(file)
            found[name] = _SCALARS[name](value) if name in _SCALARS else value
    return SearchIndex(**found)
