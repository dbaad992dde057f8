"""A forest laid out for search: which weights a document has to read, and in what order.

The weights of a node form a block, a row for each feature and a column for each target. A row that
many targets use is stored dense, so that it is added to all margins by vector instructions; the
other rows stay as the forest holds them. The upper levels of all trees, which nearly every
document passes, are joined into one block, the head: one pass over a document serves them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from methods.trees.label_tree import Forest

DENSE_SHARE = 5
"""A row is made dense if at least one target in so many uses it."""
HEAD_NODES = 32
"""The head of a tree ends before the first level with more inner nodes than this."""


GROUP = 4
"""Entries of a sparse row that are stored side by side; a short row is padded."""
CODE_BITS = 6
"""Lower bits of a row's code, which say how many groups it has or that it is dense."""
DENSE_CODE = (1 << CODE_BITS) - 1
"""These bits of a dense row."""


class Blocks(NamedTuple):
    """Weights of blocks of classifiers; rows ``row_indptr[b]:row_indptr[b + 1]`` are block b's.

    A row's code is DENSE_CODE and, above these bits, its number among the block's dense rows, or
    the number of its groups and that of its first group in the block. Dense rows are ``width[b]``
    values from ``dense_start[b]`` on in ``dense``. Group g, counted over all blocks from
    ``group_start[b]`` on, is GROUP weights from ``weights[2 * GROUP * g]`` on and their places
    right after them in ``places``, a view of the same memory: a group is read at once. Padding has
    weight 0 at places past the width. A block of two targets has only dense rows, and one of
    zeros as number 0: the code 0 of features that it does not use needs no test there.
    """

    width: np.ndarray  # int64[blocks]
    row_indptr: np.ndarray  # int64[blocks + 1]
    features: np.ndarray  # int32[rows], as numbered by SearchIndex.number
    codes: np.ndarray  # uint32[rows]
    dense_start: np.ndarray  # int64[blocks]
    group_start: np.ndarray  # int64[blocks]
    dense: np.ndarray  # float32
    weights: np.ndarray  # float32
    places: np.ndarray  # int32


class SearchIndex(NamedTuple):
    """What the beam search reads, all of it derived from a :class:`Forest`."""

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


def build(forest: Forest) -> SearchIndex:
    """Lay a forest out for search."""
    n_targets = np.diff(forest.target_indptr)
    uses = np.bincount(forest.features, minlength=forest.n_features + 1)
    # The commonest features side by side: most look-ups then fall into a few cache lines.
    order = np.argsort(-uses, kind="stable")
    n_used = int((uses > 0).sum())
    number = np.full(forest.n_features + 1, -1, np.int32)
    number[order[:n_used]] = np.arange(n_used, dtype=np.int32)
    features = number[forest.features]
    head_nodes = _head_nodes(forest)
    in_head = np.zeros(len(forest.leaf), bool)
    in_head[head_nodes] = True
    nodes = _blocks(
        np.where(in_head, 0, n_targets),
        forest.row_indptr,
        features,
        forest.entry_indptr,
        forest.places,
        forest.values,
    )
    head, head_start = _join_head(forest, head_nodes, features)
    head_codes = np.zeros(n_used, np.uint32)
    head_codes[head.features] = head.codes
    leaf_of, place_of = _places_of_labels(forest)
    return SearchIndex(
        number=number,
        n_used=n_used,
        bias=np.float32(forest.bias),
        n_labels=forest.n_labels,
        roots=forest.roots,
        leaf=forest.leaf,
        target_indptr=forest.target_indptr,
        targets=forest.targets,
        nodes=nodes,
        head=head,
        head_codes=head_codes,
        head_start=head_start,
        leaf_of=leaf_of,
        place_of=place_of,
    )


def _head_nodes(forest: Forest) -> np.ndarray:
    """Inner nodes of the levels from the root on that hold at most HEAD_NODES of them."""
    found = []
    for root in forest.roots:
        level = np.array([root])[~forest.leaf[[root]]]
        while 0 < len(level) <= HEAD_NODES:
            found.append(level)
            below = [
                forest.targets[forest.target_indptr[v] : forest.target_indptr[v + 1]] for v in level
            ]
            level = np.concatenate(below)
            level = level[~forest.leaf[level]]
    return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)


def _join_head(
    forest: Forest, members: np.ndarray, features: np.ndarray
) -> tuple[Blocks, np.ndarray]:
    """The block of the given nodes' columns side by side, and each node's first column."""
    n_targets = np.diff(forest.target_indptr)[members]
    starts = np.concatenate([[0], np.cumsum(n_targets)])
    head_start = np.full(len(forest.leaf), -1, np.int64)
    head_start[members] = starts[:-1]
    empty = [np.empty(0, np.int64)]
    rows = np.concatenate(
        empty + [np.arange(forest.row_indptr[v], forest.row_indptr[v + 1]) for v in members]
    )
    shift = np.repeat(starts[:-1], np.diff(forest.row_indptr)[members])
    order = np.argsort(features[rows], kind="stable")
    rows, shift = rows[order], shift[order]
    lengths = np.diff(forest.entry_indptr)[rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.repeat(forest.entry_indptr[rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
    own_features, first_row = np.unique(features[rows], return_index=True)
    head = _blocks(
        starts[-1:],
        np.array([0, len(own_features)], np.int64),
        own_features.astype(np.int32),
        np.append(indptr[first_row], indptr[-1]).astype(np.int64),
        (forest.places[entries] + np.repeat(shift, lengths)).astype(np.int32),
        forest.values[entries],
    )
    return head, head_start


def _places_of_labels(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
    leaf_of = np.full((len(forest.roots), forest.n_labels), -1, np.int32)
    place_of = np.zeros_like(leaf_of)
    n_targets = np.diff(forest.target_indptr)
    node = np.repeat(np.arange(len(forest.leaf)), n_targets)
    tree = np.searchsorted(forest.roots, node, side="right") - 1
    place = np.arange(len(node)) - forest.target_indptr[node]
    held = forest.leaf[node]
    leaf_of[tree[held], forest.targets[held]] = node[held]
    place_of[tree[held], forest.targets[held]] = place[held]
    return leaf_of, place_of


def _blocks(
    n_targets: np.ndarray,
    row_indptr: np.ndarray,
    features: np.ndarray,
    entry_indptr: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
) -> Blocks:
    width = np.where(n_targets > 2, -(-n_targets // 8) * 8, np.where(n_targets > 0, 2, 0))
    codes, dense_start, group_start = _row_codes(n_targets, width, row_indptr, entry_indptr)
    dense = np.zeros(dense_start[-1], np.float32)
    weights = np.zeros(2 * GROUP * group_start[-1], np.float32)
    blocks = Blocks(
        width, row_indptr, features, codes, dense_start, group_start, dense, weights,
        weights.view(np.int32),
    )  # fmt: skip
    _fill(blocks, entry_indptr, places, values)
    return blocks


@njit(cache=True, nogil=True)
def _row_codes(n_targets, width, row_indptr, entry_indptr):  # type: ignore[no-untyped-def]
    """The rows' codes, and where blocks start (and the last ends)."""
    codes = np.zeros(row_indptr[-1], np.uint32)
    dense_start = np.zeros(len(n_targets) + 1, np.int64)
    group_start = np.zeros(len(n_targets) + 1, np.int64)
    for b in range(len(n_targets)):
        n_dense = 1 if width[b] == 2 else 0
        n_groups = 0
        first, last = row_indptr[b], row_indptr[b + 1]
        for r in range(first, last if n_targets[b] > 0 else first):
            used = entry_indptr[r + 1] - entry_indptr[r]
            groups = -(-used // GROUP)
            if width[b] == 2 or used * DENSE_SHARE >= n_targets[b] or groups >= DENSE_CODE:
                codes[r] = (n_dense << CODE_BITS) + DENSE_CODE
                n_dense += 1
            else:
                codes[r] = (n_groups << CODE_BITS) + groups
                n_groups += groups
        if max(n_dense, n_groups) >= 1 << (32 - CODE_BITS):
            raise ValueError("a node of the forest has too many weights")
        dense_start[b + 1] = dense_start[b] + n_dense * width[b]
        group_start[b + 1] = group_start[b] + n_groups
    return codes, dense_start, group_start


@njit(cache=True, nogil=True)
def _fill(blocks, entry_indptr, places, values):  # type: ignore[no-untyped-def]
    dense, weights, stored_places = blocks.dense, blocks.weights, blocks.places
    width, codes, row_indptr = blocks.width, blocks.codes, blocks.row_indptr
    for b in range(len(width)):
        if width[b] == 0:
            continue
        for r in range(row_indptr[b], row_indptr[b + 1]):
            number, kind = np.int64(codes[r]) >> CODE_BITS, np.int64(codes[r]) & DENSE_CODE
            first, last = entry_indptr[r], entry_indptr[r + 1]
            if kind == DENSE_CODE:
                for e in range(first, last):
                    dense[blocks.dense_start[b] + number * width[b] + places[e]] = values[e]
                continue
            at = (blocks.group_start[b] + number) * 2 * GROUP
            for c in range(kind * GROUP):
                to = at + c // GROUP * 2 * GROUP + c % GROUP
                if first + c < last:
                    weights[to] = values[first + c]
                    stored_places[to + GROUP] = places[first + c]
                else:
                    # Places of their own, so that no sum waits for another.
                    stored_places[to + GROUP] = width[b] + c % GROUP
