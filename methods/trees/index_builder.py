"""A search index made from the weights of nodes, one node at a time.

A node's weights are laid out as soon as they are trained, and its own arrays are let go: the
weights of a forest never exist twice. Only the nodes of the head are kept until all are there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from methods.trees import search_index
from methods.trees.margins import write_codes
from methods.trees.node_solver import NodeWeights
from methods.trees.search_index import (
    CODE_NUMBERS,
    DENSE_CODE,
    DENSE_SHARE,
    GROUP,
    LONGEST,
    Blocks,
    SearchIndex,
)


class Outline(NamedTuple):
    """Trees without weights, as :class:`SearchIndex` numbers their nodes."""

    n_labels: int
    roots: np.ndarray
    leaf: np.ndarray
    target_indptr: np.ndarray
    targets: np.ndarray


class IndexBuilder:
    """Takes the weights of every node once, in any order."""

    def __init__(self, outline: Outline, n_features: int, bias: float) -> None:
        self.outline = outline
        self.bias = bias
        self.n_weights = 0
        self._uses = np.zeros(n_features + 1, np.int64)
        self._squares = np.zeros(len(outline.targets), np.float64)
        n_targets = np.diff(outline.target_indptr)
        self._head_nodes = _head_nodes(outline)
        self._starts = np.concatenate([[0], np.cumsum(n_targets[self._head_nodes])])
        self._head: dict[int, NodeWeights | None] = dict.fromkeys(self._head_nodes.tolist())
        widest = max(int(n_targets.max(initial=0)), int(self._starts[-1]))
        self._places = np.uint16 if widest <= 1 << 16 else np.int32
        self._nodes = _Store(len(outline.leaf), self._places)

    def add(self, node: int, weights: NodeWeights) -> None:
        """Lay out the weights of a node."""
        self.n_weights += len(weights.values)
        self._uses[weights.features] += 1
        first, last = self.outline.target_indptr[node : node + 2]
        if self.outline.leaf[node]:
            _add_squares(*weights, len(self._uses) - 1, self._squares[first:last])
        if node in self._head:
            self._head[node] = weights
        else:
            self._nodes.add(node, weights, int(last - first))

    def finish(self) -> SearchIndex:
        """The index, once every node was added."""
        # The commonest features side by side: most look-ups then fall into a few cache lines.
        order = np.argsort(-self._uses, kind="stable")
        n_used = int((self._uses > 0).sum())
        number = np.full(len(self._uses), -1, np.int32)
        number[order[:n_used]] = np.arange(n_used, dtype=np.int32)
        outline = self.outline
        store = _Store(1, self._places)
        if len(self._head_nodes):
            store.add(0, self._joined_head(), int(self._starts[-1]))
        head, nodes = store.blocks(number), self._nodes.blocks(number)
        head_codes = np.zeros(n_used, np.uint32)
        write_codes(head_codes, head, 0)
        head_start = np.full(len(outline.leaf), -1, np.int64)
        head_start[self._head_nodes] = self._starts[:-1]
        leaf_of, place_of = _places_of_labels(outline)
        return SearchIndex(
            number=number,
            n_used=n_used,
            bias=np.float32(self.bias),
            n_labels=outline.n_labels,
            roots=outline.roots,
            leaf=outline.leaf,
            target_indptr=outline.target_indptr,
            targets=outline.targets,
            nodes=nodes,
            head=head,
            head_codes=head_codes,
            head_start=head_start,
            leaf_of=leaf_of,
            place_of=place_of,
        )

    def label_norms(self) -> np.ndarray:
        """Mean over trees of the norm of each label's leaf classifier, bias left out; or NaN."""
        outline = self.outline
        in_leaf = np.repeat(outline.leaf, np.diff(outline.target_indptr))
        labels = outline.targets[in_leaf]
        seen = np.bincount(labels, minlength=outline.n_labels)
        sums = np.bincount(
            labels, weights=np.sqrt(self._squares[in_leaf]), minlength=outline.n_labels
        )
        with np.errstate(invalid="ignore"):
            return np.where(seen > 0, sums / seen, np.nan).astype(np.float32)

    def _joined_head(self) -> NodeWeights:
        """The columns of the head's nodes side by side; the nodes' own arrays are let go."""
        counts = np.zeros(len(self._uses), np.int64)
        for part in self._head.values():
            assert part is not None, "a node of the head was not added"
            counts[part.features] += np.diff(part.indptr)
        ends = np.cumsum(counts)
        features = np.flatnonzero(counts).astype(np.int32)
        cursor = ends - counts
        targets, values = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)
        for node, start in zip(self._head_nodes.tolist(), self._starts, strict=False):
            _append_columns(*self._head[node], start, cursor, targets, values)  # type: ignore[misc]
            self._head[node] = None
        return NodeWeights(features, np.append(0, ends[features]), targets, values)


class _Growing:
    """An array that grows at its end.

    Large arrays grow in place, or the system moves their pages: nothing is copied, and beside it
    there is never another of that size.
    """

    def __init__(self, dtype: Any) -> None:
        self.used = 0
        self._array = np.empty(1 << 16, dtype)

    def more(self, n: int) -> np.ndarray:
        """The next n values, all 0, to be written before the next call."""
        first, self.used = self.used, self.used + n
        if self.used > len(self._array):
            size = max(self.used, len(self._array) + len(self._array) // 16)
            self._array.resize(size, refcheck=False)
        part = self._array[first : self.used]
        part[:] = 0
        return part

    def finished(self) -> np.ndarray:
        """The array as long as what was asked for."""
        self._array.resize(self.used, refcheck=False)
        return self._array


class _Store:
    """Blocks that are added in any order, each once."""

    def __init__(self, n_blocks: int, places: Any) -> None:
        per_block = [name for name in Blocks._fields if name not in _ARRAYS]
        self.of_block = {name: np.zeros(n_blocks, np.int64) for name in per_block}
        self.arrays = {
            name: _Growing(places if dtype is None else dtype) for name, dtype in _ARRAYS.items()
        }

    def add(self, block: int, node: NodeWeights, n_targets: int) -> None:
        """Lay out the weights of a block with so many targets."""
        width = -(-n_targets // 8) * 8 if n_targets > 2 else 2
        n_dense, n_entries, shift = _sizes(node.indptr, n_targets, width)
        sizes = {"row": len(node.features), "dense": n_dense * width, "entry": n_entries}
        of = self.of_block
        of["width"][block], of["shift"][block] = width, shift
        for part, array in (("row", "features"), ("dense", "dense"), ("entry", "weights")):
            of[f"{part}_start"][block] = self.arrays[array].used
            of[f"{part}_stop"][block] = self.arrays[array].used + sizes[part]
        _fill(
            *node, n_targets, width, shift,
            self.arrays["features"].more(sizes["row"]),
            self.arrays["lengths"].more(sizes["row"]),
            self.arrays["dense"].more(sizes["dense"]),
            self.arrays["weights"].more(sizes["entry"]),
            self.arrays["places"].more(sizes["entry"]),
        )  # fmt: skip

    def blocks(self, number: np.ndarray) -> Blocks:
        """All that was added, features by their number."""
        for name in ("weights", "places"):
            self.arrays[name].more(GROUP)
        found = {name: array.finished() for name, array in self.arrays.items()}
        _renumber(found["features"], number)
        return Blocks(**self.of_block, **found)


_ARRAYS = {
    "features": np.int32,
    "lengths": np.uint8,
    "dense": np.float32,
    "weights": np.float32,
    "places": None,
}
"""What :class:`Blocks` has besides a number for each block, by type; that of places varies."""


def _head_nodes(outline: Outline) -> np.ndarray:
    """Inner nodes of the levels from the root on that hold at most HEAD_NODES of them."""
    found = []
    leaf, starts = outline.leaf, outline.target_indptr
    for root in outline.roots:
        level = np.array([root])[~leaf[[root]]]
        while 0 < len(level) <= search_index.HEAD_NODES:
            found.append(level)
            level = np.concatenate([outline.targets[starts[v] : starts[v + 1]] for v in level])
            level = level[~leaf[level]]
    return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)


def _places_of_labels(outline: Outline) -> tuple[np.ndarray, np.ndarray]:
    leaf_of = np.full((len(outline.roots), outline.n_labels), -1, np.int32)
    place_of = np.zeros_like(leaf_of)
    n_targets = np.diff(outline.target_indptr)
    node = np.repeat(np.arange(len(outline.leaf)), n_targets)
    tree = np.searchsorted(outline.roots, node, side="right") - 1
    place = np.arange(len(node)) - outline.target_indptr[node]
    held = outline.leaf[node]
    leaf_of[tree[held], outline.targets[held]] = node[held]
    place_of[tree[held], outline.targets[held]] = place[held]
    return leaf_of, place_of


@njit(cache=True, nogil=True)
def _is_dense(used, n_targets):  # type: ignore[no-untyped-def]
    return n_targets <= 2 or used * DENSE_SHARE >= n_targets or used > LONGEST


@njit(cache=True, nogil=True)
def _sizes(indptr, n_targets, width):  # type: ignore[no-untyped-def]
    """Dense rows and room for entries of a block, and its shift: the least that codes can hold."""
    shift = 0
    while True:
        n_dense = 1 if width == 2 else 0
        units = 0
        for r in range(len(indptr) - 1):
            used = indptr[r + 1] - indptr[r]
            if _is_dense(used, n_targets):
                n_dense += 1
            else:
                units += (used + (1 << shift) - 1) >> shift
        if n_dense > CODE_NUMBERS:
            raise ValueError("a node of the forest has too many features")
        if units <= CODE_NUMBERS:
            return n_dense, units << shift, shift
        shift += 1


@njit(cache=True, nogil=True)
def _fill(  # type: ignore[no-untyped-def]
    features, indptr, targets, values, n_targets, width, shift,
    out_features, lengths, dense, weights, places,
):  # fmt: skip
    """Write a node's rows into arrays that have room for them and are 0."""
    n_dense = 1 if width == 2 else 0
    at = 0
    for r in range(len(features)):
        out_features[r] = features[r]
        first, last = indptr[r], indptr[r + 1]
        if _is_dense(last - first, n_targets):
            lengths[r] = DENSE_CODE
            for e in range(first, last):
                dense[n_dense * width + targets[e]] = values[e]
            n_dense += 1
        else:
            lengths[r] = last - first
            for e in range(first, last):
                weights[at + e - first] = values[e]
                places[at + e - first] = targets[e]
            at += (last - first + (1 << shift) - 1) >> shift << shift


@njit(cache=True, nogil=True)
def _add_squares(features, indptr, targets, values, n_features, squares):  # type: ignore[no-untyped-def]
    """Add the squares of a node's weights to those of its targets, without the bias."""
    for r in range(len(features)):
        if features[r] < n_features:
            for e in range(indptr[r], indptr[r + 1]):
                squares[targets[e]] += np.float64(values[e]) ** 2


@njit(cache=True, nogil=True)
def _append_columns(  # type: ignore[no-untyped-def]
    features, indptr, targets, values, first_column, cursor, out_targets, out_values
):
    """Append a node's entries to the rows of its features, each of which ends at its cursor."""
    for r in range(len(features)):
        at = cursor[features[r]]
        for e in range(indptr[r], indptr[r + 1]):
            out_targets[at] = targets[e] + first_column
            out_values[at] = values[e]
            at += 1
        cursor[features[r]] = at


@njit(cache=True, nogil=True)
def _renumber(features, number):  # type: ignore[no-untyped-def]
    for r in range(len(features)):
        features[r] = number[features[r]]
