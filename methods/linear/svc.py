"""One-vs-rest squared hinge by scikit-learn: the slow, trusted reference (PW eq. 22)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from methods.interface import FitContext, Method, Model, TopK

ROWS_AT_ONCE = 1024


def unit_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows scaled to Euclidean norm 1; a zero row stays zero."""
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    scale = 1.0 / np.where(norms > 0, norms, 1.0)
    return sparse.csr_matrix(sparse.diags(scale.astype(np.float32)) @ X, dtype=np.float32)


class LinearModel(Model):
    """A weight vector and a bias for each label."""

    def __init__(self, weights: np.ndarray, trained: np.ndarray) -> None:
        self.weights = weights  # float32[L, D + 1], bias last
        self.trained = trained  # bool[L]: labels with a classifier; the others are never predicted

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The labels of the largest margins, in blocks of documents."""
        assert inputs.bow is not None
        X = unit_rows(inputs.bow)
        W, bias = self.weights[:, :-1].T, self.weights[:, -1]
        parts = []
        for start in range(0, max(X.shape[0], 1), ROWS_AT_ONCE):
            margins = X[start : start + ROWS_AT_ONCE] @ W + bias
            margins[:, ~self.trained] = -np.inf
            parts.append(TopK.from_dense(margins, k))
        return TopK(
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def label_norms(self) -> np.ndarray:
        """Norms of the weight vectors, bias left out; NaN for a label without a classifier."""
        norms = np.linalg.norm(self.weights[:, :-1], axis=1)
        return np.where(self.trained, norms, np.nan).astype(np.float32)

    def label_weights(self) -> sparse.csr_matrix:
        """L x (D + 1), bias last."""
        return sparse.csr_matrix(self.weights)

    def save(self, folder: Path) -> None:
        """Write the weights."""
        np.save(folder / "weights.npy", self.weights)
        np.save(folder / "trained.npy", self.trained)

    @classmethod
    def load(cls, folder: Path) -> LinearModel:
        """Read them back."""
        return cls(np.load(folder / "weights.npy"), np.load(folder / "trained.npy"))


class LinearSVC(Method):
    """scikit-learn's LinearSVC, one a label: primal, bias a regularised feature of value 1."""

    name = "LinearSVC"
    takes_label_weights = True

    def __init__(self, C: float = 1.0, tol: float = 1e-3) -> None:
        self.C = C
        self.tol = tol

    def _fit(self, train: Split, context: FitContext) -> LinearModel:
        from joblib import Parallel, delayed

        assert train.inputs.bow is not None
        X = unit_rows(train.inputs.bow).astype(np.float64)
        by_label = train.labels.tocsc()
        n_labels = train.n_labels
        counts = train.label_counts()
        weights = np.zeros((n_labels, X.shape[1] + 1), np.float32)
        weights[counts == len(train), -1] = 1.0  # no negative to learn from: always predicted
        todo = np.flatnonzero((counts > 0) & (counts < len(train)))

        def fit_one(label: int) -> np.ndarray:
            positives = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            factors = (1.0, 1.0)
            if context.weights is not None:
                factors = (context.weights.negative[label], context.weights.positive[label])
            return self._fit_label(X, positives, factors)

        # liblinear drops the GIL, so threads share X without a copy.
        fitted = Parallel(n_jobs=context.threads, backend="threading", return_as="generator")(
            delayed(fit_one)(label) for label in todo
        )
        for done, (label, row) in enumerate(zip(todo, fitted, strict=True), start=1):
            weights[label] = row
            context.progress(done, len(todo), "labels")
        return LinearModel(weights, counts > 0)

    def _fit_label(
        self, X: sparse.csr_matrix, positives: np.ndarray, factors: tuple[float, float]
    ) -> np.ndarray:
        from sklearn.svm import LinearSVC as Liblinear

        target = np.zeros(X.shape[0], np.int64)
        target[positives] = 1
        solver = Liblinear(
            C=self.C,
            tol=self.tol,
            dual=False,
            class_weight={0: factors[0], 1: factors[1]},
        ).fit(X, target)
        return np.append(solver.coef_[0], solver.intercept_[0])
