"""FastXML and PfastreXML: forests of trees over documents, leaves holding label frequencies.

Settings are those of the authors' programs (https://manikvarma.org/code/FastXML/download.html and
PfastreXML there). FastXML takes the features as they are; only PfastreXML's re-ranker scales
documents to norm 1, and that with their bias: the authors' program appends the bias to the very
matrix that it scales afterwards. Where documents have norm 1 already, this halves the squared
distances between them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods._kernels.topk import best_of
from methods.cost import Cost, Term, labels_per_document, price_only, words_per_document
from methods.interface import FitContext, Method, Model
from methods.trees._columns import columns_of
from methods.trees._mersenne import mersenne
from methods.trees._rerank import rerank_rows
from methods.trees.instance_tree import InstanceTree, grow_flat, leaves_of
from methods.warm_up import fit_tiny

CHUNK = 1024
# One core's seconds: round figures before any run.
SPLIT_SECONDS = 1e-7  # per tree, level, document and its words and labels
FALL_SECONDS = 1e-8  # per tree, level, test document and its words
RERANK_SECONDS = 1e-7  # per test document and label of the shortlist


class InstanceTreesModel(Model):
    """Trees over documents; the mean of the leaves' label scores is a document's score.

    With ``means`` (PfastreXML) the best ``shortlist`` labels are scored again: score^alpha times
    tail^(1 - alpha), where tail = 1 / (1 + exp(gamma |x - mean|^2)), x is the document with its
    bias, scaled to norm 1, and ``means`` holds the mean of each label's documents taken so.
    """

    def __init__(
        self,
        trees: Sequence[InstanceTree],
        n_features: int,
        n_labels: int,
        bias: float,
        means: sparse.csr_matrix | None = None,
        gamma: float = 30.0,
        alpha: float = 0.8,
        shortlist: int = 1000,
    ) -> None:
        self.trees = list(trees)
        self.n_features = n_features
        self.n_labels = n_labels
        self.bias = bias
        self.means = means
        self.gamma = gamma
        self.alpha = alpha
        self.shortlist = shortlist

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """Send every document down every tree and average the leaves."""
        assert inputs.bow is not None
        X = inputs.bow.tocsr().astype(np.float32, copy=False)
        if X.shape[1] != self.n_features:
            raise ValueError(f"{X.shape[1]} features; the model was trained on {self.n_features}")
        n = X.shape[0]
        threads = numba.get_num_threads()
        leaves = np.empty((len(self.trees), n), np.int64)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda t: self._fall(X, t, leaves[t]), range(len(self.trees))))
            indptr, labels, scores, offsets = self._all_leaves()
            width = k if self.means is None else max(k, self.shortlist)
            top = TopK.empty(n, width)

            def add_up(start: int) -> None:
                stop = min(start + CHUNK, n)
                _average(
                    leaves, offsets, indptr, labels, scores, self.n_labels, start, stop,
                    top.indices, top.scores,
                )  # fmt: skip

            list(pool.map(add_up, range(0, n, CHUNK)))
            if self.means is not None:
                top = self._rerank(X, top, k, pool)
        return top

    def _fall(self, X: sparse.csr_matrix, number: int, out: np.ndarray) -> None:
        tree = self.trees[number]
        leaves_of(
            X.indptr,
            X.indices,
            X.data,
            self.n_features,
            np.float32(self.bias),
            tree.children,
            tree.weight_indptr,
            tree.weight_features,
            tree.weights,
            out,
        )

    def _all_leaves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The leaves of all trees as one list, and where each tree starts in it."""
        lengths = [np.diff(tree.label_indptr) for tree in self.trees]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in lengths])])[:-1]
        labels = np.concatenate([tree.labels for tree in self.trees])
        scores = np.concatenate([tree.label_scores for tree in self.trees])
        return indptr, labels, scores, offsets.astype(np.int64)

    def _rerank(self, X: sparse.csr_matrix, top: TopK, k: int, pool: ThreadPoolExecutor) -> TopK:
        assert self.means is not None
        out = TopK.empty(len(top), k)
        means = self.means
        squares = np.asarray(means.multiply(means).sum(axis=1)).ravel().astype(np.float32)
        scales = scales_with_bias(X, self.bias)

        def rerank(start: int) -> None:
            rerank_rows(
                X.indptr, X.indices, X.data, scales, self.n_features, np.float32(self.bias),
                means.indptr, means.indices, means.data, squares,
                np.float32(self.gamma), np.float32(self.alpha),
                top.indices, top.scores, start, min(start + CHUNK, len(top)), self.n_labels,
                out.indices, out.scores,
            )  # fmt: skip

        list(pool.map(rerank, range(0, len(top), CHUNK)))
        return out

    def save(self, folder: Path) -> None:
        """Write the trees and, if there are any, the means."""
        for number, tree in enumerate(self.trees):
            np.savez(folder / f"tree{number}.npz", **tree._asdict())
        settings = {
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "bias": self.bias,
            "gamma": self.gamma,
            "alpha": self.alpha,
            "shortlist": self.shortlist,
        }
        (folder / "forest.json").write_text(
            json.dumps({"n_trees": len(self.trees), "settings": settings})
        )
        if self.means is not None:
            sparse.save_npz(folder / "means.npz", self.means)

    @classmethod
    def load(cls, folder: Path) -> InstanceTreesModel:
        """The model that :meth:`save` wrote into the folder."""
        stored = json.loads((folder / "forest.json").read_text())
        trees = []
        for number in range(stored["n_trees"]):
            with np.load(folder / f"tree{number}.npz") as arrays:
                trees.append(InstanceTree(**{name: arrays[name] for name in arrays.files}))
        means = None
        if (folder / "means.npz").exists():
            means = sparse.csr_matrix(sparse.load_npz(folder / "means.npz"))
        return cls(trees, means=means, **stored["settings"])


class FastXML(Method):
    """Trees whose splits maximise nDCG (Prabhu and Varma).

    Seed s grows the trees s * n_trees and on of the authors' program (its option -s).
    """

    name = "FastXML"

    def __init__(
        self,
        n_trees: int = 50,
        max_leaf: int = 10,
        labels_per_leaf: int = 100,
        C: float = 1.0,
        bias: float = 1.0,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.labels_per_leaf = labels_per_leaf
        self.C = C
        self.bias = bias

    def warm_up(self, train: Split) -> None:
        """Compile by a fit on a few documents."""
        fit_tiny(self, train)

    def fit_in(self, train: Split, context: FitContext) -> InstanceTreesModel:
        assert train.inputs.bow is not None
        X = train.inputs.bow.tocsr().astype(np.float32, copy=False)
        trees = self._grow(X, train, np.ones(train.n_labels, np.float32), True, context)
        return InstanceTreesModel(trees, X.shape[1], train.n_labels, self.bias)

    def _grow(
        self,
        X: sparse.csr_matrix,
        train: Split,
        label_values: np.ndarray,
        use_ideal: bool,
        context: FitContext,
    ) -> list[InstanceTree]:
        labels = train.labels.tocsr()
        values = label_values[labels.indices].astype(np.float32)
        columns = columns_of(X.indptr, X.indices, X.data, X.shape[1], np.float32(self.bias))

        def grow_tree(number: int) -> InstanceTree:
            return InstanceTree(
                *grow_flat(
                    *columns,
                    np.diff(X.indptr) + 1,
                    labels.indptr,
                    labels.indices,
                    values,
                    train.n_labels,
                    self.max_leaf,
                    self.labels_per_leaf,
                    np.float32(self.C),
                    use_ideal,
                    mersenne(context.seed * self.n_trees + number),
                )
            )

        trees = []
        with ThreadPoolExecutor(max(1, context.threads)) as pool:
            for tree in pool.map(grow_tree, range(self.n_trees)):
                trees.append(tree)
                context.progress(len(trees), self.n_trees, "trees")
        return trees

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """Every level of every tree looks at all documents once."""
        if not meta.get("n_features"):
            return None
        n, words, own = meta["n_train"], words_per_document(meta), labels_per_document(meta)
        depth = max(1.0, math.log2(max(2.0, n / max(self.max_leaf, 1))))
        terms = {
            "split": Term(self.n_trees * depth * n * (words + own), SPLIT_SECONDS),
            "fall": Term(self.n_trees * depth * meta.get("n_test", 0) * words, FALL_SECONDS),
        }
        leaves = self.n_trees * n * min(own, self.labels_per_leaf) * 8
        # Columns of all documents, and of a tree's nodes on two levels.
        return Cost(terms, 200 + (24 * n * words + leaves) / 2**20)


class PfastreXML(FastXML):
    """FastXML with propensity-scored gains and a re-ranker for the tail (Jain et al.)."""

    name = "PfastreXML"

    def __init__(
        self,
        n_trees: int = 50,
        max_leaf: int = 10,
        labels_per_leaf: int = 100,
        C: float = 1.0,
        bias: float = 1.0,
        gamma: float = 30.0,
        alpha: float = 0.8,
        shortlist: int = 1000,
    ) -> None:
        super().__init__(n_trees, max_leaf, labels_per_leaf, C, bias)
        self.gamma = gamma
        self.alpha = alpha
        self.shortlist = shortlist

    def fit_in(self, train: Split, context: FitContext) -> InstanceTreesModel:
        assert train.inputs.bow is not None
        X = train.inputs.bow.tocsr().astype(np.float32, copy=False)
        inverse_p = train.inverse_propensity().astype(np.float32)
        trees = self._grow(X, train, inverse_p, False, context)
        return InstanceTreesModel(
            trees,
            X.shape[1],
            train.n_labels,
            self.bias,
            label_means(X, train.labels, self.bias),
            self.gamma,
            self.alpha,
            self.shortlist,
        )

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """FastXML's, and the re-ranking."""
        cost = super().cost(meta)
        if cost is None:
            return None
        shortlist = Term(meta.get("n_test", 0) * self.shortlist, RERANK_SECONDS)
        return Cost({**cost.terms, "rerank": shortlist}, cost.megabytes)


def scales_with_bias(X: sparse.csr_matrix, bias: float) -> np.ndarray:
    """1 / Euclidean norm of each row and its bias, float32; 1 where both are zero."""
    squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel() + bias**2
    return (1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))).astype(np.float32)


def label_means(X: sparse.csr_matrix, labels: sparse.csr_matrix, bias: float) -> sparse.csr_matrix:
    """L x (D + 1): the mean of each label's documents with their bias, each scaled to norm 1."""
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    share = sparse.csr_matrix(labels, dtype=np.float32, copy=True)
    scales = scales_with_bias(X, bias)
    share.data = (
        np.repeat(scales, np.diff(share.indptr)) / np.maximum(counts, 1)[share.indices]
    ).astype(np.float32)
    biases = sparse.csr_matrix(np.full((X.shape[0], 1), bias, np.float32))
    return sparse.csr_matrix(share.T.tocsr() @ sparse.hstack([X, biases], "csr"), dtype=np.float32)


@njit(cache=True, nogil=True)
def _average(  # type: ignore[no-untyped-def]
    leaves, offsets, indptr, labels, scores, n_labels, start, stop, out_labels, out_scores
):
    n_trees = leaves.shape[0]
    total = np.zeros(n_labels, np.float64)
    seen = np.zeros(n_labels, np.bool_)
    touched = np.empty(n_labels, np.int32)
    for i in range(start, stop):
        n_touched = 0
        for t in range(n_trees):
            leaf = offsets[t] + leaves[t, i]
            for p in range(indptr[leaf], indptr[leaf + 1]):
                label = labels[p]
                total[label] += scores[p]
                if not seen[label]:
                    seen[label] = True
                    touched[n_touched] = label
                    n_touched += 1
        for q in range(n_touched):
            total[touched[q]] /= n_trees
        best_of(total, touched[:n_touched], out_labels[i], out_scores[i])
        for q in range(n_touched):
            total[touched[q]] = 0.0
            seen[touched[q]] = False
