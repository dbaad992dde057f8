"""Taug: the split of labels, the changed copies, and the two models joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from methods import get
from methods.registry import MisfitError
from methods.variants import taug
from methods.variants.taug import Augmentation, TaugD, TaugModel, TaugS, head_labels
from tests.unit.trees.test_label_trees import corpus

pytestmark = pytest.mark.slow  # compiles the forests' kernels


def test_head_is_the_most_frequent_share_of_labels() -> None:
    counts = np.array([3, 10, 7, 7, 0])
    assert head_labels(counts, 0.0).tolist() == []
    assert head_labels(counts, 0.4).tolist() == [1, 2]
    assert head_labels(counts, 0.59).tolist() == [1, 2]  # floor(2.95)
    assert head_labels(counts, 1.0).tolist() == [0, 1, 2, 3, 4]


def matrix(seed: int, n: int = 12, d: int = 30) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    return sparse.random(n, d, density=0.4, format="csr", dtype=np.float32, random_state=rng)


def copies_of(X, **options) -> list[sparse.csr_matrix]:
    """The original and each copy, apart."""
    n_aug = options.pop("n_aug", 3)
    whole = Augmentation(X, n_aug, **{"keep": 1.0, "swaps": 0, "seed": 0, **options}).in_memory()
    return [whole[i * X.shape[0] : (i + 1) * X.shape[0]] for i in range(n_aug + 1)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 20))
def test_swap_keeps_features_and_the_multiset_of_values(seed: int, swaps: int) -> None:
    X = matrix(seed)
    original, *copies = copies_of(X, swaps=swaps, seed=seed)
    assert (original != X).nnz == 0
    for copy in copies:
        np.testing.assert_array_equal(copy.indptr, X.indptr)
        np.testing.assert_array_equal(copy.indices, X.indices)
        for i in range(X.shape[0]):
            span = slice(X.indptr[i], X.indptr[i + 1])
            np.testing.assert_array_equal(np.sort(copy.data[span]), np.sort(X.data[span]))


def test_swap_does_move_values() -> None:
    X = matrix(0)
    _, first, second, _ = copies_of(X, swaps=3)
    assert not np.array_equal(first.data, X.data)
    assert not np.array_equal(first.data, second.data)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.9))
def test_dropout_keeps_some_features_with_their_values(seed: int, keep: float) -> None:
    X = matrix(seed)
    _, *copies = copies_of(X, keep=keep, seed=seed)
    for copy in copies:
        dense, original = copy.toarray(), X.toarray()
        kept = dense != 0
        np.testing.assert_array_equal(dense[kept], original[kept])


def test_dropout_keeps_the_asked_share() -> None:
    X = matrix(1, n=400, d=100)
    _, copy = copies_of(X, n_aug=1, keep=0.7)
    assert copy.nnz / X.nnz == pytest.approx(0.7, abs=0.02)


def test_blocks_do_not_matter_and_files_hold_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    X = matrix(2)
    augmentation = Augmentation(X, 3, 0.8, 2, 7)
    whole = augmentation.in_memory()
    monkeypatch.setattr(taug, "ROWS_AT_ONCE", 5)
    assert (augmentation.in_memory() != whole).nnz == 0
    assert (augmentation.on_disk(tmp_path) != whole).nnz == 0


class Recorder:
    """A base that notes what it is trained on."""

    def __init__(self, base) -> None:
        self.base = base
        self.splits = []

    def __getattr__(self, name):
        return getattr(self.base, name)

    def fit_in(self, train, context):
        self.splits.append(train)
        return self.base.fit_in(train, context)


def test_each_model_sees_its_labels_and_their_documents_and_copies_keep_labels() -> None:
    train = corpus()
    base = Recorder(get("Parabel", max_leaf=4))
    taug.Taug(tau=0.2, n_aug=2).apply(base).fit(train)
    head, tail = base.splits
    own = head_labels(train.label_counts(), 0.2)
    rest = np.setdiff1d(np.arange(train.n_labels), own)
    with_head = np.flatnonzero(np.diff(train.labels[:, own].tocsr().indptr))
    with_tail = np.flatnonzero(np.diff(train.labels[:, rest].tocsr().indptr))
    assert (head.labels != train.labels[with_head][:, own]).nnz == 0
    assert (head.inputs.bow != train.inputs.bow[with_head]).nnz == 0
    assert len(tail) == 3 * len(with_tail)
    for copy in range(3):
        part = tail.labels[copy * len(with_tail) : (copy + 1) * len(with_tail)]
        assert (part != train.labels[with_tail][:, rest]).nnz == 0


@pytest.mark.parametrize("base", ["Parabel", "LinearSVC"])
def test_all_head_and_no_copies_is_the_plain_base(base: str) -> None:
    train = corpus()
    plain = get(base).fit(train, seed=4)
    method = get(base, "Taug", variant_params={"tau": 1.0, "n_aug": 0})
    model = method.fit(train, seed=4)
    a, b = (m.predict(train.inputs, 9) for m in (plain, model))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.scores, b.scores)
    np.testing.assert_array_equal(plain.label_norms(), model.label_norms())


def test_scores_are_joined_and_norms_cover_both() -> None:
    train = corpus()
    model = get("Parabel", "Taug-ds", max_leaf=4, variant_params={"tau": 0.3}).fit(train)
    top = model.predict(train.inputs, 25)
    assert top.fault(len(train), train.n_labels) is None
    head = set(head_labels(train.label_counts(), 0.3).tolist())
    found = set(top.indices[top.indices >= 0].tolist())
    assert found & head
    assert found - head
    norms = model.label_norms()
    np.testing.assert_array_equal(np.isnan(norms), train.label_counts() == 0)


def test_same_seed_same_model_and_files_or_memory_alike() -> None:
    train = corpus()
    tops = [
        get("Parabel", "Taug", max_leaf=4, variant_params={"memory_mb": mb})
        .fit(train, seed=1, threads=threads)
        .predict(train.inputs, 9)
        for mb, threads in ((2048.0, 1), (0.0, 2))
    ]
    np.testing.assert_array_equal(tops[0].indices, tops[1].indices)
    np.testing.assert_array_equal(tops[0].scores, tops[1].scores)


def test_composes_with_ranknet_innermost_first(tmp_path) -> None:
    train = corpus()
    method = get("Bonsai", "RankNet+Taug", n_children=5)
    assert method.variant == "RankNet+Taug-ds"
    model = method.fit(train)
    assert isinstance(model.base, TaugModel)
    model.save(tmp_path)
    again = type(model).load(tmp_path)
    a, b = (m.predict(train.inputs, 5) for m in (model, again))
    np.testing.assert_array_equal(a.indices, b.indices)


def test_label_weights_reach_both_models() -> None:
    train = corpus()
    plain = get("Parabel", "Taug", max_leaf=4).fit(train).label_norms()
    weighted = get("Parabel", "Taug+PW", max_leaf=4).fit(train).label_norms()
    assert np.nanmean(weighted) > np.nanmean(plain)


def test_a_control_has_nothing_to_augment() -> None:
    with pytest.raises(MisfitError, match="bag of words"):
        get("random", "Taug")


@pytest.mark.parametrize("wrong", [{"tau": 1.5}, {"keep": 0.0}, {"n_aug": -1}])
def test_wrong_parameters_are_named(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        taug.Taug(**wrong)


def test_it_says_where_swapping_and_decoupling_do_nothing() -> None:
    """0/1 features, and a head of one label, whose documents are all positive."""
    train = corpus()
    binary = train.inputs.bow.copy()
    binary.data[:] = 1.0
    ones = Split(Inputs(bow=binary), train.labels)
    one_head = 1.01 / train.n_labels
    base = get("Parabel", max_leaf=4)
    notes = TaugS(tau=one_head).apply(base).fit(ones).notes
    assert "1 head label has no negative document" in notes
    assert any("swapping changes nothing" in note for note in notes)
    assert TaugS(tau=0.5).apply(base).fit(train).remarks == []
    assert TaugD(tau=0.5).apply(base).fit(ones).remarks == []
