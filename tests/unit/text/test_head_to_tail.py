"""HTTN's eqs. 6-12 against a plain rendering with loops, and the identities between methods."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from methods.text import head_to_tail as h2t

D, S = 4, 3


@pytest.fixture
def world():
    """Twelve documents, seven labels (the last without any), representations and draws."""
    rng = np.random.default_rng(5)
    Y = (rng.random((12, 7)) < 0.45).astype(np.float32)
    Y[:, 5], Y[3, 5], Y[:, 6] = 0, 1, 0
    labels = sparse.csr_matrix(Y)
    R = torch.from_numpy(rng.normal(size=(12, D)).astype(np.float32))
    head, tail = h2t.head_and_tail(Y.sum(axis=0), 2)
    return labels, R, head, tail, rng


def plain_prototype(R, rows):
    return [sum(float(R[row][i]) for row in rows) / len(rows) for i in range(D)]


def plain_attention(p, heads):
    """Eq. 10 for one tail prototype and one draw of head prototypes."""
    e = [math.exp(sum(a * b for a, b in zip(p, h, strict=True))) for h in heads]
    alpha = [value / sum(e) for value in e]
    return [sum(a * h[i] for a, h in zip(alpha, heads, strict=True)) for i in range(D)]


def plain_product(W, p):
    return [sum(float(W[i][j]) * p[j] for j in range(D)) for i in range(D)]


def test_the_tail_are_the_rarest_labels_that_occur(world):
    labels, _, head, tail, _ = world
    counts = np.asarray(labels.sum(axis=0)).ravel()
    assert len(tail) == 2
    assert len(head) == 4
    assert counts[6] == 0
    assert 6 not in [*head, *tail]
    assert counts[tail].max() <= counts[head].min()


@pytest.mark.parametrize(("l_tail", "tail"), [(1, [3]), (2, [1, 3]), (0.5, [1, 3]), (0.25, [3])])
def test_tail_as_a_number_and_as_a_share(l_tail, tail):
    head, found = h2t.head_and_tail(np.array([9, 2, 5, 1, 0]), l_tail)
    assert found.tolist() == tail
    assert sorted([*head, *found]) == [0, 1, 2, 3]


@pytest.mark.parametrize("l_tail", [4, 9, 0.01, 0])
def test_a_side_without_labels_is_refused(l_tail):
    with pytest.raises(ValueError, match=r"leaves .* both need one"):
        h2t.head_and_tail(np.array([9, 2, 5, 1, 0]), l_tail)


def test_draws_are_documents_of_the_label(world):
    labels, _, _, tail, rng = world
    documents = h2t.Documents(labels, tail)
    for _ in range(20):
        for label, rows in zip(tail, documents.draw(3, rng), strict=True):
            assert len(set(rows.tolist())) == min(3, int(labels[:, label].sum()))
            assert (labels[rows, label].toarray() == 1).all()


def test_prototypes_transfer_and_attention_equal_a_plain_rendering(world):
    labels, R, head, tail, rng = world
    head_draws = [h2t.Documents(labels, head).draw(2, rng) for _ in range(S)]
    tail_draw = h2t.Documents(labels, tail).draw(2, rng)
    P_head = torch.stack([h2t.prototypes(R, drawn) for drawn in head_draws])
    P_tail = h2t.prototypes(R, tail_draw)
    W = torch.from_numpy(rng.normal(size=(D, D)).astype(np.float32))
    M_head = torch.from_numpy(rng.normal(size=(len(head), D)).astype(np.float32))

    plain_heads = [[plain_prototype(R, rows) for rows in drawn] for drawn in head_draws]
    np.testing.assert_allclose(P_head, plain_heads, rtol=1e-5, atol=1e-6)
    rows = []
    for z, drawn in enumerate(tail_draw):
        p = plain_prototype(R, drawn)
        np.testing.assert_allclose(P_tail[z], p, rtol=1e-5, atol=1e-6)
        by_draw = [plain_attention(p, heads) for heads in plain_heads]
        att = [sum(term[i] for term in by_draw) / S for i in range(D)]
        new = [(a + b) / 2 for a, b in zip(att, p, strict=True)]
        rows.append(plain_product(W, new))
    M_tail = h2t.tail_rows(P_tail, W, P_head)
    np.testing.assert_allclose(M_tail, rows, rtol=1e-4, atol=1e-5)

    M = h2t.assembled(7, head, M_head, tail, M_tail)
    assert torch.isnan(M[6]).all()
    assert torch.equal(M[torch.from_numpy(tail)], M_tail)
    scores = h2t.probabilities(R, [M])
    expected = [
        [
            1 / (1 + math.exp(-sum(float(a) * float(b) for a, b in zip(r, m, strict=True))))
            for m in M
        ]
        for r in R
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-4)


def test_the_released_code_divides_attention_by_the_number_of_head_labels(world):
    labels, R, head, tail, rng = world
    P_head = torch.stack([h2t.prototypes(R, h2t.Documents(labels, head).draw(2, rng))])
    P_head = P_head.repeat(S, 1, 1)
    P_tail = h2t.prototypes(R, h2t.Documents(labels, tail).draw(2, rng))
    usual = 2 * h2t.attended(P_tail, P_head) - P_tail
    released = 2 * h2t.attended(P_tail, P_head, divisor=len(head)) - P_tail
    torch.testing.assert_close(released, usual * S / len(head))


def test_attention_by_cosine_does_not_depend_on_the_prototypes_lengths(world):
    labels, R, head, tail, rng = world
    P_head = torch.stack([h2t.prototypes(R, h2t.Documents(labels, head).draw(2, rng))])
    P_tail = h2t.prototypes(R, h2t.Documents(labels, tail).draw(2, rng))
    of_head, of_tail = (P / P.norm(dim=-1, keepdim=True) for P in (P_head, P_tail))
    weights = torch.softmax(of_tail @ of_head[0].T, dim=1)
    found = h2t.attended(P_tail, P_head, cosine=True)
    torch.testing.assert_close(found, (weights @ P_head[0] + P_tail) / 2)
    longer = h2t.attended(50 * P_tail, P_head, cosine=True)
    torch.testing.assert_close(2 * longer - 50 * P_tail, 2 * found - P_tail, rtol=1e-3, atol=1e-3)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_the_transfer_learner_is_at_the_minimum_of_eq_7(seed):
    rng = np.random.default_rng(seed)
    P = torch.from_numpy(rng.normal(size=(5, 6, D)))
    M = torch.from_numpy(rng.normal(size=(6, D)))
    W = h2t.least_squares_transfer(P, M).requires_grad_()
    loss = sum(((m - W @ p) ** 2).sum() for draw in P for m, p in zip(M, draw, strict=True))
    loss.backward()
    assert W.grad.abs().max() < 1e-3


def test_descent_comes_near_the_minimum():
    rng = np.random.default_rng(0)
    P = torch.from_numpy(rng.normal(size=(20, 30, D)).astype(np.float32))
    W = torch.from_numpy(rng.normal(size=(D, D)).astype(np.float32))
    M = P.mean(dim=0) @ W.T
    best, found = h2t.least_squares_transfer(P, M), h2t.descent_transfer(P, M, 0.01, 60, seed=1)
    assert (found - best).abs().max() < 0.05
    assert torch.equal(found, h2t.descent_transfer(P, M, 0.01, 60, seed=1))


def test_a_true_linear_map_is_found_and_carries_over_to_unseen_prototypes():
    rng = np.random.default_rng(3)
    W = torch.from_numpy(rng.normal(size=(D, D)).astype(np.float32))
    P = torch.from_numpy(rng.normal(size=(1, 9, D)).astype(np.float32))
    found = h2t.least_squares_transfer(P, P[0] @ W.T)
    unseen = torch.from_numpy(rng.normal(size=(3, D)).astype(np.float32))
    torch.testing.assert_close(h2t.tail_rows(unseen, found), unseen @ W.T, rtol=1e-3, atol=1e-3)


def test_with_identity_and_no_attention_tail_rows_are_imprinted_ones_up_to_their_length(world):
    labels, R, _, tail, rng = world
    drawn = h2t.Documents(labels, tail).draw(2, rng)
    unit = torch.nn.functional.normalize(R, dim=1)
    rows = h2t.tail_rows(h2t.prototypes(unit, drawn), torch.eye(D))
    imprinted = h2t.prototypes(unit, drawn, unit=True)
    torch.testing.assert_close(rows / rows.norm(dim=1, keepdim=True), imprinted)


def test_fine_tuning_lowers_the_loss_and_leaves_unknown_labels_unknown(world):
    labels, R, head, tail, rng = world
    M = h2t.assembled(7, head, torch.zeros(len(head), D), tail, torch.zeros(len(tail), D))
    Y = torch.from_numpy(labels.toarray())

    def loss(M):
        return torch.nn.functional.binary_cross_entropy_with_logits(R @ M[:6].T, Y[:, :6])

    tuned = h2t.fine_tuned(M, R, Y, rate=0.01, epochs=5, batch=4, rng=rng)
    assert loss(tuned) < loss(M)
    assert torch.isnan(tuned[6]).all()
    same = h2t.fine_tuned(M, R, Y, rate=0.01, epochs=0, batch=4, rng=rng)
    torch.testing.assert_close(same, M, equal_nan=True)


def test_an_ensemble_is_the_mean_of_its_members_probabilities(world):
    _, R, _, _, rng = world
    members = [torch.from_numpy(rng.normal(size=(3, D)).astype(np.float32)) for _ in range(4)]
    expected = sum(torch.sigmoid(R @ M.T) for M in members) / 4
    torch.testing.assert_close(h2t.probabilities(R, members), expected)
