"""Parabel and Bonsai: forests of label trees, searched by beam.

Settings are those of the authors' programs: https://manikvarma.org/code/Parabel/download.html and
https://github.com/xmc-aalto/bonsai. Labels without a training document are left out of the trees
and never predicted; left in, they cost the authors' Parabel precision for nothing.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, price_only, trained_label_count
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext, Method, Model
from methods.trees import beam, label_tree
from methods.trees.cost import clustered, halved, label_tree_cost
from methods.trees.label_tree import Forest, Skeleton, grow
from methods.trees.node_solver import SolverSettings
from methods.trees.partition import balanced_halves, k_means, label_centroids, row_scales
from methods.warm_up import fit_tiny


class LabelTreesModel(Model):
    """A trained forest and how it is searched."""

    def __init__(self, forest: Forest, beam: int, discount: float) -> None:
        self.forest = forest
        self.beam = beam
        self.discount = discount

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """Beam search in every tree, averaged."""
        assert inputs.bow is not None
        X = inputs.bow.tocsr()
        return beam.search(
            self.forest.index, X, row_scales(X), k, beam=self.beam, discount=self.discount
        )

    def label_norms(self) -> np.ndarray:
        """Norm of the leaf classifiers, mean over trees; NaN for labels left out."""
        return self.forest.label_norms

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """How many labels the trees do not hold."""
        left_out = int(np.isnan(self.label_norms()).sum())
        return [f"{left_out} labels without a training document left out"] if left_out else []

    def save(self, folder: Path) -> None:
        """Write the forest and the two numbers of the search."""
        self.forest.save(folder / "forest.bin")
        settings = {"beam": self.beam, "discount": self.discount}
        (folder / "search.json").write_text(json.dumps(settings))

    @classmethod
    def load(cls, folder: Path) -> LabelTreesModel:
        """The model that :meth:`save` wrote into the folder."""
        return cls(
            Forest.load(folder / "forest.bin"), **json.loads((folder / "search.json").read_text())
        )


@dataclass(kw_only=True, eq=False)
class LabelTrees(Method):
    """What Parabel and Bonsai share: all but how a node's labels are split."""

    accepts = frozenset({"loss_weights"})
    n_trees: int = 3
    C: float = 1.0
    beam: int = 10
    threshold: float = 0.1
    eps: float = 0.1
    passes: int = 20
    bias: float = 1.0
    _node_size: ClassVar[str]
    """The name of the parameter that bounds the labels of a leaf."""

    def warm_up(self, train: Split) -> None:
        """Compile by a fit on a few documents, with nodes small enough to be split."""
        fit_tiny(replace(self, **{self._node_size: 4}), train)

    def fit_in(self, train: Split, context: FitContext) -> LabelTreesModel:
        assert train.inputs.bow is not None
        X = train.inputs.bow.tocsr()
        if X.dtype != np.float32:
            X = X.astype(np.float32)
        scales = row_scales(X)
        labels = np.flatnonzero(train.label_counts() > 0)
        forest = label_tree.train(
            self._grow_trees(X, scales, train.labels, labels, context) if len(labels) else [],
            X,
            scales,
            train.labels,
            SolverSettings(self.C, self.eps, self.passes, self.threshold, self.bias),
            seed_axes=(context.seed,),
            threads=context.threads,
            weights=context.hooks.find(LabelWeights),
            progress=context.progress,
        )
        return LabelTreesModel(forest, self.beam, self._discount())

    def _grow_trees(
        self,
        X: sparse.csr_matrix,
        scales: np.ndarray,
        carried: sparse.csr_matrix,
        labels: np.ndarray,
        context: FitContext,
    ) -> list[Skeleton]:
        """The trees without classifiers; the centroids are let go at the end."""
        splitter = self._splitter(label_centroids(X, scales, carried), len(labels))

        def grow_tree(number: int) -> Skeleton:
            return grow(labels, splitter, (context.seed, number))

        with ThreadPoolExecutor(max(1, context.threads)) as pool:
            return list(pool.map(grow_tree, range(self.n_trees)))

    @abc.abstractmethod
    def _splitter(self, centroids, n_labels: int):  # type: ignore[no-untyped-def]
        """The ``split`` of :func:`grow`."""

    def _discount(self) -> float:
        return 1.0


@dataclass(kw_only=True, eq=False)
class Parabel(LabelTrees):
    """Balanced binary trees down to leaves of at most ``max_leaf`` labels."""

    name = "Parabel"

    max_leaf: int = 100
    _node_size = "max_leaf"

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """By the halves of the tree."""
        levels = halved(trained_label_count(meta), self.max_leaf)
        return label_tree_cost(meta, levels, self.n_trees, self.beam)

    def _splitter(self, centroids, n_labels: int):  # type: ignore[no-untyped-def]
        def split(labels: np.ndarray, depth: int, state: np.ndarray) -> np.ndarray | None:
            if len(labels) <= max(self.max_leaf, 1):
                return None
            return balanced_halves(
                centroids.indptr,
                centroids.indices,
                centroids.data,
                labels,
                centroids.shape[1],
                state,
            )

        return split


@dataclass(kw_only=True, eq=False)
class Bonsai(LabelTrees):
    """Shallow trees with up to ``n_children`` children per node, not balanced.

    ``depth`` counts levels of nodes, root and leaves included (the authors' -m): 2 is one
    clustering. A node with at most ``n_children`` labels is a leaf.
    """

    name = "Bonsai"

    n_children: int = 100
    _node_size = "n_children"
    depth: int = 2
    discount: float = 0.98

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """By the clusterings of the tree."""
        levels = clustered(trained_label_count(meta), self.n_children, self.depth)
        return label_tree_cost(meta, levels, self.n_trees, self.beam)

    def _discount(self) -> float:
        return self.discount

    def _splitter(self, centroids, n_labels: int):  # type: ignore[no-untyped-def]
        def split(labels: np.ndarray, depth: int, state: np.ndarray) -> np.ndarray | None:
            if depth >= self.depth - 1 or len(labels) <= self.n_children:
                return None
            return k_means(
                centroids.indptr,
                centroids.indices,
                centroids.data,
                labels,
                centroids.shape[1],
                self.n_children,
                state,
            )

        return split
