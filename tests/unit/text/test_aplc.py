"""Adaptive probabilistic label clusters against the definitions of the paper and plain loops."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from methods.text.aplc import LabelClusters, even_cutoffs, log_probability, normalised

WIDTH, L, B = 8, 13, 7


def clusters(cutoffs, seed=0):
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(L)
    return LabelClusters(WIDTH, order, cutoffs).double(), order


def documents(seed=1):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(B, WIDTH, generator=generator, dtype=torch.float64)
    targets = (torch.rand(B, L, generator=generator) < 0.12).double()
    targets[0] = 0
    targets[1] = 1
    return vectors, targets


def probabilities(layer, order, vectors):
    """p(label) = p(cluster) p(label | cluster), label by label; the head has no cluster."""
    n_head = layer.edges[0]
    scores = vectors @ layer.head.weight.T
    found = torch.zeros(len(vectors), L, dtype=torch.float64)
    for place, label in enumerate(order):
        if place < n_head:
            found[:, label] = torch.sigmoid(scores[:, place])
            continue
        cluster = next(i for i in range(len(layer.tails)) if place < layer.edges[i + 1])
        into, norm, _, out = layer.tails[cluster]
        hidden = torch.relu(norm(vectors @ into.weight.T))
        leaf = torch.sigmoid(hidden @ out.weight[place - layer.edges[cluster]])
        found[:, label] = torch.sigmoid(scores[:, n_head + cluster]) * leaf
    return found


@pytest.mark.parametrize("cutoffs", [[], [6], [3, 4, 9]])
def test_label_probabilities_are_root_times_leaf(cutoffs):
    layer, order = clusters(cutoffs)
    vectors, _ = documents()
    p = torch.sigmoid(layer(vectors))
    torch.testing.assert_close(p, probabilities(layer, order, vectors))
    for i, where in enumerate(layer.clusters[1:]):
        # No label of a cluster is likelier than the cluster, and they sum to its p times leaves.
        root = torch.sigmoid(layer.head(vectors)[:, layer.edges[0] + i])
        members = p[:, order[where]]
        assert (members <= root[:, None]).all()
        leaves = torch.sigmoid(layer.tails[i](vectors))
        torch.testing.assert_close(members.sum(dim=1), root * leaves.sum(dim=1))


def test_with_one_cluster_the_loss_is_binary_cross_entropy():
    layer, _ = clusters([])
    vectors, targets = documents()
    full = functional.binary_cross_entropy_with_logits(layer(vectors), targets)
    torch.testing.assert_close(layer.loss(vectors, targets), full)
    weights = torch.rand(L, dtype=torch.float64) * 5
    full = functional.binary_cross_entropy_with_logits(layer(vectors), targets, pos_weight=weights)
    torch.testing.assert_close(layer.loss(vectors, targets, weights), full)


@pytest.mark.parametrize("weighted", [False, True])
def test_loss_counts_roots_of_absent_clusters_and_labels_of_present_ones(weighted):
    layer, order = clusters([3, 7])
    vectors, targets = documents()
    weights = torch.rand(L, dtype=torch.float64) * 4 if weighted else torch.ones(L).double()
    p = probabilities(layer, order, vectors)
    losses = []
    for i in range(B):
        terms = []
        for c, where in enumerate(layer.clusters):
            members = order[where]
            if c > 0 and not targets[i, members].any():
                root = torch.sigmoid(layer.head(vectors)[i, layer.edges[0] + c - 1])
                terms.append(-torch.log(1 - root))
                continue
            for label in members:
                y = targets[i, label]
                terms.append(
                    -weights[label] * y * torch.log(p[i, label])
                    - (1 - y) * torch.log(1 - p[i, label])
                )
        losses.append(torch.stack(terms).mean())
    given = weights if weighted else None
    torch.testing.assert_close(layer.loss(vectors, targets, given), torch.stack(losses).mean())


def test_probabilities_keep_their_digits_far_out():
    root, leaf = torch.tensor([-60.0, 60.0, 60.0, -60.0]), torch.tensor([60.0, -60.0, 60.0, -60.0])
    log_p, log_rest = log_probability(root, leaf)
    torch.testing.assert_close(log_p, torch.tensor([-60.0, -60.0, 0.0, -120.0]), atol=1e-6, rtol=0)
    assert torch.isfinite(log_rest).all()
    assert (log_rest <= 0).all()


def test_gradient_equals_finite_differences():
    layer, _ = clusters([4, 8])
    vectors, targets = documents()
    vectors.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: layer.loss(v, targets), (vectors,))


def test_weights_by_eq_24_average_to_one_and_by_cluster_sum_to_the_labels():
    rng = np.random.default_rng(0)
    weights, order = 1 + 20 * rng.random(L), rng.permutation(L)
    by_mean = normalised(weights, order, [4, 9, L], "eq24")
    assert by_mean.mean() == pytest.approx(1)
    np.testing.assert_allclose(by_mean / by_mean[0], weights / weights[0])
    by_cluster = normalised(weights, order, [4, 9, L], "cluster")
    for cluster in (order[:4], order[4:9], order[9:]):
        assert by_cluster[cluster].sum() == pytest.approx(L)
        ratios = by_cluster[cluster] / by_cluster[cluster][0]
        np.testing.assert_allclose(ratios, weights[cluster] / weights[cluster][0])


def test_norms_belong_to_their_labels():
    layer, order = clusters([5])
    norms = layer.label_vectors().norm(dim=1)
    assert norms.shape == (L,)
    torch.testing.assert_close(norms[order[2]], layer.head.weight[2].norm())
    torch.testing.assert_close(norms[order[6]], layer.tails[0][-1].weight[1].norm())


def test_cutoffs():
    assert even_cutoffs(3956, 2) == [1978]
    assert even_cutoffs(670_091, 4) == [167_522, 335_045, 502_568]
    assert even_cutoffs(1, 2) == []
    for bad in ([0], [L], [5, 5], [7, 3]):
        with pytest.raises(ValueError, match="must rise"):
            clusters(bad)
