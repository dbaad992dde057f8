"""A tree of labels: which label sits in which leaf, and the classifiers of every node.

Nodes are numbered level by level from the root. An inner node has a classifier for each child, a
leaf one for each of its labels; all are trained on the documents that carry a label of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common.memory import return_freed
from methods._kernels.random import stream
from methods.hooks.loss_weights import LabelWeights
from methods.interface import Progress, no_progress
from methods.trees import node_solver
from methods.trees.node_problem import document_counts
from methods.trees.node_solver import NodeWeights, SolverSettings


@dataclass(frozen=True)
class Skeleton:
    """A tree without its classifiers.

    ``children[v]`` are the children of node v (empty for a leaf), ``labels[v]`` all labels below
    it in ascending order.
    """

    children: list[np.ndarray]
    labels: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.children)

    def is_leaf(self, node: int) -> bool:
        """Whether the node holds labels and not nodes."""
        return len(self.children[node]) == 0

    def targets(self, node: int) -> list[np.ndarray]:
        """The labels behind each classifier of a node: one label each in a leaf."""
        if self.is_leaf(node):
            return [self.labels[node][i : i + 1] for i in range(len(self.labels[node]))]
        return [self.labels[child] for child in self.children[node]]


def grow(
    labels: np.ndarray,
    split: Callable[[np.ndarray, int, np.ndarray], np.ndarray | None],
    seed_axes: tuple[int, ...],
) -> Skeleton:
    """Split labels from the root down, until ``split`` calls a node a leaf.

    ``split(labels, depth, state)`` gives the child (0..) of each label, or None. ``seed_axes`` name
    the tree (seed, number); the node's number completes the seed of its generator.
    """
    children: list[np.ndarray] = [np.empty(0, np.int32)]
    members = [np.sort(labels)]
    depths = [0]
    node = 0
    while node < len(members):
        parts = split(members[node], depths[node], stream(*seed_axes, node))
        if parts is not None and parts.max(initial=0) > 0:
            n_parts = int(parts.max()) + 1
            children[node] = np.arange(len(members), len(members) + n_parts, dtype=np.int32)
            for part in range(n_parts):
                members.append(members[node][parts == part])
                children.append(np.empty(0, np.int32))
                depths.append(depths[node] + 1)
        node += 1
    return Skeleton(children, members)


@dataclass(frozen=True)
class Forest:
    """Trained trees as flat arrays, nodes of all trees in one numbering.

    Node v leads to ``targets[target_indptr[v]:target_indptr[v + 1]]``: nodes, or labels where
    ``leaf[v]``. Its weights are rows ``row_indptr[v]:row_indptr[v + 1]``, one per feature: row r
    belongs to ``features[r]`` (ascending within a node, the bias last) and holds, for entries
    ``entry_indptr[r]:entry_indptr[r + 1]``, the place of the target within the node and the weight.
    """

    n_labels: int
    n_features: int
    bias: float
    roots: np.ndarray
    leaf: np.ndarray
    target_indptr: np.ndarray
    targets: np.ndarray
    row_indptr: np.ndarray
    features: np.ndarray
    entry_indptr: np.ndarray
    places: np.ndarray
    values: np.ndarray

    def leaf_norms(self) -> np.ndarray:
        """Mean over trees of the norm of each label's leaf classifier, bias left out; or NaN."""
        rows_of_node = np.diff(self.row_indptr)
        node_of_row = np.repeat(np.arange(len(self.leaf)), rows_of_node)
        row_of_entry = np.repeat(np.arange(len(self.features)), np.diff(self.entry_indptr))
        node_of_entry = node_of_row[row_of_entry]
        counted = self.leaf[node_of_entry] & (self.features[row_of_entry] < self.n_features)
        slot = self.target_indptr[node_of_entry] + self.places
        squares = np.bincount(
            slot[counted],
            weights=self.values[counted].astype(np.float64) ** 2,
            minlength=len(self.targets),
        )
        in_leaf = np.repeat(self.leaf, np.diff(self.target_indptr))
        labels = self.targets[in_leaf]
        seen = np.bincount(labels, minlength=self.n_labels)
        sums = np.bincount(labels, weights=np.sqrt(squares[in_leaf]), minlength=self.n_labels)
        with np.errstate(invalid="ignore"):
            return np.where(seen > 0, sums / seen, np.nan).astype(np.float32)

    def save(self, path: Path) -> None:
        """Write all arrays into one file."""
        np.savez(path, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: Path) -> Forest:
        """The forest that :meth:`save` wrote into the file."""
        with np.load(path) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
        # Scalars come back as arrays without a dimension.
        return cls(
            **{name: value if value.ndim else value.item() for name, value in arrays.items()}
        )


def train(
    trees: Sequence[Skeleton],
    X: sparse.csr_matrix,
    scales: np.ndarray,
    labels: sparse.csr_matrix,
    settings: SolverSettings,
    *,
    seed_axes: tuple[int, ...],
    threads: int = 1,
    weights: LabelWeights | None = None,
    progress: Progress = no_progress,
) -> Forest:
    """Train every classifier of every node.

    The loss of a leaf's classifiers has the ``weights`` of their labels, that of an inner node's
    those of groups with as many documents (PW sec. 3).
    """
    by_label = labels.tocsc()
    by_label.sort_indices()
    nodes = [(t, v) for t, tree in enumerate(trees) for v in range(len(tree))]
    # The largest nodes first: what is left at the end is small, and no core waits long.
    nodes.sort(key=lambda node: (-len(trees[node[0]].labels[node[1]]), node))

    def train_node(node: tuple[int, int]) -> NodeWeights:
        tree, number = trees[node[0]], node[1]
        targets = tree.targets(number)
        factors = np.ones((2, len(targets)))
        if weights is not None and tree.is_leaf(number):
            own = tree.labels[number]
            factors = np.stack([weights.negative[own], weights.positive[own]])
        elif weights is not None and weights.of_groups is not None:
            factors[1] = weights.of_groups(document_counts(by_label, targets))
        return node_solver.train_node(
            X, scales, by_label, targets, settings, factors, (*seed_axes, *node)
        )

    trained: dict[tuple[int, int], NodeWeights] = {}
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for done, (node, result) in enumerate(zip(nodes, pool.map(train_node, nodes), strict=True)):
            trained[node] = result
            progress(done + 1, len(nodes), "nodes")
    forest = _flatten(trees, trained, int(labels.shape[1]), int(X.shape[1]), settings.bias)
    return_freed()  # the nodes' own arrays: as much as the forest has
    return forest


def _flatten(
    trees: Sequence[Skeleton],
    trained: dict[tuple[int, int], NodeWeights],
    n_labels: int,
    n_features: int,
    bias: float,
) -> Forest:
    sizes = [len(tree) for tree in trees]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nodes = [(t, v) for t, tree in enumerate(trees) for v in range(len(tree))]
    targets = [
        trees[t].labels[v] if trees[t].is_leaf(v) else trees[t].children[v] + offsets[t]
        for t, v in nodes
    ]
    leaf = np.array([trees[t].is_leaf(v) for t, v in nodes], bool)
    # By field, each let go once it is joined: two copies of all weights never exist.
    results = [trained.pop(node) for node in nodes]
    features = [r.features for r in results]
    lengths = [np.diff(r.indptr) for r in results]
    places = [r.targets for r in results]
    values = [r.values for r in results]
    del results
    return Forest(
        n_labels=n_labels,
        n_features=n_features,
        bias=bias,
        roots=offsets[:-1].copy(),
        leaf=leaf,
        target_indptr=_starts([len(t) for t in targets]),
        targets=_joined(targets, np.int32),
        row_indptr=_starts([len(own) for own in features]),
        features=_joined(features, np.int32),
        entry_indptr=_starts(_joined(lengths, np.int64)),
        places=_joined(places, np.int32),
        values=_joined(values, np.float32),
    )


def _starts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    """The parts one after another; the list is emptied, each part let go once it is copied."""
    out: np.ndarray = np.empty(sum(map(len, parts)), dtype)
    at = len(out)
    while parts:
        part = parts.pop()
        out[at - len(part) : at] = part
        at -= len(part)
    return out
