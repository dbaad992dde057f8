"""The side-by-side solver against scikit-learn's liblinear and against its own optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from methods._kernels.random import stream
from methods.trees import node_solver
from methods.trees.node_solver import SolverSettings, train_node
from methods.trees.partition import row_scales


def problem(n: int = 60, d: int = 25, n_labels: int = 12, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.3, format="csr", dtype=np.float32, random_state=rng)
    X.data += np.float32(0.1)
    labels = sparse.csr_matrix((rng.random((n, n_labels)) < 0.15).astype(np.float32))
    return X, labels


def dense_weights(weights, d: int, n_targets: int) -> np.ndarray:
    """(d + 1) x targets, the bias last."""
    out = np.zeros((d + 1, n_targets))
    for r, feature in enumerate(weights.features):
        for e in range(weights.indptr[r], weights.indptr[r + 1]):
            out[feature, weights.targets[e]] = weights.values[e]
    return out


def trained(X, labels, factors=None, **settings):
    targets = [np.array([label]) for label in range(labels.shape[1])]
    if factors is None:
        factors = np.ones((2, len(targets)))
    options = {"eps": 1e-5, "passes": 4000, "threshold": 0.0, **settings}
    weights = train_node(
        X, row_scales(X), labels.tocsc(), targets, SolverSettings(**options), factors, (0, 0)
    )
    return dense_weights(weights, X.shape[1], len(targets))


def rows_of_node(X, labels):
    """The documents that carry any label, unit length, with the bias."""
    rows = np.flatnonzero(np.diff(labels.indptr) > 0)
    unit = sparse.diags(row_scales(X)) @ X
    bias = sparse.csr_matrix(np.ones((len(rows), 1)))
    return rows, sparse.hstack([unit[rows], bias]).tocsr()


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_reaches_liblinears_optimum(factor: float) -> None:
    X, labels = problem()
    factors = np.stack([np.ones(12), np.full(12, factor)])
    ours = trained(X, labels, factors)
    rows, Z = rows_of_node(X, labels)
    for label in range(labels.shape[1]):
        y = labels[rows, label].toarray().ravel() > 0
        # The bias is a regularised feature of value 1, as liblinear's -B 1.
        reference = LinearSVC(
            C=1.0, tol=1e-9, max_iter=100_000, fit_intercept=False, class_weight={True: factor}
        ).fit(Z, y)
        np.testing.assert_allclose(ours[:, label], reference.coef_[0], atol=2e-3)


def test_a_factor_of_two_equals_the_positives_twice() -> None:
    X, labels = problem(seed=1)
    factors = np.ones((2, 12))
    factors[1, 4] = 2.0
    weighted = trained(X, labels, factors)[:, 4]
    again = np.flatnonzero(labels[:, 4].toarray().ravel())
    # Only label 4 may see the copies as its positives; the rest of the node stays as it was.
    X_twice = sparse.vstack([X, X[again]]).tocsr()
    copies = sparse.csr_matrix(
        (np.ones(len(again)), (np.arange(len(again)), np.full(len(again), 4))),
        shape=(len(again), 12),
    )
    labels_twice = sparse.vstack([labels, copies]).tocsr()
    np.testing.assert_allclose(weighted, trained(X_twice, labels_twice)[:, 4], atol=2e-3)


def test_result_does_not_depend_on_the_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """A classifier in a wide block, in a narrow one, and in a pair is the same classifier."""
    X, labels = problem(n_labels=12)
    whole = trained(X, labels, eps=0.1, passes=20)
    for width in (2, 4, 5, 8):
        monkeypatch.setattr(node_solver, "BLOCK", width)
        np.testing.assert_allclose(trained(X, labels, eps=0.1, passes=20), whole, atol=1e-5)


def test_threshold_drops_small_weights_only() -> None:
    X, labels = problem()
    whole = trained(X, labels)
    pruned = trained(X, labels, threshold=0.1)
    np.testing.assert_allclose(pruned, np.where(np.abs(whole) > 0.1, whole, 0.0))


def test_stops_at_the_bound_on_passes() -> None:
    X, labels = problem()
    rows, Z = rows_of_node(X, labels)
    by_label = labels[rows].tocsc()
    _, used = node_solver.solve_block(
        Z.indptr.astype(np.int64),
        Z.indices,
        Z.data.astype(np.float32),
        Z.shape[1],
        by_label.indptr.astype(np.int64),
        by_label.indices.astype(np.int64),
        np.full((2, 12), 0.5, np.float32),
        np.float32(0.0),
        3,
        stream(0),
    )
    assert (used == 3).all()
