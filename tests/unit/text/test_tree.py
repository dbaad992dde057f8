"""AttentionXML's label tree: groups, candidates, and weights by the counts of groups."""

import numpy as np
import pytest
import torch
from scipy import sparse

from benchmarks.data import load
from benchmarks.evaluation.topk import TopK
from methods.hooks import Hooks
from methods.registry import get
from methods.text.attention import fused_logits
from methods.text.attention_xml_tree import AttentionXMLTree, label_groups
from methods.text.candidates import children
from methods.text.head import SharedHead
from methods.variants.pw import PW

SMALL = {
    "dimensions": 8,
    "hidden": 6,
    "head": (5,),
    "max_length": 20,
    "batch_size": 40,
    "epochs": 2,
    "level_epochs": 2,
    "swa_from": 1,
    "level_swa_from": 1,
    "depths": (1, 3),
    "top": 2,
}


def test_groups_are_nested_and_balanced():
    train, _ = load("tiny-text")
    labels = np.flatnonzero(train.label_counts())
    first, second = label_groups(train, labels, (1, 3), seed=0)
    assert set(first) == {0, 1}
    assert set(second) == set(range(8))
    for level, parts in ((first, 2), (second, 8)):
        sizes = np.bincount(level)
        assert sizes.max() - sizes.min() <= 1
        assert sizes.sum() == len(labels)
        assert len(sizes) == parts
    above = [set(first[second == group]) for group in range(8)]
    assert all(len(groups) == 1 for groups in above), "a group lies within one group above"


def test_candidates_are_the_members_of_the_best_groups():
    group_of = np.array([1, 0, 1, 2, 0])
    top = TopK(
        np.array([[2, 0], [1, -1]], np.int32), np.array([[0.9, 0.5], [0.7, -np.inf]], np.float32)
    )
    candidates, prior = children(top, group_of, 3)
    assert candidates.tolist() == [[1, 3, 4], [0, 2, -1]]
    np.testing.assert_allclose(prior, [[0.5, 0.9, 0.5], [0.7, 0.7, 0.0]])
    true = sparse.csr_matrix(np.array([[0, 1, 0], [0, 1, 0]], np.float32))
    candidates, _ = children(top, group_of, 3, true)
    assert candidates.tolist() == [[0, 2, 3], [0, 2, -1]], "true groups first, then the best"


def test_vectors_of_each_document_give_the_logits_of_shared_ones():
    torch.manual_seed(0)
    hidden = torch.randn(2, 5, 6, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    head = SharedHead(6, (4,)).double()
    vectors = torch.randn(7, 6, dtype=torch.float64, requires_grad=True)
    chosen = torch.tensor([[0, 3, 6], [2, 3, 1]])
    shared = fused_logits(hidden, mask, vectors, head).gather(1, chosen)
    own = fused_logits(hidden, mask, vectors[chosen], head)
    torch.testing.assert_close(own, shared)
    gradients = [torch.autograd.grad(x.sin().sum(), vectors)[0] for x in (own, shared)]
    torch.testing.assert_close(*gradients)


def test_groups_are_weighted_by_the_counts_of_their_documents():
    train, _ = load("tiny-text")
    method = get("AttentionXML-tree")
    assert isinstance(method, AttentionXMLTree)
    labels = np.flatnonzero(train.label_counts())
    groups = sparse.csr_matrix(np.eye(len(train), 3, dtype=np.float32)[np.arange(len(train)) % 3])
    hooks = method._weights(Hooks(PW().weights(train)), groups, labels, False)
    positive = hooks["loss_weights"].positive
    counts = np.full(3, len(train) / 3)
    from benchmarks.evaluation.propensity import inverse_propensity

    np.testing.assert_allclose(positive, 2 * inverse_propensity(counts, len(train)) - 1)


@pytest.mark.parametrize("variant", ["plain", "PW"])
def test_a_tree_trains_predicts_and_survives_saving(variant, tmp_path):
    train, test = load("tiny-text")
    model = get("AttentionXML-tree", variant, **SMALL).fit(train, seed=1)
    top = model.predict(test.inputs, 5)
    assert top.fault(len(test), test.n_labels, 5) is None
    assert ((top.scores >= 0) & (top.scores <= 1) | (top.indices < 0)).all()
    model.save(tmp_path)
    again = type(model).load(tmp_path).predict(test.inputs, 5)
    assert (again.indices == top.indices).all()
    assert np.isfinite(model.label_norms()[model.labels]).all()
