"""A tree of labels: which label sits in which leaf, and the classifiers of every node.

Nodes are numbered level by level from the root. An inner node has a classifier for each child, a
leaf one for each of its labels; all are trained on the documents that carry a label of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.common.memory import return_freed
from methods._kernels.random import stream
from methods.hooks.loss_weights import LabelWeights
from methods.interface import Progress, no_progress
from methods.trees import node_solver, search_index
from methods.trees.index_builder import IndexBuilder, Outline
from methods.trees.node_problem import document_counts
from methods.trees.node_solver import NodeWeights, SolverSettings
from methods.trees.search_index import SearchIndex

RETURN_EVERY = 256
"""Nodes after which freed memory is given back: thousands of small arrays leave holes."""


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
    """Trained trees, laid out for search."""

    index: SearchIndex
    label_norms: np.ndarray
    """float32[n_labels]: the norm of the label's leaf classifier without bias, the mean over trees;
    NaN for labels left out."""
    n_weights: int

    def save(self, path: Path) -> None:
        """Write all arrays into one file."""
        with path.open("wb") as file:
            np.save(file, np.int64(self.n_weights))
            np.save(file, self.label_norms)
            search_index.save(self.index, file)

    @classmethod
    def load(cls, path: Path) -> Forest:
        """The forest that :meth:`save` wrote into the file."""
        with path.open("rb") as file:
            n_weights, label_norms = int(np.load(file)), np.load(file)
            return cls(search_index.load(file), label_norms, n_weights)


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

    firsts = _starts([len(tree) for tree in trees])
    builder = IndexBuilder(_outline(trees, int(labels.shape[1])), int(X.shape[1]), settings.bias)
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for done, (node, result) in enumerate(zip(nodes, pool.map(train_node, nodes), strict=True)):
            builder.add(int(firsts[node[0]]) + node[1], result)
            if done % RETURN_EVERY == 0:
                return_freed()
            progress(done + 1, len(nodes), "nodes")
    forest = Forest(builder.finish(), builder.label_norms(), builder.n_weights)
    return_freed()
    return forest


def _outline(trees: Sequence[Skeleton], n_labels: int) -> Outline:
    firsts = _starts([len(tree) for tree in trees])
    targets = [
        tree.labels[v] if tree.is_leaf(v) else tree.children[v] + first
        for tree, first in zip(trees, firsts, strict=False)
        for v in range(len(tree))
    ]
    return Outline(
        n_labels=n_labels,
        roots=firsts[:-1].copy(),
        leaf=np.array([tree.is_leaf(v) for tree in trees for v in range(len(tree))], bool),
        target_indptr=_starts([len(own) for own in targets]),
        targets=np.concatenate([np.empty(0, np.int32), *targets]).astype(np.int32),
    )


def _starts(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
