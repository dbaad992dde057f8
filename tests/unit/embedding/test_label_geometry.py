"""GLaS, spread-out, Laplacian, gravity against double loops over all pairs of labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from methods.hooks import Hooks
from methods.hooks.regulariser import Regulariser
from methods.variants.label_geometry import (
    GLaS,
    Gravity,
    GravityPairs,
    LabelGeometry,
    Laplacian,
    SpreadOut,
    adjacency,
)

K, D = 7, 3
VARIANTS = (GLaS, SpreadOut, Laplacian, Gravity)


def some_labels(seed: int, n: int = 12) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = (rng.random((n, K)) < 0.3).astype(np.float32)
    dense[0, 0] = 1.0
    dense[:, K - 1] = 0.0  # a label without a document
    return sparse.csr_matrix(dense)


def dense_adjacency(labels: sparse.csr_matrix) -> np.ndarray:
    Y = labels.toarray()
    U = np.zeros((K, K))
    for a, b in itertools.product(range(K), repeat=2):
        both = sum(1.0 for row in Y if row[a] and row[b])
        first, second = Y[:, a].sum(), Y[:, b].sum()
        U[a, b] = 0.5 * (both / first + both / second) if both else 0.0
    return U


def unit(seed: int, rows: int = K) -> torch.Tensor:
    drawn = torch.randn(rows, D, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    return torch.nn.functional.normalize(drawn, dim=1)


def penalty_of(kind: type, labels: sparse.csr_matrix, **params: object) -> LabelGeometry:
    return kind(**params).regulariser(labels_as_split(labels), seed=0)


def labels_as_split(labels: sparse.csr_matrix):
    from benchmarks.data.split import Inputs, Split

    return Split(Inputs(bow=sparse.csr_matrix(np.ones((labels.shape[0], 1)))), labels)


def pair_value(kind: type, v: np.ndarray, w: np.ndarray, u: float) -> float:
    if kind is GLaS:
        return float((v @ w - u) ** 2)
    if kind is SpreadOut:
        return float((v @ w) ** 2)
    return float(((v - w) ** 2).sum() * u)


def plain_sum(kind: type, drawn: list[int], V: np.ndarray, U: np.ndarray) -> float:
    return sum(pair_value(kind, V[a], V[b], U[a, b]) for a in drawn for b in drawn)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_adjacency_is_the_mean_of_conditional_frequencies(seed: int) -> None:
    labels = some_labels(seed)
    found = adjacency(labels)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), dense_adjacency(labels), rtol=1e-6)


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("scale", ["batch", "labels"])
@given(seed=st.integers(0, 10_000), drawn=st.lists(st.integers(0, K - 1), min_size=1, max_size=9))
@settings(max_examples=20, deadline=None)
def test_value_is_the_double_sum_with_repeated_labels(
    kind: type, scale: str, seed: int, drawn: list[int]
) -> None:
    labels = some_labels(seed)
    V, documents = unit(seed), unit(seed + 1, 5)
    term = penalty_of(kind, labels, weight=3.0, scale=scale)
    found = term.penalty(V, torch.tensor(drawn), documents)
    size = len(drawn) if scale == "batch" else K
    if kind is Gravity:
        squares = [float(x @ V[a]) ** 2 for x in documents for a in drawn]
        expected = sum(squares) / (len(documents) * size)
    else:
        expected = plain_sum(kind, drawn, V.numpy(), dense_adjacency(labels)) / size**2
    assert float(found) == pytest.approx(3.0 * expected, rel=1e-5)


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("scale", ["batch", "labels", "unbiased"])
def test_gradients_by_finite_differences(kind: type, scale: str) -> None:
    draw = "uniform" if scale == "unbiased" else "batch"
    term = penalty_of(kind, some_labels(3), weight=2.0, scale=scale, draw=draw)
    raw = torch.randn(K, D, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    documents = unit(5, 4).requires_grad_()
    drawn = np.array([0, 2, 2, 5, 1])

    def value(rows: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        return term.of_draws(drawn, rows, documents)

    assert torch.autograd.gradcheck(value, (raw.requires_grad_(), documents), atol=1e-7)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_laplacian_and_spread_out_are_glas_and_a_constant(seed: int) -> None:
    """GLaS sec. 3.2: for unit vectors the constant is the sum of u^2 - 2u, whatever they are."""
    labels = some_labels(seed)
    U = dense_adjacency(labels)
    everything = torch.arange(K)
    terms = [penalty_of(kind, labels, weight=1.0) for kind in (Laplacian, SpreadOut, GLaS)]
    constant = -(U**2 - 2 * U).sum() / K**2
    for other in (seed, seed + 1):
        V = unit(other)
        laplacian, spread_out, glas = (float(term.penalty(V, everything)) for term in terms)
        assert laplacian + spread_out == pytest.approx(glas + constant, abs=1e-6)


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, K])
def test_uniform_draws_are_unbiased_by_enumeration(kind: type, size: int) -> None:
    """The mean over every set of labels that can be drawn is the sum over all pairs over K^2."""
    labels = some_labels(11)
    V, documents = unit(2), unit(3, 4)
    term = penalty_of(kind, labels, weight=1.0, draw="uniform", scale="unbiased")
    values = [
        float(term.of_draws(np.array(drawn), V, documents))
        for drawn in itertools.combinations(range(K), size)
    ]
    if kind is Gravity:
        whole = float((documents @ V.T).square().mean())
    else:
        whole = plain_sum(kind, list(range(K)), V.numpy(), dense_adjacency(labels)) / K**2
    if size == 1 and kind is not Gravity:  # one label has no pair with another: only the diagonal
        U = dense_adjacency(labels)
        whole = sum(pair_value(kind, v, v, U[i, i]) for i, v in enumerate(V.numpy())) / K**2
    assert np.mean(values) == pytest.approx(whole, rel=1e-6)


def test_the_batch_term_of_algorithm_2_is_not_the_whole_sum() -> None:
    """Labels drawn from documents are the frequent ones: the paper's estimate is biased."""
    labels = some_labels(11)
    V = unit(2)
    term = penalty_of(GLaS, labels, weight=1.0)
    Y = labels.toarray()
    carried = [np.flatnonzero(row) for row in Y if row.any()]
    chance = np.zeros(K)
    for row in carried:
        chance[row] += 1 / len(row) / len(carried)
    mean = sum(
        chance[a] * chance[b] * float(term.of_draws(np.array([a, b]), V))
        for a, b in itertools.product(range(K), repeat=2)
        if chance[a] and chance[b]
    )
    whole = plain_sum(GLaS, list(range(K)), V.numpy(), dense_adjacency(labels)) / K**2
    assert abs(mean - whole) > 0.01


def test_labels_drawn_from_targets_are_carried_and_uniform() -> None:
    term = penalty_of(GLaS, some_labels(1))
    targets = torch.tensor([[1, 0, 1, 0, 0, 1, 0], [0] * 7, [0, 1, 0, 0, 0, 0, 0]])
    draws = np.array([term.draws(targets) for _ in range(3000)])
    assert draws.shape == (3000, 2)  # a row without labels gives none
    assert set(draws[:, 1]) == {1}
    shares = np.bincount(draws[:, 0], minlength=K) / 3000
    np.testing.assert_allclose(shares, [1 / 3, 0, 1 / 3, 0, 0, 1 / 3, 0], atol=0.04)


def test_uniform_labels_are_distinct_and_any_of_all() -> None:
    term = penalty_of(GLaS, some_labels(1), draw="uniform")
    draws = [term.draws(torch.zeros(4, K)) for _ in range(200)]
    assert all(len(set(drawn)) == 4 for drawn in draws)
    assert set(np.concatenate(draws)) == set(range(K))


def test_a_dense_base_may_give_all_targets_and_all_embeddings() -> None:
    """As a label-attention model does: float32 rows of any length, multi-hot targets."""
    term = penalty_of(GLaS, some_labels(4), weight=10.0)
    rows = (5.0 * torch.randn(K, D)).requires_grad_()
    targets = torch.eye(K)[:5]
    loss = term.penalty(rows, targets)
    loss.backward()
    assert rows.grad is not None
    assert bool((rows.grad[:5] != 0).any())
    assert not bool(rows.grad[5:].any())  # labels that were not drawn
    along = (rows.grad * rows).sum(dim=1)
    assert float(along.abs().max()) < 1e-5, "lengths do not matter"


def test_no_label_in_a_batch_is_no_penalty() -> None:
    assert float(penalty_of(GLaS, some_labels(4)).penalty(unit(1), torch.zeros(3, K))) == 0.0


def test_restricted_to_some_labels() -> None:
    labels = some_labels(6)
    chosen = np.array([4, 0, 2])
    whole, part = penalty_of(GLaS, labels), penalty_of(GLaS, labels).of_labels(chosen)
    V = unit(1)
    assert float(part.penalty(V[chosen], torch.arange(3))) == pytest.approx(
        float(whole.penalty(V, torch.from_numpy(chosen))), rel=1e-6
    )


def test_two_penalties_add_up() -> None:
    labels = some_labels(6)
    both = Hooks(penalty_of(Laplacian, labels), penalty_of(SpreadOut, labels)).find(Regulariser)
    assert both is not None
    V, drawn = unit(1), torch.tensor([0, 3, 3])
    single = [penalty_of(kind, labels).penalty(V, drawn) for kind in (Laplacian, SpreadOut)]
    assert float(both.penalty(V, drawn)) == pytest.approx(float(sum(single)))


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="scale must be one of batch, labels, unbiased"):
        GLaS(scale="mean")
    with pytest.raises(ValueError, match="unbiased needs draw: uniform"):
        GLaS(scale="unbiased")
    with pytest.raises(ValueError, match="document embeddings"):
        penalty_of(Gravity, some_labels(1)).penalty(unit(1), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="4 columns, the co-occurrences 7"):
        penalty_of(GLaS, some_labels(1)).penalty(unit(1), torch.ones(2, 4))
    with pytest.raises(NotImplementedError):
        GravityPairs().terms(torch.eye(2), torch.eye(2))
