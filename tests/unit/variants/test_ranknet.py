"""RankNet: its loss against a double loop, its gradients against differences, its ranking."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.propensity import inverse_propensity
from benchmarks.evaluation.topk import TopK
from methods import get
from methods._kernels.random import stream
from methods._kernels.topk import reordered
from methods.interface import FitContext
from methods.registry import MisfitError
from methods.variants import ranknet_core as core
from methods.variants.ranknet import NetworkModel, RankNet, SimpleModel, as_probability
from tests.unit.trees.test_label_trees import corpus

pytestmark = pytest.mark.slow  # compiles the forests' kernels


def plain_loss(F, positive, negative, n, trade_off, margin) -> float:
    """RankNet+Taug sec. 3.2, written as printed."""
    population = sum(
        max(0.0, (n[i] - n[j]) / (n[i] + n[j]) * (F[i] - F[j])) for i in positive for j in positive
    )
    accuracy = sum(max(0.0, F[k] - F[i] + margin) for i in positive for k in negative)
    return population + trade_off * accuracy


def test_loss_equals_a_plain_double_loop() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        F = rng.standard_normal(12)
        places = rng.permutation(12)
        positive, negative = places[:4], places[4:9]
        n = rng.integers(1, 50, 12).astype(float)
        slope = np.empty(12)
        got = core.pair_loss(F, positive, negative, n, 0.7, 0.2, slope)
        assert got == pytest.approx(plain_loss(F, positive, negative, n, 0.7, 0.2))


def test_the_rarer_of_two_labels_is_pushed_up() -> None:
    slope = np.empty(2)
    loss = core.pair_loss(
        np.array([0.9, 0.1]), np.array([0, 1]), np.empty(0, np.int64), np.array([100.0, 1.0]),
        1.0, 0.1, slope,
    )  # fmt: skip
    assert loss > 0
    assert slope[0] > 0 > slope[1]  # descent lowers the frequent and lifts the rare label


class Setting:
    """A document of 6 candidates among 9 labels, two blocks, weights away from zero."""

    def __init__(self, form: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.form = form
        self.labels = np.array([7, 2, 5, 0, 8, 3], np.int32)
        self.y = rng.random(6)
        self.place = np.full(9, -1, np.int32)
        self.place[self.labels] = np.arange(6)
        self.indptr = np.arange(0, 82, 9)
        self.columns = np.tile(np.arange(9), 9).astype(np.int32)
        self.W = rng.standard_normal((2, 81)) * 0.3
        self.W1 = rng.standard_normal((2, 9, 4)) * 0.5
        self.W2 = rng.standard_normal((2, 9, 4)) * 0.5
        self.positive, self.negative = np.array([1, 4, 5]), np.array([0, 2, 3])
        self.frequency = rng.integers(1, 40, 6).astype(float)

    def loss(self) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        layers, hidden, slope = np.empty((3, 6)), np.zeros((2, 4)), np.empty(6)
        core.forward(
            self.form, self.y, self.labels, self.place, self.indptr, self.columns, self.W,
            self.W1, self.W2, layers, hidden,
        )  # fmt: skip
        value = core.pair_loss(
            layers[2], self.positive, self.negative, self.frequency, 0.8, 0.3, slope
        )
        return value, slope, layers, hidden

    def gradients(self) -> dict[str, np.ndarray]:
        _, slope, layers, hidden = self.loss()
        out = {name: np.zeros_like(getattr(self, name)) for name in ("W", "W1", "W2")}
        core.backward(
            self.form, slope, self.labels, self.place, self.indptr, self.columns, self.W,
            self.W1, self.W2, out["W"], out["W1"], out["W2"], layers, hidden, 0.0,
        )  # fmt: skip
        return out


@pytest.mark.parametrize(
    ("form", "names"), [(core.RESIDUAL, ["W"]), (core.BOTTLENECK, ["W1", "W2"])]
)
def test_gradients_equal_finite_differences(form: int, names: list[str]) -> None:
    setting = Setting(form)
    gradients = setting.gradients()
    step = 1e-6
    for name in names:
        parameter = getattr(setting, name)
        for at in np.ndindex(parameter.shape):
            kept = parameter[at]
            parameter[at] = kept + step
            up = setting.loss()[0]
            parameter[at] = kept - step
            down = setting.loss()[0]
            parameter[at] = kept
            numeric = (up - down) / (2 * step)
            assert gradients[name][at] == pytest.approx(numeric, abs=1e-5)
        assert np.abs(gradients[name]).max() > 0.01


def test_residual_block_is_the_matrix_formula() -> None:
    setting = Setting(core.RESIDUAL)
    _, _, layers, _ = setting.loss()
    y = np.zeros(9)
    y[setting.labels] = setting.y
    F = setting.W[0].reshape(9, 9) @ y + y
    np.testing.assert_allclose(layers[1], F[setting.labels])


def test_bottleneck_block_is_the_matrix_formula() -> None:
    setting = Setting(core.BOTTLENECK)
    _, _, layers, _ = setting.loss()
    y = np.zeros(9)
    y[setting.labels] = setting.y
    F = setting.W2[0] @ np.maximum(setting.W1[0].T @ y, 0) + y
    np.testing.assert_allclose(layers[1], F[setting.labels])


@pytest.mark.parametrize("form", ["residual", "bottleneck"])
def test_without_training_the_ranking_is_the_bases(form: str) -> None:
    train = corpus()
    base = get("Parabel", max_leaf=4).fit(train, seed=0).predict(train.inputs, 10)
    method = get("Parabel", "RankNet", max_leaf=4, variant_params={"epochs": 0, "form": form})
    top = method.fit(train, seed=0).predict(train.inputs, 10)
    np.testing.assert_array_equal(top.indices, base.indices)
    np.testing.assert_allclose(top.scores, base.scores, rtol=1e-6)


@pytest.mark.parametrize("form", ["residual", "bottleneck"])
def test_training_lowers_the_loss_and_keeps_the_candidates(form: str) -> None:
    train = corpus(n=300)
    method = get("Parabel", "RankNet", max_leaf=4, variant_params={"epochs": 6, "form": form})
    model = method.fit(train, seed=0)
    assert model.history[-1] < model.history[0]
    top = model.predict(train.inputs, 100)
    assert top.fault(len(train), train.n_labels) is None
    base = model.base.predict(train.inputs, 100)
    np.testing.assert_array_equal(np.sort(top.indices, axis=1), np.sort(base.indices, axis=1))


def test_same_seed_same_network_whatever_the_threads() -> None:
    train = corpus()
    models = [get("Parabel", "RankNet", max_leaf=4).fit(train, seed=2, threads=t) for t in (1, 2)]
    np.testing.assert_array_equal(models[0].W, models[1].W)


def test_scores_to_learn_from_are_of_documents_the_base_did_not_see() -> None:
    n = 21
    # Document i is feature i alone, so that a matrix says which documents it holds.
    train = Split(Inputs(bow=sparse.identity(n, format="csr")), sparse.csr_matrix((n, 3)))
    asked_for: list[int] = []

    class Answer:
        def __init__(self, fitted: set[int]) -> None:
            self.fitted = fitted

        def predict(self, inputs: Inputs, k: int) -> TopK:
            asked = inputs.bow.indices.tolist()
            assert not self.fitted & set(asked)
            assert len(self.fitted) + len(asked) == n
            asked_for.extend(asked)
            return TopK.empty(len(inputs), k)

    class Base:
        def fit_in(self, split: Split, context: FitContext) -> Answer:
            return Answer(set(split.inputs.bow.indices.tolist()))

    RankNet(n_folds=4).held_out(Base(), train, FitContext(seed=0))
    assert sorted(asked_for) == list(range(n))


def test_simple_form_is_the_score_times_the_inverse_propensity() -> None:
    train = corpus()
    model = get("Parabel", "RankNet-simple", max_leaf=4).fit(train)
    base = model.base.predict(train.inputs, 100).to_sparse(train.n_labels).toarray()
    expected = base * inverse_propensity(train.label_counts(), len(train))
    got = model.predict(train.inputs, 100).to_sparse(train.n_labels).toarray()
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_margins_become_probabilities_before_they_are_scaled() -> None:
    top = TopK(np.array([[3, 1, -1]], np.int32), np.array([[2.0, -1.0, -np.inf]], np.float32))
    np.testing.assert_allclose(as_probability(top, "auto"), [[1.0, np.exp(-4.0), 0.0]])
    np.testing.assert_allclose(as_probability(top, "identity"), [[2.0, -1.0, 0.0]])


def test_reordering_breaks_ties_by_the_lower_label() -> None:
    top = reordered(np.array([[4, 2, 9, -1]]), np.array([[1.0, 1.0, 2.0, 5.0]]), 4)
    assert top.indices.tolist() == [[9, 2, 4, -1]]


def test_a_control_cannot_be_re_ranked() -> None:
    with pytest.raises(MisfitError, match="looks at no document"):
        get("popularity", "RankNet")


@pytest.mark.parametrize(
    "wrong", [{"form": "deep"}, {"scores": "test"}, {"link": "tanh"}, {"n_folds": 1}]
)
def test_wrong_parameters_are_named(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RankNet(**wrong)


def test_neighbours_are_the_labels_proposed_together_most_often() -> None:
    candidates = np.array([[0, 1, 2], [0, 1, -1], [0, 3, 1]], np.int32)
    pattern = core.neighbour_pattern(candidates, 5, 1)
    rows = [pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]].tolist() for i in range(5)]
    assert rows == [[0, 1], [0, 1], [0, 2], [0, 3], [4]]


@pytest.mark.parametrize(
    ("variant", "kind"), [("RankNet", NetworkModel), ("RankNet-simple", SimpleModel)]
)
def test_save_and_load(variant: str, kind, tmp_path) -> None:
    train = corpus()
    model = get("Bonsai", variant, n_children=5).fit(train)
    model.save(tmp_path)
    again = kind.load(tmp_path)
    a, b = (m.predict(train.inputs, 7) for m in (model, again))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.scores, b.scores)


def test_negatives_are_candidates_that_are_not_labels_and_not_exempt() -> None:
    out = np.empty(10, np.int64)
    labels = np.array([7, 2, 5, 8, 0, 6], np.int32)
    exempt = np.zeros(9, bool)
    for seed in range(20):
        n = core._draw_negatives(np.array([1, 3]), labels, exempt, 3, out, stream(seed))
        assert n == 3
        assert len(set(out[:3])) == 3
        assert not set(out[:3]) & {1, 3}
    assert core._draw_negatives(np.array([1, 3]), labels[:4], exempt, 30, out, stream(0)) == 2
    exempt[[5, 0]] = True  # at positions 2 and 4
    assert core._draw_negatives(np.array([1, 3]), labels, exempt, 30, out, stream(0)) == 2
    assert set(out[:2]) == {0, 5}


def test_a_label_of_one_document_keeps_the_score_of_its_base() -> None:
    train = corpus()
    rows = np.flatnonzero(train.labels[:, 3].toarray().ravel())
    labels = train.labels.tolil()
    labels[rows[1:], 3] = 0  # one document is left
    train = Split(train.inputs, sparse.csr_matrix(labels))
    ranknet = RankNet(n_folds=3)
    exempt = ranknet.never_positive(train, seed=4)
    assert exempt[3]
    fold = ranknet._folds(len(train), 4)
    for label in range(train.n_labels):  # written out: the folds that hold a label's documents
        documents = np.flatnonzero(train.labels[:, label].toarray().ravel())
        assert exempt[label] == (len(set(fold[documents])) < 2)
    model = RankNet(rate=0.1).apply(get("Parabel", max_leaf=4)).fit(train, seed=4)
    top = model.base.predict(train.inputs, 100)
    before, after = as_probability(top, model.link), model.rescore(top)
    single = top.indices == 3
    assert single.any()
    np.testing.assert_array_equal(after[single], before[single])
    assert not np.array_equal(after, before)
