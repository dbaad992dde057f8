"""DXML's label graph against walks that are enumerated, and its decoding against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from methods.text import label_graph


@pytest.fixture
def labels():
    rows = [[0, 1], [0, 1, 2], [2, 3], [1, 2], [3], [4], [0, 2], [4]]
    Y = np.zeros((len(rows), 6), np.float32)
    for row, own in enumerate(rows):
        Y[row, own] = 1
    return sparse.csr_matrix(Y)


def test_cooccurrence_is_counted(labels):
    Y = labels.toarray()
    expected = np.zeros((6, 6))
    for i, j in itertools.permutations(range(6), 2):
        expected[i, j] = sum(1 for row in Y if row[i] and row[j])
    np.testing.assert_array_equal(label_graph.cooccurrence(labels).toarray(), expected)


def test_similarity_is_that_of_enumerated_walks(labels):
    """Pairs at distance 1 and 2 of all walks, each with its probability, against chance."""
    A = label_graph.cooccurrence(labels).toarray()
    degree = A.sum(axis=1)
    start = degree / degree.sum()  # where a long walk is

    def step(a, b):
        return A[a, b] / degree[a] if degree[a] else 0.0

    pairs = np.zeros((6, 6))
    for a, b in itertools.product(range(6), repeat=2):
        pairs[a, b] += start[a] * step(a, b)
        pairs[a, b] += start[a] * sum(step(a, c) * step(c, b) for c in range(6))
    pairs /= 2
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(pairs / np.outer(start, start))
    expected = np.where(pairs > 0, np.maximum(pmi, 0), 0)
    found = label_graph.walk_similarity(label_graph.cooccurrence(labels)).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_vectors_are_near_for_labels_that_go_together(labels):
    vectors = label_graph.label_vectors(labels, 3)
    assert vectors.shape == (6, 4), "three of the graph, one for the label that is alone"
    near = vectors @ vectors.T
    assert near[4, 4] == pytest.approx(1)
    assert np.abs(near[4, [0, 1, 2, 3]]).max() == 0
    assert not vectors[5].any(), "a label without documents has no vector"
    assert (vectors == label_graph.label_vectors(labels, 3)).all()


def test_targets_and_neighbours_equal_a_plain_rendering(labels):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6, 3)).astype(np.float32)
    Y = labels.toarray()
    targets = label_graph.document_targets(labels, vectors)
    for row, target in zip(Y, targets, strict=True):
        own = [vectors[j] for j in range(6) if row[j]]
        np.testing.assert_allclose(target, sum(own) / len(own), rtol=1e-5)
    queries = rng.normal(size=(4, 3)).astype(np.float32)
    scores = label_graph.neighbour_scores(queries, targets, labels, 3)
    for query, found in zip(queries, scores, strict=True):
        distance = [float(((query - target) ** 2).sum()) for target in targets]
        nearest = sorted(range(len(Y)), key=lambda i: (distance[i], i))[:3]
        weight = [np.exp(-distance[i]) for i in nearest]
        expected = sum(w * Y[i] for w, i in zip(weight, nearest, strict=True)) / sum(weight)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_a_document_is_its_own_nearest_neighbour(labels):
    points = np.random.default_rng(2).normal(size=(8, 5)).astype(np.float32)
    scores = label_graph.neighbour_scores(points, points, labels, 1)
    np.testing.assert_allclose(scores, labels.toarray(), atol=1e-6)
