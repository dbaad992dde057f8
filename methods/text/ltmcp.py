"""LTMCP (Yuan et al., AIKE 2019): a deep network for head labels, linear classifiers for the tail.

No code of it exists; built from how its paper and HTTN's describe it. The deep part is HTTN's
extractor with a classifier of the head labels; each tail label has a logistic regression on tf-idf
of the words. Both give probabilities, which are ranked together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from benchmarks.data.split import Inputs, Split, Tokens
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, Term, price_only, trained_label_count, words_per_document
from methods.interface import FitContext, Model
from methods.text.base import TextModel
from methods.text.document_method import OF_WEIGHTED_LOSS, DocumentMethod, recipes
from methods.text.head_to_tail import head_and_tail
from methods.text.words import ASSUMED_WORDS_KNOWN

LINEAR_SECONDS = 2e-7
"""Of a word of a document in a tail label's regression, all iterations: a round figure."""


def term_counts(tokens: Tokens) -> sparse.csr_matrix:
    """1 + log of how often each word is in each document, float64[n, V]."""
    shape = (len(tokens), len(tokens.vocabulary))
    # Copies: the matrix sorts its arrays in place, and the order of words is the network's input.
    counts = sparse.csr_matrix(
        (np.ones(len(tokens.ids)), np.array(tokens.ids), np.array(tokens.indptr)), shape=shape
    )
    counts.sum_duplicates()
    counts.data = 1.0 + np.log(counts.data)
    return counts


class LTMCP(DocumentMethod):
    """Deep head, linear tail."""

    name = "LTMCP"
    accepts = frozenset()
    RECIPES = recipes({"l_tail": 1 / 3, "C": 32.0}, without=OF_WEIGHTED_LOSS)

    l_tail: float
    C: float

    def fit_in(self, train: Split, context: FitContext) -> DeepAndLinearModel:
        head, tail = head_and_tail(train.label_counts(), self.l_tail)
        network = self.seeded(train, head, context)
        history = self.train(network, train, head, context)
        history.notes.append(f"{len(head)} head and {len(tail)} tail labels")
        deep = self.model(network, head, train, context, history)
        assert train.inputs.tokens is not None
        idf, weights = self._linear(train.inputs.tokens, train.labels[:, tail], context.threads)
        return DeepAndLinearModel(deep, tail, idf, weights)

    def _linear(
        self, tokens: Tokens, labels: sparse.csr_matrix, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Inverse document frequencies, float64[V], and classifiers, float64[tail, V + 1]."""
        from joblib import Parallel, delayed
        from sklearn.linear_model import LogisticRegression

        counts = term_counts(tokens)
        found_in = np.bincount(counts.indices, minlength=counts.shape[1])
        idf = np.log((1 + counts.shape[0]) / (1 + found_in)) + 1.0
        X, Y = weighted(counts, idf), labels.toarray()

        def fit(y: np.ndarray) -> np.ndarray:
            solver = LogisticRegression(C=self.C, solver="liblinear").fit(X, y)
            return np.append(solver.coef_[0], solver.intercept_[0])

        # liblinear drops the GIL, so threads share X without a copy.
        rows = Parallel(n_jobs=threads, backend="threading")(delayed(fit)(y) for y in Y.T)
        return idf, np.stack(rows)

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """The network, and for each tail label a regression over all words of train."""
        cost = super().cost(meta)
        if cost is None:
            return None
        labels = trained_label_count(meta)
        tail = self.l_tail * labels if self.l_tail < 1 else min(self.l_tail, labels)
        words = meta["n_train"] * words_per_document(meta)
        linear = Term(tail * words, LINEAR_SECONDS)
        weights_mb = 3 * tail * float(meta.get("n_words") or ASSUMED_WORDS_KNOWN) * 8 / 2**20
        return Cost({**cost.terms, "linear": linear}, cost.megabytes + weights_mb)


def weighted(counts: sparse.csr_matrix, idf: np.ndarray) -> sparse.csr_matrix:
    """tf-idf rows of length 1; rows without a word stay empty."""
    from sklearn.preprocessing import normalize

    return sparse.csr_matrix(normalize(counts @ sparse.diags(idf)))


class DeepAndLinearModel(Model):
    """A network for some labels and linear classifiers for others."""

    decision_threshold = 0.5

    def __init__(
        self, deep: TextModel, tail: np.ndarray, idf: np.ndarray, weights: np.ndarray
    ) -> None:
        self.deep = deep
        self.tail = tail
        self.idf = idf
        self.weights = weights
        self.notes: Sequence[str] = deep.notes

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest probability, whichever part it comes from."""
        assert inputs.tokens is not None
        X = weighted(term_counts(inputs.tokens), self.idf)
        of_tail = expit(X @ self.weights[:, :-1].T + self.weights[:, -1])
        scores = self.deep.predict(inputs, len(self.deep.labels)).to_sparse(self.deep.n_labels)
        dense = np.full(scores.shape, -np.inf, np.float32)
        rows = np.repeat(np.arange(len(inputs)), np.diff(scores.indptr))
        dense[rows, scores.indices] = scores.data
        dense[:, self.tail] = of_tail
        return TopK.from_dense(dense, k)

    def save(self, folder: Path) -> None:
        """Both parts."""
        (folder / "deep").mkdir()
        self.deep.save(folder / "deep")
        np.savez(folder / "linear.npz", tail=self.tail, idf=self.idf, weights=self.weights)

    @classmethod
    def load(cls, folder: Path) -> DeepAndLinearModel:
        """The model that :meth:`save` wrote, on the CPU."""
        with np.load(folder / "linear.npz") as linear:
            parts = (linear["tail"], linear["idf"], linear["weights"])
        return cls(TextModel.load(folder / "deep"), *parts)
