"""Metrics against hand-computed cases, a plain dense implementation, and their bounds."""

from __future__ import annotations

import math
from types import SimpleNamespace

import dense_metrics
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import f1_score

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.bins import DECILES, PARTS, frequency_bins
from benchmarks.evaluation.conventions import CONVENTIONS
from benchmarks.evaluation.metrics import Evaluation, evaluate, label_counts, score
from benchmarks.evaluation.propensity import inverse_propensity
from benchmarks.evaluation.topk import TopK

ALL = sorted(CONVENTIONS)


def csr(rows):
    return sparse.csr_matrix(np.asarray(rows, dtype=np.float32))


@st.composite
def problems(draw):
    """Scores with ties, rows without labels, labels never seen in training, few labels."""
    n = draw(st.integers(1, 8))
    n_labels = draw(st.integers(1, 9))
    bits = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    truth = draw(st.lists(bits, min_size=n, max_size=n))
    train = draw(st.lists(bits, min_size=4, max_size=9))
    levels = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0])  # few values: ties are common
    scores = draw(
        st.lists(st.lists(levels, min_size=n_labels, max_size=n_labels), min_size=n, max_size=n)
    )
    return np.array(truth), np.array(train), np.array(scores, dtype=np.float32)


def ranked_lists(top):
    ranked = [[int(label) for label in row if label >= 0] for row in top.indices]
    scores = [
        {int(label): float(s) for label, s in zip(ids, row, strict=True) if label >= 0}
        for ids, row in zip(top.indices, top.scores, strict=True)
    ]
    return ranked, scores


def assert_same(ours, theirs):
    assert set(theirs) <= set(ours)
    for name, value in theirs.items():
        if math.isnan(value):
            assert math.isnan(ours[name]), name
        else:
            assert ours[name] == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("convention", ALL)
@settings(deadline=None, max_examples=60)
@given(problem=problems(), A=st.sampled_from([0.5, 0.55, 0.6]), B=st.sampled_from([0.4, 1.5, 2.6]))
def test_equals_the_plain_dense_implementation(convention, problem, A, B):
    truth, train, scores = problem
    # Three labelled rows at least: with fewer the propensity model says nothing (see its error).
    assume(np.count_nonzero(train.any(axis=1)) >= 3)
    assume(len(truth) >= 3)
    ks = (1, 3, 5, 12)  # 12 is more labels than there are
    top = TopK.from_dense(scores, k=12)
    ours = score(top, csr(truth), csr(train), A=A, B=B, ks=ks, convention=convention)
    ranked, margins = ranked_lists(top)
    theirs = dense_metrics.metrics(
        ranked, margins, truth.tolist(), train.tolist(), A, B, ks, convention
    )
    assert_same(ours, theirs)


@pytest.mark.parametrize("n", [89, 90, 100, 180])
def test_httn_leaves_out_the_incomplete_last_batch(n):
    rng = np.random.default_rng(n)
    truth = (rng.random((n, 6)) < 0.4).astype(int)
    top = TopK.from_dense(rng.random((n, 6)), k=6)
    ours = score(top, csr(truth), csr(truth), convention="httn")
    ranked, margins = ranked_lists(top)
    theirs = dense_metrics.metrics(
        ranked, margins, truth.tolist(), truth.tolist(), 0.55, 1.5, (1, 3, 5), "httn"
    )
    assert_same(ours, theirs)


def test_by_hand():
    """Two rows, four labels; every figure below was worked out on paper.

    Row 0 has labels 0 and 2 and is ranked 0, 1, 2: gains 1, 0, 1. Row 1 has label 3 alone and is
    ranked 1, 3, 0: gains 0, 1, 0.
    """
    truth, ranked = csr([[1, 0, 1, 0], [0, 0, 0, 1]]), np.array([[0, 1, 2], [1, 3, 0]], np.int32)
    top = SimpleNamespace(indices=ranked, scores=np.array([[3, 2, 1], [3, 2, 1]], np.float32))
    train = csr([[1, 1, 0, 0]] * 4 + [[1, 0, 1, 0]] * 2)
    w = inverse_propensity(np.array([6, 4, 2, 0]), 6)
    d2, d3 = 1 / math.log2(3), 0.5
    values = score(top, truth, train, ks=(1, 3))
    assert values["P@1"] == pytest.approx(50)
    assert values["P@3"] == pytest.approx(100 * (2 / 3 + 1 / 3) / 2)
    assert values["R@3"] == pytest.approx(100)
    assert values["nDCG@3"] == pytest.approx(100 * ((1 + d3) / (1 + d2) + d2) / 2)
    assert values["PSP@1"] == pytest.approx(100 * w[0] / (w[2] + w[3]))
    assert values["PSP@3"] == pytest.approx(100)
    both = (w[2] + w[0] * d2) + w[3]
    assert values["PSnDCG@3"] == pytest.approx(100 * (w[0] + w[2] * d3 + w[3] * d2) / both)
    assert values["Cov@1"] == pytest.approx(100 / 3)
    by_rows = score(top, truth, train, ks=(1, 3), convention="pyxclib")
    mine = (w[0] + w[2] * d3) / (1 + d2) + w[3] * d2
    assert by_rows["PSnDCG@3"] == pytest.approx(100 * mine / ((w[2] + w[0] * d2) / (1 + d2) + w[3]))
    fixed = score(top, truth, train, ks=(1, 3), convention="aplc")
    ideal = 1 + d2 + d3
    assert fixed["nDCG@3"] == pytest.approx(100 * ((1 + d3) / ideal + d2 / ideal) / 2)
    # Row 0 becomes 2, 1, 0 (rarest first, all margins positive); row 1 becomes 3, 1, 0.
    java = score(top, truth, train, ks=(1, 3), convention="dismec-java")
    assert java["PSP@1"] == pytest.approx(100)
    assert java["P@1"] == pytest.approx(50)


def test_rerank_moves_no_label_with_a_negative_margin_up():
    truth = csr([[0, 0, 1]])
    train = csr([[1, 0, 0]] * 3 + [[0, 1, 0]] * 2)
    top = SimpleNamespace(
        indices=np.array([[0, 1, 2]], np.int32), scores=np.array([[-0.1, -0.2, -0.3]], np.float32)
    )
    for margin, expected in ((-0.3, 0.0), (0.3, 100.0)):
        top.scores[0, 2] = margin
        assert score(top, truth, train, ks=(1,), convention="dismec-java")["PSP@1"] == expected


@pytest.mark.parametrize("convention", ALL)
@settings(deadline=None, max_examples=40)
@given(problem=problems())
def test_the_oracle_reaches_the_bound(convention, problem):
    truth, train, _ = problem
    truth, train = np.vstack([truth, np.ones((3, truth.shape[1]), int)]), np.vstack([train, train])
    assume(np.count_nonzero(train.any(axis=1)) >= 3)
    n_labels = truth.shape[1]
    source = truth if CONVENTIONS[convention].test_propensity else train
    # True labels first, the rarest of them first of all.
    oracle = TopK.from_dense(np.where(truth, 1.0 - source.sum(axis=0) / 1e3, -1.0), k=n_labels)
    ks = tuple(k for k in (1, 3, 5) if k <= n_labels)
    values = score(oracle, csr(truth), csr(train), ks=ks, convention=convention)
    sizes = truth.sum(axis=1)
    if CONVENTIONS[convention].labelled_rows_only:
        sizes = sizes[sizes > 0]
    for k in ks:
        assert values[f"PSP@{k}"] == pytest.approx(100)
        assert values[f"PSnDCG@{k}"] == pytest.approx(100)
        assert values[f"P@{k}"] == pytest.approx(100 * np.minimum(sizes, k).mean() / k)
        if CONVENTIONS[convention].fixed_ndcg:
            gain = np.concatenate([[0], np.cumsum(1 / np.log2(np.arange(k) + 2))])
            bound = gain[np.minimum(sizes, k)].mean() / gain[k]
            assert values[f"nDCG@{k}"] == pytest.approx(100 * bound)
        else:
            assert values[f"nDCG@{k}"] == pytest.approx(100 * (sizes > 0).mean())


@settings(deadline=None, max_examples=40)
@given(problem=problems())
def test_identities(problem):
    truth, train, scores = problem
    top = TopK.from_dense(scores, k=6)
    values = score(top, csr(truth), csr(train))
    assert values["nDCG@1"] == pytest.approx(values["P@1"])
    if truth.any():
        assert values["PSnDCG@1"] == pytest.approx(values["PSP@1"])
        assert all(0 <= value <= 100 + 1e-9 for value in values.values())


@settings(deadline=None, max_examples=30)
@given(problem=problems())
def test_bins_of_a_scheme_add_up(problem):
    truth, train, scores = problem
    bins = frequency_bins(train.sum(axis=0))
    frame = evaluate(TopK.from_dense(scores, 6), csr(truth), csr(train), bins=bins).frame()
    for _, part in frame[frame.metric != "Cov"].groupby(["metric", "k"]):
        by_bin = part.set_index("bin")["numerator"]
        assert by_bin[list(PARTS)].sum() == pytest.approx(by_bin["all"])
        assert by_bin[[*DECILES, "unseen"]].sum() == pytest.approx(by_bin["all"])
        assert by_bin["once"] <= by_bin["all"] + 1e-12


def test_a_bin_holds_the_hits_of_its_own_labels():
    truth = csr([[1, 0, 1], [0, 1, 1]])
    train = csr([[1, 1, 0]] * 3 + [[1, 0, 0]])
    top = TopK.from_dense(np.array([[3, 2, 1], [3, 1, 2]]), k=1)
    bins = frequency_bins(label_counts(train))
    assert bins.sizes()["unseen"] == 1
    frame = evaluate(top, truth, train, ks=(1,), bins=bins).frame().set_index(["metric", "bin"])
    assert frame.loc[("P", "head"), "value"] == pytest.approx(50)
    assert frame.loc[("P", "unseen"), "value"] == 0


def test_frequency_bins_follow_the_counts():
    counts = np.array([5, 0, 1, 100, 1, 2, 3, 4, 6, 7, 8])
    bins = frequency_bins(counts)
    assert bins.members("head").tolist() == [3]
    assert bins.members("unseen").tolist() == [1]
    assert bins.members("once").tolist() == [2, 4]
    assert bins.members("decile 10").tolist() == [4]
    assert bins.members("tail").tolist() == [2, 4, 5, 6, 7]
    assert bins.sizes()["torso"] == 4


@settings(deadline=None, max_examples=40)
@given(problem=problems())
def test_f1_equals_sklearn(problem):
    truth, train, scores = problem
    n_labels = truth.shape[1]
    assume(n_labels > 1)  # one column is binary to sklearn, which then counts negatives too
    top = TopK.from_dense(scores, k=n_labels)
    values = evaluate(top, csr(truth), csr(train), ks=(1,), threshold=0.25).values()
    predicted = (scores > 0.25).astype(int)
    if truth.any() or predicted.any():
        micro = f1_score(truth, predicted, average="micro", zero_division=0)
        assert values["microF1"] == pytest.approx(100 * micro)
        assert values["batchF1"] == pytest.approx(100 * micro)  # one short batch
    present = np.flatnonzero(truth.any(axis=0))
    if len(present):
        macro = f1_score(truth[:, present], predicted[:, present], average="macro", zero_division=0)
        if len(present) > 1:
            assert values["macroF1"] == pytest.approx(100 * macro)


def test_batch_f1_is_the_mean_of_whole_batches():
    rng = np.random.default_rng(3)
    truth = (rng.random((200, 5)) < 0.4).astype(int)
    scores = rng.random((200, 5))
    top = TopK.from_dense(scores, k=5)
    values = evaluate(top, csr(truth), csr(truth), threshold=0.5).values()
    by_batch = [
        f1_score(truth[s : s + 90], scores[s : s + 90] > 0.5, average="micro") for s in (0, 90)
    ]
    assert values["batchF1"] == pytest.approx(100 * np.mean(by_batch))


def test_f1_refuses_a_ranking_that_ends_above_the_threshold():
    top = TopK.from_dense(np.array([[3.0, 2.0, 1.0]] * 4), k=2)
    with pytest.raises(ValueError, match="predict more than 2 labels"):
        evaluate(top, csr([[1, 0, 1]] * 4), csr([[1, 0, 1]] * 4), ks=(1,), threshold=0.5)


def test_saved_evaluations_come_back_and_their_bytes_are_stable(tmp_path):
    rng = np.random.default_rng(0)
    truth = csr(rng.random((20, 7)) < 0.3)
    evaluation = evaluate(
        TopK.from_dense(rng.random((20, 7)), 7),
        truth,
        truth,
        bins=frequency_bins(label_counts(truth)),
        threshold=0.5,
    )
    evaluation.save(tmp_path / "a.npz")
    again = Evaluation.load(tmp_path / "a.npz")
    again.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert again.values() == evaluation.values()
    assert again.frame().equals(evaluation.frame())


def test_unsorted_rows_repeats_and_stored_zeros_do_not_matter():
    clean = csr([[0, 1, 1], [1, 0, 0], [0, 0, 0]])
    messy = sparse.csr_matrix(
        (np.array([1.0, 1.0, 1.0, 1.0, 0.0]), np.array([2, 1, 2, 0, 1]), np.array([0, 3, 5, 5])),
        shape=(3, 3),
    )
    before = messy.data.copy()
    top = TopK.from_dense(np.array([[1.0, 2, 3]] * 3), k=3)
    assert score(top, messy, messy) == score(top, clean, clean)
    assert np.array_equal(messy.data, before)


def test_read_only_memory_maps_are_scored(tmp_path):
    truth = csr(np.random.default_rng(1).random((6, 5)) < 0.5)
    np.save(tmp_path / "i.npy", truth.indices)
    mapped = truth.copy()
    mapped.indices = np.load(tmp_path / "i.npy", mmap_mode="r")
    top = TopK.from_dense(np.random.default_rng(2).random((6, 5)), k=5)
    assert score(top, mapped, truth) == score(top, truth, truth)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a["indices"].__setitem__((0, 1), 0), "row 0 of the ranking holds label 0 twice"),
        (lambda a: a["indices"].__setitem__((1, 1), 9), "holds label 9 which is none of the 4"),
        (lambda a: a.update(ks=(5, 1), indices=a["indices"][:, :1]), "needs 4 ranked labels"),
        (lambda a: a.update(ks=(0,)), "positive integers"),
        (lambda a: a.update(train=csr(np.ones((5, 3)))), "4 columns, training labels 3"),
        (lambda a: a.update(truth=csr(np.ones((3, 4)))), "2 rows are ranked but 3 rows"),
        (lambda a: a.update(convention="nosuch"), "no convention 'nosuch'; there are aplc"),
        (lambda a: a.update(train=csr(np.ones((2, 4)))), "at least 3 documents"),
    ],
)
def test_bad_input_is_named(change, message):
    given_ = {
        "indices": np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.int32),
        "truth": csr([[1, 0, 0, 1], [0, 1, 0, 0]]),
        "train": csr(np.ones((5, 4))),
        "ks": (1, 3),
        "convention": "xc-matlab",
    }
    change(given_)
    top = SimpleNamespace(
        indices=given_["indices"], scores=np.zeros(given_["indices"].shape, np.float32)
    )
    with pytest.raises(ValueError, match=message):
        score(
            top,
            given_["truth"],
            given_["train"],
            ks=given_["ks"],
            convention=given_["convention"],
        )


@pytest.mark.parametrize("meta", [{}, {"A": 0.6, "B": 2.6}])
def test_a_split_knows_its_inverse_propensities(meta):
    truth = [[1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 1]]
    train = Split(Inputs(texts=["a", "b", "c", "d"]), csr(truth), meta)
    A, B = meta.get("A", 0.55), meta.get("B", 1.5)
    expected = dense_metrics.weights(truth, A, B, drop_empty=False)
    assert train.inverse_propensity() == pytest.approx(expected)
