"""TailMix's pairs and mixed vectors against Algorithm 1 written as the paper prints it."""

import numpy as np
import pytest
import torch
from scipy import sparse

from methods.variants.tailmix_pairs import (
    EveryOtherLabel,
    LabelGraph,
    Rule,
    choose_targets,
    mixed_contexts,
    mixed_targets,
    select,
)

B, L, D, M, ALPHA = 9, 23, 5, 3, 0.4


def batch(seed=3):
    """Labels of a small training set, and contexts and labels of a batch of it."""
    rng = np.random.default_rng(seed)
    everything = (rng.random((60, L)) < 0.12).astype(np.float32)
    everything[:, -1] = 0  # a label that never occurs
    everything[0] = 0
    everything[0, -2] = 1  # one that is always alone
    everything[1:, -2] = 0
    contexts = torch.from_numpy(rng.normal(size=(B, L, D)))
    inverse_p = 1 + rng.random(L) * 4
    return everything, contexts, everything[:B], inverse_p


def algorithm_1(contexts, Y, A, inverse_p, rng, *, sim=True):
    """The paper's loop, one document and one label at a time, on its own copies."""
    C, Y = contexts.clone(), torch.from_numpy(Y.copy()).double()
    pairs = []
    noise = {}
    for i in range(len(Y)):
        for label in np.flatnonzero(Y[i]):
            noise[i, label] = rng.gumbel()
    for i in range(len(Y)):
        left = list(np.flatnonzero(Y[i]))
        chosen = []
        while left and len(chosen) < M:
            # Softmax sampling: the largest of s + Gumbel is a draw by exp(s).
            best = max(left, key=lambda label, i=i: inverse_p[label] + noise[i, label])
            chosen.append(best)
            left.remove(best)
        for label in chosen:
            T = np.flatnonzero(A[label])
            if not len(T):
                continue
            share = rng.beta(ALPHA, ALPHA)
            if sim:
                distances = [float(torch.dist(C[i, label], C[i, j])) for j in T]
                t = int(T[int(np.argmin(distances))])
            else:
                t = int(T[int(rng.random() * len(T))])
            C[i, label] = share * C[i, label] + (1 - share) * C[i, t]
            Y[i, label] = share
            Y[i, t] = 1 - share
            pairs.append((i, int(label), t))
    return C, Y, pairs


@pytest.mark.parametrize("lpg", [True, False])
@pytest.mark.parametrize("sim", [True, False])
def test_selected_pairs_and_mixed_batch_equal_algorithm_1(sim, lpg):
    for seed in range(5):
        everything, contexts, Y, inverse_p = batch(seed)
        A = everything.T @ everything if lpg else np.ones((L, L))
        np.fill_diagonal(A, 0)
        C, targets, pairs = algorithm_1(
            contexts, Y, A, inverse_p, np.random.default_rng(7), sim=sim
        )
        graph = LabelGraph.of(sparse.csr_matrix(everything)) if lpg else EveryOtherLabel(L)
        rule = Rule(M, ALPHA, partner_by="distance" if sim else "chance")

        def lookup(rows, labels, contexts=contexts):
            return contexts[rows, labels]

        rng = np.random.default_rng(7)
        found = select(np.nonzero(Y), lookup, graph, inverse_p, rule, rng)
        assert list(zip(found.rows, found.targets, found.partners, strict=True)) == pairs
        ours = contexts.clone()
        rows, labels, vectors = mixed_contexts(found, lookup, rule)
        ours[rows, labels] = vectors
        torch.testing.assert_close(ours, C)
        torch.testing.assert_close(mixed_targets(torch.from_numpy(Y).double(), found), targets)
        if lpg:
            assert not set(found.targets) & {L - 2, L - 1}, "no neighbours, so nothing to mix"


def test_blocks_of_candidates_change_nothing(monkeypatch):
    everything, contexts, Y, inverse_p = batch()
    graph = LabelGraph.of(sparse.csr_matrix(everything))

    def pairs():
        lookup = lambda rows, labels: contexts[rows, labels]  # noqa: E731
        rng = np.random.default_rng(1)
        return select(np.nonzero(Y), lookup, graph, inverse_p, Rule(M, ALPHA), rng)

    whole = pairs()
    monkeypatch.setattr("methods.variants.tailmix_pairs.CANDIDATES_AT_ONCE", 4)
    for one, other in zip(whole, pairs(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_targets_are_drawn_without_replacement_by_the_softmax():
    log_weights = np.array([0.0, 1.0, 2.5])
    p = np.exp(log_weights) / np.exp(log_weights).sum()
    n = 20_000
    rows, labels = np.repeat(np.arange(n), 3), np.tile(np.arange(3), n)
    rng = np.random.default_rng(0)
    chosen_rows, chosen, turns = choose_targets(rows, labels, log_weights, 2, rng)
    assert (np.bincount(chosen_rows) == 2).all()
    first, second = chosen[turns == 0], chosen[turns == 1]
    assert (first != second).all()
    np.testing.assert_allclose(np.bincount(first) / n, p, atol=0.015)
    # Second draw after the first: sum over i of p_i p_j / (1 - p_i).
    expected = [sum(p[i] * p[j] / (1 - p[i]) for i in range(3) if i != j) for j in range(3)]
    np.testing.assert_allclose(np.bincount(second) / n, expected, atol=0.015)


def test_the_rule_of_the_authors_code():
    everything, contexts, Y, inverse_p = batch()
    everything_graph = LabelGraph.of(sparse.csr_matrix(everything))
    rule = Rule(
        M, ALPHA, targets_by="chance", partner_by="propensity", larger_share=True, scaled=True
    )
    lookup = lambda rows, labels: contexts[rows, labels]  # noqa: E731
    rng = np.random.default_rng(2)
    found = select(np.nonzero(Y), lookup, everything_graph, inverse_p, rule, rng)
    A = everything.T @ everything
    assert (found.shares >= 0.5).all()
    assert (A[found.targets, found.partners] > 0).all()
    C, targets = contexts.clone(), torch.from_numpy(Y).double()
    for row, label, partner, share, _ in zip(*found, strict=True):
        C[row, label] = share * contexts[row, label]
        targets[row, label] = share
        C[row, partner] = (1 - share) * contexts[row, partner]
        targets[row, partner] = 1 - share
    ours = contexts.clone()
    rows, labels, vectors = mixed_contexts(found, lookup, rule)
    ours[rows, labels] = vectors
    torch.testing.assert_close(ours, C)
    torch.testing.assert_close(mixed_targets(torch.from_numpy(Y).double(), found), targets)


def test_partners_are_drawn_by_the_softmax_among_neighbours():
    labels = np.zeros(30_000, np.int64)
    Y = sparse.csr_matrix(np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], np.float32))
    weights = np.array([9.0, 1.0, 2.0, 9.0])
    rule = Rule(1, ALPHA, targets_by="chance", partner_by="propensity")
    found = select(
        (np.arange(len(labels)), labels),
        lambda rows, labels: torch.zeros(len(rows), 1),
        LabelGraph.of(Y),
        weights,
        rule,
        np.random.default_rng(0),
    )
    share = np.bincount(found.partners, minlength=4) / len(labels)
    np.testing.assert_allclose(share, [0, 1 / (1 + np.e), np.e / (1 + np.e), 0], atol=0.015)


def test_gradients_reach_both_partners_and_selection_costs_none():
    everything, contexts, Y, inverse_p = batch()
    contexts = contexts.requires_grad_()
    graph = LabelGraph.of(sparse.csr_matrix(everything))
    calls = []

    def lookup(rows, labels):
        calls.append(torch.is_grad_enabled())
        return contexts[rows, labels]

    rule = Rule(M, ALPHA)
    found = select(np.nonzero(Y), lookup, graph, inverse_p, rule, np.random.default_rng(0))
    assert not any(calls)
    mixed_contexts(found, lookup, rule)[2].sum().backward()
    assert calls[-1] is True
    touched = contexts.grad.abs().sum(dim=2) > 0
    assert touched[found.rows, found.targets].all()
    assert touched[found.rows, found.partners].all()


def test_a_batch_without_labels_is_left_alone():
    everything, contexts, Y, inverse_p = batch()
    lookup = lambda rows, labels: contexts[rows, labels]  # noqa: E731
    none = np.empty(0, np.int64)
    graph = LabelGraph.of(sparse.csr_matrix(everything))
    rule = Rule(M, ALPHA)
    found = select((none, none), lookup, graph, inverse_p, rule, np.random.default_rng(0))
    rows, labels, vectors = mixed_contexts(found, lookup, rule)
    assert len(rows) == len(labels) == len(vectors) == 0
    torch.testing.assert_close(mixed_targets(torch.from_numpy(Y), found), torch.from_numpy(Y))
