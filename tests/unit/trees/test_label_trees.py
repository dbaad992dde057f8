"""Parabel and Bonsai: structure, seeds, search, weights, and a hierarchy that must be found."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from methods import get
from methods._kernels.random import stream
from methods.hooks.loss_weights import LabelWeights
from methods.trees import beam, partition, search_index
from methods.trees.label_tree import Forest
from methods.trees.leaf_search import PRUNED_K
from methods.trees.parabel import Bonsai, LabelTreesModel, Parabel
from methods.trees.partition import balanced_halves, k_means, label_centroids, row_scales
from tests.unit.trees.plain_forest import node_matrices

pytestmark = pytest.mark.slow  # compiles the forests' kernels


def corpus(n: int = 150, d: int = 40, n_labels: int = 30, seed: int = 0) -> Split:
    """Documents whose words hint at their labels; label 0 never occurs, document 0 is empty."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.1).astype(np.float32)
    Y[:, 0] = 0
    words = rng.random((n_labels, d)) < 0.15
    X = (Y @ words) * rng.random((n, d)) + (rng.random((n, d)) < 0.05)
    X[0] = 0
    return Split(
        Inputs(bow=sparse.csr_matrix(X.astype(np.float32))), sparse.csr_matrix(Y), {"name": "toy"}
    )


FORESTS = [
    Parabel(n_trees=2, max_leaf=4),
    Bonsai(n_trees=2, n_children=4, depth=3),
    Bonsai(n_trees=2, n_children=5, depth=2),
]
ids = ["parabel", "bonsai-deep", "bonsai-shallow"]


@pytest.mark.parametrize("method", FORESTS, ids=ids)
def test_every_label_with_a_document_is_in_exactly_one_leaf_of_each_tree(method) -> None:
    train = corpus()
    forest = method.fit(train, seed=3).forest.index
    bounds = [*forest.roots.tolist(), len(forest.leaf)]
    expected = np.flatnonzero(train.label_counts() > 0)
    for first, last in pairwise(bounds):
        in_leaves = [
            forest.targets[forest.target_indptr[v] : forest.target_indptr[v + 1]]
            for v in range(first, last)
            if forest.leaf[v]
        ]
        np.testing.assert_array_equal(np.sort(np.concatenate(in_leaves)), expected)


def test_parabels_halves_are_balanced_and_leaves_small() -> None:
    forest = Parabel(n_trees=1, max_leaf=4).fit(corpus()).forest.index
    sizes = np.diff(forest.target_indptr)
    assert (sizes[~forest.leaf] == 2).all()
    assert sizes[forest.leaf].max() <= 4
    assert sizes[forest.leaf].max() - sizes[forest.leaf].min() <= 1


@pytest.mark.parametrize("method", FORESTS, ids=ids)
def test_same_seed_same_forest_whatever_the_threads(method) -> None:
    train = corpus()
    one = method.fit(train, seed=5, threads=1)
    two = method.fit(train, seed=5, threads=2)
    assert_same_forest(one.forest, two.forest)
    a, b = (model.predict(train.inputs, 10) for model in (one, two))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.scores, b.scores)
    other = method.fit(train, seed=6)
    assert not np.array_equal(other.forest.index.targets, one.forest.index.targets)


def assert_same_forest(one: Forest, two: Forest) -> None:
    """Bit for bit, all that is stored."""
    np.testing.assert_array_equal(one.label_norms, two.label_norms)
    assert one.n_weights == two.n_weights
    for a, b in zip(one.index, two.index, strict=True):
        for x, y in zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]:
            np.testing.assert_array_equal(x, y)


def brute_force(model: LabelTreesModel, x: np.ndarray) -> np.ndarray:
    """Every label's score by walking the whole of every tree."""
    forest = model.forest.index
    matrices = node_matrices(forest)
    norm = np.linalg.norm(x)
    z = np.append(x / norm if norm > 0 else x, forest.bias)
    scores = np.zeros(forest.n_labels)

    def walk(v: int, log_probability: float) -> None:
        for t, margin in enumerate(z @ matrices[v]):
            value = model.discount * log_probability - max(0.0, 1.0 - margin) ** 2
            target = forest.targets[forest.target_indptr[v] + t]
            if forest.leaf[v]:
                scores[target] += np.exp(value) / len(forest.roots)
            else:
                walk(target, value)

    for root in forest.roots:
        walk(root, 0.0)
    return scores


@pytest.mark.parametrize("method", FORESTS, ids=ids)
def test_an_unlimited_beam_equals_a_brute_force_descent(method) -> None:
    train = corpus()
    model = method.fit(train, seed=1)
    model.beam = 1000
    X = train.inputs.bow[:40]
    top = model.predict(Inputs(bow=X), train.n_labels)
    found = top.to_sparse(train.n_labels).toarray()
    for i in range(X.shape[0]):
        np.testing.assert_allclose(found[i], brute_force(model, X[i].toarray()[0]), atol=1e-5)


def test_a_narrow_beam_only_loses_labels() -> None:
    train = corpus()
    model = Parabel(n_trees=1, max_leaf=4).fit(train)
    model.beam = 1000
    wide = model.predict(train.inputs, train.n_labels).to_sparse(train.n_labels).toarray()
    model.beam = 2
    narrow = model.predict(train.inputs, train.n_labels).to_sparse(train.n_labels).toarray()
    kept = narrow > 0
    assert kept.sum() < (wide > 0).sum()
    np.testing.assert_allclose(narrow[kept], wide[kept], rtol=1e-5)


@pytest.mark.parametrize("beam", [2, 10])
@pytest.mark.parametrize("method", FORESTS, ids=ids)
def test_leaves_left_unopened_do_not_change_the_best_labels(method, beam) -> None:
    train = corpus(n=400, n_labels=60)
    model = method.fit(train, seed=2)
    model.beam = beam
    every = model.predict(train.inputs, PRUNED_K + 1)  # opens all leaves
    for k in (1, 3, 5, 20):
        top = model.predict(train.inputs, k)
        np.testing.assert_array_equal(top.indices, every.indices[:, :k])
        np.testing.assert_array_equal(top.scores, every.scores[:, :k])


def test_a_documents_labels_do_not_depend_on_the_others() -> None:
    train = corpus(n=400, n_labels=60)
    model = Parabel(n_trees=2, max_leaf=4).fit(train)
    together = model.predict(train.inputs, 5)
    for i in (0, 1, 17, 399):
        alone = model.predict(Inputs(bow=train.inputs.bow[i : i + 1]), 5)
        np.testing.assert_array_equal(alone.indices[0], together.indices[i])
        np.testing.assert_array_equal(alone.scores[0], together.scores[i])


def test_labels_do_not_depend_on_how_many_documents_are_searched_together(monkeypatch) -> None:
    train = corpus(n=400, n_labels=60)
    model = Bonsai(n_trees=2, n_children=5).fit(train)
    together = model.predict(train.inputs, 5)
    assert beam._chunk_size(model.forest.index) == beam.CHUNK
    monkeypatch.setattr(beam, "CHUNK", 32)
    monkeypatch.setattr(beam, "ROWS_PER_DOCUMENT", 3)
    assert 32 < beam._chunk_size(model.forest.index) < 400
    apart = model.predict(train.inputs, 5)
    np.testing.assert_array_equal(apart.indices, together.indices)
    np.testing.assert_array_equal(apart.scores, together.scores)
    monkeypatch.setattr(beam, "LARGEST_CHUNK", 40)
    assert beam._chunk_size(model.forest.index) == 40


def test_trees_deeper_than_the_head_are_searched_alike(monkeypatch) -> None:
    train = corpus()
    method = Parabel(n_trees=2, max_leaf=2)
    joined = method.fit(train).predict(train.inputs, 5)
    monkeypatch.setattr(search_index, "HEAD_NODES", 1)
    model = method.fit(train)
    assert (model.forest.index.head_start >= 0).sum() == 2  # the roots
    by_level = model.predict(train.inputs, 5)
    np.testing.assert_array_equal(joined.indices, by_level.indices)
    np.testing.assert_allclose(joined.scores, by_level.scores, rtol=1e-5)


@pytest.mark.parametrize("method", FORESTS, ids=ids)
def test_predictions_are_sound_and_leave_out_unseen_labels(method) -> None:
    train = corpus()
    model = method.fit(train)
    top = model.predict(train.inputs, 100)
    assert top.fault(len(train), train.n_labels) is None
    assert not (top.indices == 0).any()
    norms = model.label_norms()
    np.testing.assert_array_equal(np.isnan(norms), train.label_counts() == 0)
    assert model.notes == ["1 labels without a training document left out"]


@pytest.mark.parametrize("method", FORESTS, ids=ids)
def test_save_and_load(method, tmp_path) -> None:
    train = corpus()
    model = method.fit(train)
    model.save(tmp_path)
    again = LabelTreesModel.load(tmp_path)
    assert_same_forest(model.forest, again.forest)
    assert (again.beam, again.discount, again.notes) == (model.beam, model.discount, model.notes)
    a, b = (m.predict(train.inputs, 7) for m in (model, again))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.scores, b.scores)


def test_no_label_at_all_predicts_nothing() -> None:
    train = corpus()
    empty = Split(train.inputs, sparse.csr_matrix(train.labels.shape, dtype=np.float32))
    top = Parabel().fit(empty).predict(train.inputs, 3)
    assert (top.indices == -1).all()


def test_another_number_of_features_is_an_error() -> None:
    train = corpus()
    model = Parabel().fit(train)
    with pytest.raises(ValueError, match="trained on 40"):
        model.predict(Inputs(bow=train.inputs.bow[:, :30]), 3)


@pytest.mark.parametrize("grouped", [False, True])
def test_label_weights_act_at_the_leaves_and_those_of_groups_above(grouped: bool) -> None:
    train = corpus()
    method = Parabel(n_trees=1, max_leaf=4)
    asked = []

    def of_groups(counts):
        asked.append(counts)
        return np.full(len(counts), 5.0)

    ones = np.ones(train.n_labels)
    weights = LabelWeights(5.0 * ones, ones, of_groups if grouped else None)
    plain = method.fit(train).forest.index
    heavy = method.fit(train, hooks=[weights]).forest.index

    def differ(leaf: bool) -> bool:
        pairs = zip(plain.leaf, node_matrices(plain), node_matrices(heavy), strict=True)
        return any(not np.array_equal(a, b) for of_leaf, a, b in pairs if of_leaf == leaf)

    assert differ(leaf=True)
    assert differ(leaf=False) == grouped
    if grouped:
        # The root's two children: documents that carry any label of theirs, by hand.
        of_node = labels_below(plain)
        children = plain.targets[plain.target_indptr[0] : plain.target_indptr[1]]
        by_hand = [int((train.labels[:, of_node[c]].sum(axis=1) > 0).sum()) for c in children]
        assert any(np.array_equal(counts, by_hand) for counts in asked)


def labels_below(forest) -> list[list[int]]:
    """The labels in the leaves below each node."""
    found: list[list[int]] = [[] for _ in forest.leaf]
    for v in range(len(forest.leaf) - 1, -1, -1):
        targets = forest.targets[forest.target_indptr[v] : forest.target_indptr[v + 1]]
        found[v] = list(targets) if forest.leaf[v] else [x for t in targets for x in found[t]]
    return found


def test_pw_raises_the_norms_of_rare_labels() -> None:
    train = corpus(n=300)
    plain = get("Parabel", max_leaf=4).fit(train).label_norms()
    pw = get("Parabel", "PW", max_leaf=4).fit(train).label_norms()
    assert np.nanmean(pw) > np.nanmean(plain)


def planted(per_group: int = 8, seed: int = 0) -> tuple[Split, np.ndarray]:
    """Four groups of labels, two of each pair of groups alike: words of pair, group and label."""
    rng = np.random.default_rng(seed)
    n_labels = 4 * per_group
    group = rng.permutation(np.repeat(np.arange(4), per_group))
    rows, labels = [], []
    for label in range(n_labels):
        for _ in range(5):
            x = np.zeros(60 + n_labels)
            x[(group[label] // 2) * 10 + rng.choice(10, 8, replace=False)] = 1.0
            x[20 + group[label] * 10 + rng.choice(10, 6, replace=False)] = 1.0
            x[60 + label] = 1.0
            rows.append(x)
            labels.append(label)
    X = sparse.csr_matrix(np.array(rows, np.float32))
    Y = sparse.csr_matrix(
        (np.ones(len(labels), np.float32), (np.arange(len(labels)), labels)),
        shape=(len(labels), n_labels),
    )
    return Split(Inputs(bow=X), Y), group


def test_a_planted_hierarchy_is_found_by_balanced_halving() -> None:
    split, group = planted()
    n_trees = 10
    forest = Parabel(n_trees=n_trees, max_leaf=8).fit(split).forest.index
    bounds = [*forest.roots.tolist(), len(forest.leaf)]
    found = 0
    for first, last in pairwise(bounds):
        leaves = [
            forest.targets[forest.target_indptr[v] : forest.target_indptr[v + 1]]
            for v in range(first, last)
            if forest.leaf[v]
        ]
        assert len(leaves) == 4
        found += all(len(set(group[leaf])) == 1 for leaf in leaves)
    # Two random labels of one group are a bad start, so not every tree can succeed; of the
    # 32! / 8!^4 ways to fill four leaves, chance would never hit the planted one.
    assert found >= n_trees // 2


def test_a_planted_hierarchy_is_found_by_k_means() -> None:
    split, group = planted()
    X = split.inputs.bow
    centroids = label_centroids(X, row_scales(X), split.labels)
    # From random labels k-means may start twice in one group; the best of a few starts does not.
    purest = 0
    for seed in range(5):
        cluster = k_means(
            centroids.indptr, centroids.indices, centroids.data, np.arange(32), X.shape[1], 8,
            stream(seed),
        )  # fmt: skip
        purest = max(
            purest, sum(len(set(group[cluster == c])) == 1 for c in range(cluster.max() + 1))
        )
        assert set(cluster) == set(range(cluster.max() + 1))
        assert np.bincount(cluster).min() > 1
    assert purest >= 4


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(0, 10_000))
def test_halves_differ_by_at_most_one(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    C = sparse.random(n, 12, density=0.4, format="csr", dtype=np.float32, random_state=rng)
    side = balanced_halves(C.indptr, C.indices, C.data, np.arange(n), 12, stream(seed))
    assert abs(int((side == 1).sum()) - int((side == 0).sum())) <= 1


def test_centroids_are_unit_sums_of_unit_documents() -> None:
    train = corpus()
    X = train.inputs.bow
    dense = X.toarray()
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    unit = np.divide(dense, norms, out=np.zeros_like(dense), where=norms > 0)
    sums = train.labels.T.toarray() @ unit
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    expected = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    got = label_centroids(X, row_scales(X), train.labels).toarray()
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_scales_do_not_depend_on_how_many_rows_are_squared_at_once(monkeypatch):
    X = corpus().inputs.bow
    whole = row_scales(X)
    monkeypatch.setattr(partition, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(row_scales(X), whole)
