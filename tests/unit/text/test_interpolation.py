"""wordMix, hiddenMix, TMix and SSMix against hand-worked cases and plain loops."""

import numpy as np
import pytest
import torch

from methods.variants.interpolation import (
    draw_share,
    interpolated,
    interpolated_targets,
    paired,
    tmix_layer,
    with_spans_of,
)


def test_states_targets_and_masks_are_mixed_with_those_of_the_partner():
    states = torch.tensor([[[2.0], [4.0]], [[10.0], [0.0]]])
    mask = torch.tensor([[True, True], [True, False]])
    partner = torch.tensor([1, 0])
    mixed, both = interpolated(states, mask, partner, 0.75)
    torch.testing.assert_close(mixed, torch.tensor([[[4.0], [3.0]], [[8.0], [1.0]]]))
    assert both.all()
    targets = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    mixed = interpolated_targets(targets, partner, 0.75)
    torch.testing.assert_close(mixed, torch.tensor([[0.75, 0.25, 1.0], [0.25, 0.75, 1.0]]))


def test_share_one_or_a_document_with_itself_changes_nothing():
    states, mask = torch.randn(4, 3, 2), torch.ones(4, 3, dtype=torch.bool)
    own = torch.arange(4)
    torch.testing.assert_close(interpolated(states, mask, own, 0.6)[0], states)
    other = torch.tensor([1, 2, 3, 0])
    torch.testing.assert_close(interpolated(states, mask, other, 1.0)[0], states)


def test_a_document_keeps_the_larger_share():
    rng = np.random.default_rng(0)
    shares = [draw_share(0.4, rng) for _ in range(200)]
    assert 0.5 <= min(shares) < 0.6
    assert max(shares) > 0.99


@pytest.mark.parametrize(
    ("depth", "expected"), [(12, {7, 9, 12}), (6, {4, 5, 6}), (2, {2}), (1, {1})]
)
def test_tmix_layers_are_at_the_same_relative_depth(depth, expected):
    rng = np.random.default_rng(0)
    assert {tmix_layer(rng, depth) for _ in range(100)} == expected


@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_pairs_are_mutual(n):
    partner = paired(n, np.random.default_rng(1))
    np.testing.assert_array_equal(partner[partner], np.arange(n))
    assert (partner == np.arange(n)).sum() == n % 2


def plain_ssmix(ids, lengths, saliency, partner, window, edge):
    """Every window tried in turn."""
    mixed, shares = ids.clone(), []
    for i, j in enumerate(partner):
        own = lengths[i] - 2 * edge
        size = max(1, int(own * window))
        if i == j or size > lengths[j] - 2 * edge or own < size:
            shares.append(1.0)
            continue

        def best(row, sign, size=size):
            starts = range(edge, lengths[row] - edge - size + 1)
            return max(starts, key=lambda s: sign * float(saliency[row, s : s + size].sum()))

        here, there = best(i, -1), best(j, 1)
        for step in range(size):
            mixed[i, here + step] = ids[j, there + step]
        shares.append(1 - size / own)
    return mixed, np.array(shares)


@pytest.mark.parametrize("edge", [0, 1])
def test_ssmix_swaps_the_least_salient_span_for_the_most_salient_one(edge):
    rng = np.random.default_rng(5)
    lengths = np.array([12, 30, 3, 21, 17, 30])
    ids = torch.arange(6 * 30).reshape(6, 30)
    saliency = torch.from_numpy(rng.random((6, 30)))
    partner = np.array([1, 0, 3, 2, 4, 5])
    mixed, shares = with_spans_of(ids, lengths, saliency, partner, 0.1, edge)
    expected, expected_shares = plain_ssmix(ids, lengths, saliency, partner, 0.1, edge)
    assert (mixed == expected).all()
    np.testing.assert_allclose(shares, expected_shares)
    assert (mixed[4:] == ids[4:]).all(), "documents without a partner stay whole"
    assert (mixed[:4] != ids[:4]).any(dim=1).tolist() == [True, True, True, True]
    if edge:
        ends = [(i, 0) for i in range(6)] + [(i, n - 1) for i, n in enumerate(lengths)]
        assert all(mixed[i, t] == ids[i, t] for i, t in ends), "marks stay in their places"


def test_a_span_that_does_not_fit_is_left_out():
    ids = torch.arange(200).reshape(2, 100)
    saliency = torch.rand(2, 100)
    mixed, shares = with_spans_of(ids, np.array([100, 5]), saliency, np.array([1, 0]), 0.1)
    assert shares[0] == 1.0
    assert (mixed[0] == ids[0]).all()
    assert shares[1] == pytest.approx(0.8)
