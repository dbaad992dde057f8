"""The embedding model: layers, losses and steps against plain dense computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.data import load
from benchmarks.data.split import Inputs, Split
from methods import get
from methods.embedding.bag import WordVectors, bag, column_squares, thinned, update_rows
from methods.embedding.losses import PickedScores, hardest, margin_loss, softmax_loss
from methods.embedding.network import Network, TouchedLabels
from methods.embedding.training import Batches, Settings, batch_loss
from methods.hooks.regulariser import Regulariser

pytestmark = pytest.mark.slow  # compiles the kernels

N, WORDS, DIM, LABELS = 9, 20, 11, 6


def documents(seed: int, rows: int = N) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    return sparse.random(rows, WORDS, density=0.4, format="csr", dtype=np.float32, rng=rng)


def gaussian(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_bag_is_the_product(seed: int) -> None:
    X, vectors = documents(seed), gaussian(seed + 1, WORDS, DIM)
    np.testing.assert_allclose(bag(X, vectors), X.toarray() @ vectors, rtol=1e-4, atol=1e-5)


def test_an_update_is_row_wise_adagrad_on_the_dense_gradient() -> None:
    words = WordVectors(gaussian(0, WORDS, DIM), measured=True)
    plain, sums = words.vectors.astype(np.float64), np.zeros(WORDS)
    for step in range(3):
        X, gradient = documents(step), gaussian(step + 10, N, DIM)
        X[:, 4] = 0  # a word that never occurs stays as it is
        X.eliminate_zeros()
        dense = X.toarray().T.astype(np.float64) @ gradient
        sums += (dense**2).mean(axis=1)
        moved = sums > 0
        plain[moved] -= 0.1 * dense[moved] / (np.sqrt(sums[moved]) + 1e-8)[:, None]
        words.update(X, gradient, 0.1)
    np.testing.assert_allclose(words.vectors, plain, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(words.vectors[4], gaussian(0, WORDS, DIM)[4])
    np.testing.assert_allclose(words.squares, column_squares(words.vectors), rtol=1e-5)


def test_only_the_rows_given_move_and_stay_of_unit_length() -> None:
    rows = gaussian(0, LABELS, DIM)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    before = rows.copy()
    update_rows(
        rows, np.zeros(LABELS, np.float32), np.array([1, 4]), gaussian(1, 2, DIM), 0.1, True
    )
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-5)
    assert (rows != before).any(axis=1).tolist() == [False, True, False, False, True, False]


def test_dropout_keeps_values_and_a_share_of_them() -> None:
    X = sparse.random(
        50, 400, density=0.5, format="csr", dtype=np.float32, rng=np.random.default_rng(0)
    )
    kept = thinned(X, 0.8, np.random.default_rng(1))
    assert kept.nnz / X.nnz == pytest.approx(0.8, abs=0.02)
    difference = X - kept
    assert difference.multiply(kept).nnz == 0, "each value is kept as it is, or gone"
    assert kept.has_sorted_indices
    assert thinned(X, 1.0, np.random.default_rng(1)) is X


def test_margin_loss_by_loops() -> None:
    """GLaS eq. 1 with one positive: the sum over negatives, the mean over documents."""
    positive, negative = gaussian(0, 4), gaussian(1, 4, 5)
    carried = np.random.default_rng(2).random((4, 5)) < 0.3
    total = sum(
        max(0.0, float(negative[i, j] - positive[i] + 0.5))
        for i in range(4)
        for j in range(5)
        if not carried[i, j]
    )
    found = margin_loss(*map(torch.from_numpy, (positive, negative, carried)), 0.5)
    assert float(found) == pytest.approx(total / 4, rel=1e-5)


def test_softmax_loss_by_loops() -> None:
    positive, negative = gaussian(0, 4).astype(float), gaussian(1, 4, 5).astype(float)
    carried = np.random.default_rng(2).random((4, 5)) < 0.3
    total = 0.0
    for i in range(4):
        others = [np.exp(negative[i, j]) for j in range(5) if not carried[i, j]]
        total -= np.log(np.exp(positive[i]) / (np.exp(positive[i]) + sum(others)))
    found = softmax_loss(*map(torch.from_numpy, (positive, negative, carried)))
    assert float(found) == pytest.approx(total / 4)


def test_mined_negatives_are_the_largest_scores_that_are_not_carried() -> None:
    X, V = torch.from_numpy(gaussian(0, N, DIM)), torch.from_numpy(gaussian(1, LABELS, DIM))
    carried = torch.zeros(N, LABELS, dtype=torch.bool)
    carried[0, :5] = True
    scores = (X @ V.T).masked_fill(carried, -torch.inf)
    picked, out = hardest(X, V, carried, 3)
    for i in range(1, N):
        assert set(picked[i].tolist()) == set(scores[i].topk(3).indices.tolist())
        assert not out[i].any()
    assert out[0].sum() == 2  # one label is left for it


def test_picked_scores_and_their_gradient_are_those_of_the_full_product() -> None:
    X = torch.from_numpy(gaussian(0, N, DIM)).requires_grad_()
    V = torch.from_numpy(gaussian(1, LABELS, DIM)).requires_grad_()
    picked = np.random.default_rng(2).integers(0, LABELS, (N, 3))
    weights = torch.from_numpy(gaussian(3, N, 3))
    full = (X @ V.T).gather(1, torch.from_numpy(picked))
    found = PickedScores.apply(X, V, picked)
    torch.testing.assert_close(found, full)
    expected = torch.autograd.grad((full * weights).sum(), (X, V))
    for ours, theirs in zip(
        torch.autograd.grad((found * weights).sum(), (X, V)), expected, strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def network(**flags: object) -> Network:
    made = Network.random(WORDS, LABELS, DIM, 0, np.random.default_rng(0), **flags)
    made.words.vectors[:] = gaussian(5, WORDS, DIM)
    return made


def a_batch(settings: Settings) -> Batches:
    labels = sparse.csr_matrix(np.random.default_rng(4).random((N, LABELS)) < 0.3, dtype=np.float32)
    labels[0, 0] = 1.0
    return Batches(documents(7), labels.tocsr(), settings, np.random.default_rng(0))


SETTINGS = {
    "margin": Settings("margin", 0.4, 0, 0, 1.0, N, 0.1, False),
    "mined": Settings("margin", 0.4, 0, 2, 1.0, N, 0.1, False),
    "softmax": Settings("softmax", 0.0, 0, 0, 1.0, N, 0.1, False),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_step_follows_the_gradient_by_finite_differences(name: str) -> None:
    """Of the whole loss in every word vector and label, the penalty included."""
    made = network()
    batches = a_batch(SETTINGS[name])
    batch = batches.of(batches.documents)
    regulariser = penalty(batches.labels)

    def loss() -> tuple[torch.Tensor, torch.Tensor, TouchedLabels]:
        sums = torch.from_numpy(bag(batch.X, made.words.vectors)).requires_grad_()
        labels = TouchedLabels(made)
        return batch_loss(made, sums, labels, batch, SETTINGS[name], [regulariser]), sums, labels

    value, sums, labels = loss()
    value.backward()
    assert sums.grad is not None
    of_words = batch.X.toarray().T @ sums.grad.numpy()
    of_labels = np.zeros_like(made.labels)
    for asked, rows in labels._asked:
        assert rows.grad is not None
        np.add.at(of_labels, asked.numpy(), rows.grad.numpy())
    rng = np.random.default_rng(1)
    for array, gradient in ((made.words.vectors, of_words), (made.labels, of_labels)):
        direction = rng.standard_normal(array.shape).astype(np.float32)
        if array is made.labels:  # rows have length 1: stay on the sphere
            direction -= (direction * array).sum(axis=1, keepdims=True) * array
        before, h = array.copy(), 2e-3
        ends = []
        for sign in (1, -1):
            array[:] = before + sign * h * direction
            ends.append(float(loss()[0].detach()))
        array[:] = before
        slope = (ends[0] - ends[1]) / (2 * h)
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=0.03, abs=2e-3)


def penalty(labels: sparse.csr_matrix) -> Regulariser:
    from methods.variants.label_geometry import GLaS

    split = Split(Inputs(bow=sparse.csr_matrix(np.ones((labels.shape[0], 1)))), labels)
    return GLaS().regulariser(split, seed=0)


def test_weight_normalisation_leaves_out_nothing_but_the_length_of_columns() -> None:
    """Our gradient and the exact one agree but for a part along each column of the weights."""
    made = network(weight_norm=True, unit=False, relu=True)
    made.words.squares[:] = column_squares(made.words.vectors)
    X = documents(3)
    target = torch.from_numpy(gaussian(8, N, DIM))
    W = torch.from_numpy(made.words.vectors.copy()).requires_grad_()
    dense = torch.from_numpy(X.toarray())
    exact = ((dense @ (W / W.norm(dim=0))).relu() * target).sum()
    (theirs,) = torch.autograd.grad(exact, W)
    sums = torch.from_numpy(bag(X, made.words.vectors)).requires_grad_()
    value = (made.embed_sums(sums) * target).sum()
    assert float(value.detach()) == pytest.approx(float(exact.detach()), rel=1e-4)
    value.backward()
    assert sums.grad is not None
    ours = dense.T @ sums.grad
    unit = (W / W.norm(dim=0)).detach()
    ours = ours - unit * (ours * unit).sum(dim=0)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_batches_draw_labels_of_the_documents_and_negatives_that_occur() -> None:
    labels = sparse.csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], np.float32))
    settings = Settings("margin", 0.4, 1, 0, 1.0, 2, 0.1, False)
    batches = Batches(documents(1, 3), labels, settings, np.random.default_rng(0))
    assert batches.documents.tolist() == [0, 2]  # one has no label
    seen = set()
    for _ in range(50):
        batch = batches.of(batches.documents)
        assert batch.positives[1] == 1
        assert batch.negatives[0] in (0, 1)
        assert batch.carried[0].all()  # both negatives that can be drawn are its labels
        seen |= set(batch.positives[:1])
    assert seen == {0, 1}
    every = Batches(documents(1, 3), labels, SETTINGS["margin"], np.random.default_rng(0))
    carried = every.of(every.documents).carried
    assert carried.tolist() == [[True, True, True, True], [False, True, True, True]]


SMALL = {"dim": 16, "epochs": 3, "batch": 32, "rate": 0.1}


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "softmax", "length": 10.0, "weight_norm": True, "negatives": 5},
        {"hidden": 8, "weight_norm": True, "unit": False},
        {"activation": "linear", "mined": 0},
        {"unit": False, "normalize": False, "keep": 1.0, "decay": True},
    ],
)
def test_every_setting_trains_saves_and_loads(params: dict, tmp_path) -> None:
    train, test = load("tiny-bow")
    model = get("Embedding", **{**SMALL, **params}).fit(train, seed=1)
    assert len(model.fit_history["loss"]) == 3
    assert model.fit_history["loss"][-1] < model.fit_history["loss"][0]
    top = model.predict(test.inputs, 5)
    model.save(tmp_path)
    again = type(model).load(tmp_path).predict(test.inputs, 5)
    assert (again.indices == top.indices).all()
    assert (again.scores == top.scores).all()


def test_the_recorded_accuracy_is_that_of_the_final_model() -> None:
    train, _ = load("tiny-bow")
    model = get("Embedding", **SMALL).fit(train, seed=1)
    rows = np.flatnonzero(np.diff(train.labels.indptr))
    best = model.predict(train.inputs.take(rows), 1).indices[:, 0]
    hits = np.asarray(train.labels[rows, best]).ravel() > 0
    assert model.fit_history["train_P@1"] == [pytest.approx(100 * hits.mean())]


@pytest.mark.parametrize("variant", ["GLaS", "spread-out", "Laplacian", "gravity"])
def test_a_strong_penalty_is_lower_after_training_with_it(variant: str) -> None:
    train, _ = load("tiny-bow")
    params = {"weight": 300.0}
    method = get("Embedding", variant, variant_params=params, **SMALL)
    plain = get("Embedding", **SMALL).fit(train, seed=1)
    regularised = method.fit(train, seed=1)
    term = method._change.regulariser(train, 0)
    rows = np.flatnonzero(np.diff(train.labels.indptr))
    labels = torch.from_numpy(train.labels.indices[train.labels.indptr[rows]].astype(np.int64))
    from methods.linear.model import as_unit_rows

    X = as_unit_rows(train.inputs.bow)[rows]
    values = [
        float(term.penalty(torch.from_numpy(m.network.labels), labels, m.network.embed(X)))
        for m in (regularised, plain)
    ]
    assert values[0] < values[1]


def test_search_by_faiss_notes_its_recall() -> None:
    pytest.importorskip("faiss")
    train, test = load("tiny-bow")
    exact = get("Embedding", **SMALL).fit(train, seed=1)
    model = get("Embedding", search="faiss", **SMALL).fit(train, seed=1)
    top, best = model.predict(test.inputs, 3), exact.predict(test.inputs, 3)
    assert top.fault(len(test), test.n_labels, 3) is None
    (note,) = model.notes
    share = np.mean([np.isin(b, a).mean() for a, b in zip(top.indices, best.indices, strict=True)])
    assert note.startswith(f"labels searched by faiss: {100 * share:.2f} % of the exact 3 best")
    assert not exact.notes


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="loss must be one of margin, softmax, not 'hinge'"):
        get("Embedding", loss="hinge")
    with pytest.raises(ValueError, match="keep is a probability"):
        get("Embedding", keep=0.0)
    train, test = load("tiny-bow")
    model = get("Embedding", **SMALL).fit(train)
    with pytest.raises(ValueError, match="features"):
        model.predict(Inputs(bow=test.inputs.bow[:, :-1]), 3)
