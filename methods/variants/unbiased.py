"""The truly unbiased squared hinge (PW eq. 4), which the paper derives and then avoids.

On a positive it is (l+ - (1 - p) l-) / p: beyond a score of 1 it falls like -(1/p - 1) z^2, faster
than the regulariser rises as soon as 1/p is a little above 1, so for most labels there is no
minimum, and where training stops is no property of the loss. Training stays in a ball; if the
loss falls without bound along the direction that it took, for any label, there is no model: the
fit ends in :class:`~methods.interface.DivergedError`, which says for how many labels.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.data.split import Split
from benchmarks.evaluation.losses import (
    squared_hinge_negative,
    squared_hinge_negative_slope,
    squared_hinge_positive,
    squared_hinge_positive_slope,
    unbiased_positive,
)
from methods.cost import price_only
from methods.interface import DivergedError, FitContext, Method, Variant
from methods.linear.dismec import DiSMEC
from methods.linear.model import SparseLinearModel, as_unit_rows
from methods.variants.applied import Changed

LABELS_AT_ONCE = 128


class Unbiased(Variant):
    """PW eq. 4 in place of DiSMEC's loss."""

    name = "unbiased"

    def __init__(self, radius: float = 100.0, steps: int = 60) -> None:
        self.radius = radius
        self.steps = steps

    def misfit(self, base: Method) -> str | None:
        """It replaces the squared hinge of DiSMEC and no other loss."""
        if isinstance(base, DiSMEC):
            return None
        return f"the unbiased squared hinge replaces DiSMEC's loss; {base.name} has another"

    def apply(self, base: Method) -> Method:
        """DiSMEC with the unbiased loss."""
        assert isinstance(base, DiSMEC)
        return UnbiasedDiSMEC(base, self)


class UnbiasedDiSMEC(Changed[Unbiased]):
    """Descent from DiSMEC's solution, weights kept within a ball of the given radius."""

    _base: DiSMEC

    def __init__(self, base: DiSMEC, change: Unbiased) -> None:
        super().__init__(base, change)
        self.accepts = frozenset()  # type: ignore[misc]  # eq. 4 holds its own weights
        self.shardable = True  # type: ignore[misc]

    @price_only
    def fits_of_base(self) -> float:
        """Each step costs two products with X, about a tenth of DiSMEC's fit."""
        return 1 + self._change.steps / 10

    def warm_up(self, train: Split) -> None:
        """Compile the base's kernels; there are no others, and a fit could end here."""
        self._base.warm_up(train)

    def fit_in(self, train: Split, context: FitContext) -> SparseLinearModel:
        bow = train.inputs.bow
        assert bow is not None
        start = self._base.fit_in(train, context)
        X = (as_unit_rows(bow) if self._base.normalize else bow).astype(np.float64)
        X = sparse.csr_matrix(sparse.hstack([X, np.ones((X.shape[0], 1))]))
        inverse_p = train.inverse_propensity()
        labels = np.flatnonzero(start.trained)
        by_label = sparse.csc_matrix(train.labels)
        rows, unbounded = [], 0
        for first in range(0, len(labels), LABELS_AT_ONCE):
            some = labels[first : first + LABELS_AT_ONCE]
            true = by_label[:, some].toarray() != 0
            found = descend(
                X,
                true,
                inverse_p[some],
                start.weights[some].toarray().astype(np.float64),
                cost=self._base.C,
                radius=self._change.radius,
                steps=self._change.steps,
            )
            unbounded += int(falls_forever(X, true, inverse_p[some], found, self._base.C).sum())
            found[np.abs(found) < self._base.prune] = 0.0
            rows.append(sparse.csr_matrix(found, dtype=np.float32))
            context.progress(first + len(some), len(labels), "labels")
        if unbounded:
            raise DivergedError(
                f"unbiased loss (PW eq. 4) has no minimum here: for {unbounded} of {len(labels)} "
                f"labels it falls without bound"
            )
        weights = sparse.csr_matrix((train.n_labels, X.shape[1]), dtype=np.float32)
        if rows:
            rows_to_labels = sparse.csr_matrix(
                (np.ones(len(labels), np.float32), (labels, np.arange(len(labels)))),
                shape=(train.n_labels, len(labels)),
            )
            weights = sparse.csr_matrix(rows_to_labels @ sparse.vstack(rows, format="csr"))
            weights.sort_indices()
        return SparseLinearModel(
            weights,
            start.trained,
            unit_rows=self._base.normalize,
            notes=start.notes,
            threads=context.threads,
        )


def objective_and_gradient(
    X: sparse.csr_matrix, true: np.ndarray, inverse_p: np.ndarray, W: np.ndarray, cost: float
) -> tuple[np.ndarray, np.ndarray]:
    """1/2 |w|^2 + cost * (PW eqs. 4, 5 with the squared hinge) and its gradient, by label."""
    scores = X @ W.T
    value = np.where(
        true,
        unbiased_positive(scores, inverse_p, squared_hinge_positive, squared_hinge_negative),
        squared_hinge_negative(scores),
    )
    slope = np.where(
        true,
        unbiased_positive(
            scores, inverse_p, squared_hinge_positive_slope, squared_hinge_negative_slope
        ),
        squared_hinge_negative_slope(scores),
    )
    # Sums along the contiguous axis of each label, so that a label's does not depend on others.
    loss = np.ascontiguousarray(value.T).sum(axis=1)
    return 0.5 * (W**2).sum(axis=1) + cost * loss, W + cost * (X.T @ slope).T


def falls_forever(
    X: sparse.csr_matrix, true: np.ndarray, inverse_p: np.ndarray, W: np.ndarray, cost: float
) -> np.ndarray:
    """bool by label: the objective falls without bound along the ray from 0 through w.

    At t w it grows like t^2 times a number: 1/2 |w|^2, and for each document with score z = w.x
    cost z^2 where a negative has z > 0, cost z^2 / p where a positive has z < 0, and
    - cost (1/p - 1) z^2 where a positive has z > 0. A number below 0 proves that no minimum exists.
    """
    scores = X @ W.T
    squares = scores**2
    rise = np.where(
        true,
        np.where(scores > 0, -(inverse_p - 1.0) * squares, inverse_p * squares),
        np.where(scores > 0, squares, 0.0),
    )
    return 0.5 * (W**2).sum(axis=1) + cost * np.ascontiguousarray(rise.T).sum(axis=1) < 0.0


def descend(
    X: sparse.csr_matrix,
    true: np.ndarray,
    inverse_p: np.ndarray,
    W: np.ndarray,
    *,
    cost: float,
    radius: float,
    steps: int,
) -> np.ndarray:
    """Projected gradient steps of Barzilai and Borwein's length, taken only where they descend."""
    W = _into_ball(W, radius)
    value, gradient = objective_and_gradient(X, true, inverse_p, W, cost)
    length = 1.0 / np.maximum(np.linalg.norm(gradient, axis=1), 1e-12)
    for _ in range(steps):
        tried = _into_ball(W - length[:, None] * gradient, radius)
        new_value, new_gradient = objective_and_gradient(X, true, inverse_p, tried, cost)
        better = new_value < value
        moved = tried - W
        curvature = (moved * (new_gradient - gradient)).sum(axis=1)
        # Where the loss curves downwards there is no best length: go further each time.
        with np.errstate(divide="ignore", invalid="ignore"):
            longer = np.where(curvature > 0, (moved**2).sum(axis=1) / curvature, 4.0 * length)
        length = np.where(better, longer, 0.25 * length)
        W = np.where(better[:, None], tried, W)
        gradient = np.where(better[:, None], new_gradient, gradient)
        value = np.where(better, new_value, value)
    return W


def _into_ball(W: np.ndarray, radius: float) -> np.ndarray:
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return W * np.minimum(1.0, radius / np.maximum(norms, 1e-300))
