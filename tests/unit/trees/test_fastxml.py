"""FastXML and PfastreXML: the hyperplane, the nDCG split, the trees and the re-ranker."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.data.split import Inputs
from methods._kernels.topk import best_of
from methods.trees import instance_tree, l1_logistic
from methods.trees._columns import ENTRY, columns_of, divide
from methods.trees._mersenne import mersenne
from methods.trees.fastxml import FastXML, InstanceTreesModel, PfastreXML
from tests.unit.trees.test_label_trees import corpus

pytestmark = pytest.mark.slow  # compiles the forests' kernels


def objective(X, target, costs, w) -> float:
    margins = target * (X @ w)
    return float(np.abs(w).sum() + (costs * np.logaddexp(0.0, -margins)).sum())


def test_hyperplane_comes_close_to_the_l1_optimum() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random(80, 15, density=0.4, format="csc", dtype=np.float32, random_state=rng)
    target = np.where(X @ rng.standard_normal(15) > 0.1, 1, -1)
    costs = np.where(target > 0, 2.0, 1.0)
    entries = np.empty(X.nnz, ENTRY)
    entries["row"], entries["value"] = X.indices, X.data
    w = l1_logistic.fit(X.indptr.astype(np.int64), entries, target, costs, mersenne(0))
    reference = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", tol=1e-10, fit_intercept=False, max_iter=10_000,
        class_weight={1: 2.0, -1: 1.0},
    ).fit(X, target)  # fmt: skip
    best = objective(X, target, costs, reference.coef_[0])
    # It stops when the violation has fallen to a hundredth.
    assert objective(X, target, costs, w) <= best * 1.01
    assert (w == 0).any()


def dense_of(features, indptr, entries, n_rows: int, n_columns: int) -> np.ndarray:
    out = np.zeros((n_rows, n_columns), np.float32)
    for feature, start, stop in zip(features, indptr[:-1], indptr[1:], strict=True):
        assert (np.diff(entries["row"][start:stop].astype(int)) > 0).all()
        out[entries["row"][start:stop], feature] = entries["value"][start:stop]
    return out


def test_columns_of_children_are_those_of_their_documents() -> None:
    rng = np.random.default_rng(4)
    X = sparse.random(40, 12, density=0.1, format="csr", dtype=np.float32, random_state=rng)
    features, indptr, entries = columns_of(X.indptr, X.indices, X.data, 12, np.float32(2.0))
    expected = np.hstack([X.toarray(), np.full((40, 1), 2.0, np.float32)])
    np.testing.assert_array_equal(dense_of(features, indptr, entries, 40, 13), expected)
    upper = rng.random(40) < 0.3
    code = np.where(upper, 2 * np.cumsum(upper) - 1, 2 * np.cumsum(~upper) - 2).astype(np.uint32)
    out = np.empty_like(entries)
    n_upper = int(X[upper].nnz + upper.sum())
    children = divide(features, indptr, entries, code, out, n_upper)
    for rows, of_child, names, starts in (
        (upper, out[:n_upper], *children[:2]),
        (~upper, out[n_upper:], *children[2:]),
    ):
        got = dense_of(names, starts, of_child, int(rows.sum()), 13)
        np.testing.assert_array_equal(got, expected[rows])
        assert starts[-1] == len(of_child)
        assert (np.diff(starts) > 0).all()


def ndcg_of_sides(Y: np.ndarray, side: np.ndarray) -> float:
    """Mean nDCG when each side is ranked by one list: the best list, by brute force of sums."""
    discounts = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
    ideal = np.array([discounts[: int(row.sum())].sum() for row in Y])
    total = 0.0
    for s in (-1, 1):
        sums = (Y[side == s] / ideal[side == s, None]).sum(axis=0)
        total += np.sort(sums)[::-1] @ discounts
    return total / len(Y)


def test_ndcg_never_falls_and_is_what_it_says() -> None:
    rng = np.random.default_rng(2)
    Y = (rng.random((50, 9)) < 0.25).astype(float)
    Y[Y.sum(axis=1) == 0, 0] = 1
    M = sparse.csr_matrix(Y)
    discounts = instance_tree.rank_discounts(9)
    inverse = instance_tree.ideal_gains(np.diff(M.indptr), discounts, True)
    side = np.where(rng.random(50) < 0.5, 1, -1)
    before = ndcg_of_sides(Y, side)
    history = list(
        instance_tree.split_by_ndcg(
            M.indptr.astype(np.int64),
            M.indices.astype(np.int64),
            M.data,
            np.arange(50),
            9,
            inverse,
            discounts,
            side,
        )
    )
    assert history[0] == pytest.approx(before)
    assert (np.diff(history) > -1e-9).all()
    assert ndcg_of_sides(Y, side) >= before


METHODS = [FastXML(n_trees=4, max_leaf=5), PfastreXML(n_trees=4, max_leaf=5)]


@pytest.mark.parametrize("method", METHODS, ids=["fastxml", "pfastrexml"])
def test_same_seed_same_trees_whatever_the_threads(method) -> None:
    train = corpus()
    one, two = (method.fit(train, seed=5, threads=threads) for threads in (1, 2))
    for a, b in zip(one.trees, two.trees, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    a, b = (model.predict(train.inputs, 10) for model in (one, two))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.scores, b.scores)
    assert a.fault(len(train), train.n_labels) is None


def test_every_training_document_falls_into_a_leaf_that_holds_its_labels() -> None:
    train = corpus()
    model = FastXML(n_trees=2, max_leaf=5, labels_per_leaf=1000).fit(train)
    X = train.inputs.bow
    for tree in model.trees:
        leaf = np.empty(len(train), np.int64)
        instance_tree.leaves_of(
            X.indptr, X.indices, X.data, X.shape[1], np.float32(1.0), tree.children,
            tree.weight_indptr, tree.weight_features, tree.weights, leaf,
        )  # fmt: skip
        assert (tree.children[leaf] == -1).all()
        for v in np.unique(leaf):
            span = slice(tree.label_indptr[v], tree.label_indptr[v + 1])
            share = train.labels[leaf == v].mean(axis=0)
            expected = np.asarray(share).ravel()
            got = np.zeros(train.n_labels)
            got[tree.labels[span]] = tree.label_scores[span]
            np.testing.assert_allclose(got, expected, atol=1e-6)


def test_prediction_is_the_mean_of_leaves_found_by_walking() -> None:
    train = corpus()
    model = FastXML(n_trees=3, max_leaf=5).fit(train)
    dense = np.hstack([train.inputs.bow.toarray(), np.ones((len(train), 1), np.float32)])
    expected = np.zeros((20, train.n_labels))
    for tree in model.trees:
        for i in range(20):
            v = 0
            while tree.children[v, 0] >= 0:
                span = slice(tree.weight_indptr[v], tree.weight_indptr[v + 1])
                margin = tree.weights[span] @ dense[i, tree.weight_features[span]]
                v = tree.children[v, 0 if margin >= 0 else 1]
            span = slice(tree.label_indptr[v], tree.label_indptr[v + 1])
            expected[i, tree.labels[span]] += tree.label_scores[span] / 3
    top = model.predict(Inputs(bow=train.inputs.bow[:20]), train.n_labels)
    np.testing.assert_allclose(top.to_sparse(train.n_labels).toarray(), expected, atol=1e-6)


def test_reranker_against_the_formula() -> None:
    train = corpus()
    model = PfastreXML(n_trees=3, max_leaf=5).fit(train)
    plain = InstanceTreesModel(model.trees, model.n_features, model.n_labels, model.bias)
    trees = plain.predict(train.inputs, train.n_labels).to_sparse(train.n_labels).toarray()
    # The bias is a feature like any other when documents are scaled.
    X = np.hstack([train.inputs.bow.toarray(), np.ones((len(train), 1))])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = train.labels.toarray()
    means = Y.T @ X / np.maximum(Y.sum(axis=0), 1)[:, None]
    distance = ((X[:, None, :] - means[None]) ** 2).sum(axis=2)
    expected = trees**0.8 * (1 / (1 + np.exp(30.0 * distance))) ** 0.2
    got = model.predict(train.inputs, train.n_labels).to_sparse(train.n_labels).toarray()
    np.testing.assert_allclose(got, np.where(trees > 0, expected, 0), rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=["fastxml", "pfastrexml"])
def test_save_and_load(method, tmp_path) -> None:
    train = corpus()
    model = method.fit(train)
    model.save(tmp_path)
    again = InstanceTreesModel.load(tmp_path)
    a, b = (m.predict(train.inputs, 7) for m in (model, again))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.scores, b.scores)


def test_best_of_equals_a_full_sort_with_ties_to_the_lower_label() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(0, 30))
        scores = rng.integers(0, 6, 40).astype(float)
        candidates = rng.choice(40, n, replace=False).astype(np.int32)
        k = int(rng.integers(1, 12))
        labels, values = np.full(k, -1, np.int32), np.full(k, -np.inf, np.float32)
        best_of(scores, candidates, labels, values)
        expected = sorted(candidates, key=lambda label: (-scores[label], label))[:k]
        assert labels[: len(expected)].tolist() == expected
        assert (labels[len(expected) :] == -1).all()
