"""One-vs-rest squared hinge by scikit-learn: the slow, trusted reference (PW eq. 22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Split
from methods.cost import Cost, price_only
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext, Method
from methods.linear.cost import one_vs_rest_cost
from methods.linear.model import SparseLinearModel, as_unit_rows
from methods.warm_up import fit_tiny

SLOWER_THAN_OURS = 20.0
"""A round figure of ``python -m benchmarks.speed linear``."""


class LinearSVC(Method):
    """scikit-learn's LinearSVC, one per label: primal, bias a regularised feature of value 1."""

    name = "LinearSVC"
    accepts = frozenset({"loss_weights"})

    def __init__(self, C: float = 1.0, tol: float = 1e-3) -> None:
        self.C = C
        self.tol = tol

    def warm_up(self, train: Split) -> None:
        """Compile by a fit on a few documents."""
        fit_tiny(self, train)

    def fit_in(self, train: Split, context: FitContext) -> SparseLinearModel:
        from joblib import Parallel, delayed

        assert train.inputs.bow is not None
        X = as_unit_rows(train.inputs.bow).astype(np.float64)
        by_label = train.labels.tocsc()
        n_labels = train.n_labels
        counts = train.label_counts()
        given = context.hooks.find(LabelWeights)
        weights = np.zeros((n_labels, X.shape[1] + 1), np.float32)
        weights[counts == len(train), -1] = 1.0  # no negative to learn from: always predicted
        todo = np.flatnonzero((counts > 0) & (counts < len(train)))

        def fit_one(label: int) -> np.ndarray:
            positives = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            factors = (1.0, 1.0)
            if given is not None:
                factors = (given.negative[label], given.positive[label])
            return self._fit_label(X, positives, factors)

        # liblinear drops the GIL, so threads share X without a copy.
        fitted = Parallel(n_jobs=context.threads, backend="threading", return_as="generator")(
            delayed(fit_one)(label) for label in todo
        )
        for done, (label, row) in enumerate(zip(todo, fitted, strict=True), start=1):
            weights[label] = row
            context.progress(done, len(todo), "labels")
        found = sparse.csr_matrix(weights)
        return SparseLinearModel(found, counts > 0, threads=context.threads)

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

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """As one-vs-rest by our solver, but each label alone; all weights are dense at first."""
        if not meta.get("n_features"):
            return None
        dense_mb = meta["n_labels"] * (meta["n_features"] + 1) * 4 / 2**20
        return one_vs_rest_cost(meta, 2 * dense_mb, slower=SLOWER_THAN_OURS)
