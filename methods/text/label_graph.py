"""DXML's label graph: labels that occur together are linked, and embedded by their random walks.

DXML takes DeepWalk's vectors. With many walks DeepWalk factorises a matrix that can be written
down (Qiu et al., Network embedding as matrix factorization, WSDM 2018, eq. 3), so that no walk has
to be drawn and a seed has no effect.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

WINDOW, NEGATIVES = 2, 1
"""How far apart two labels of a walk may be to count, and the noise labels for each pair."""


def cooccurrence(labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """How many documents carry both labels, float64[L, L]; 0 on the diagonal."""
    Y = sparse.csr_matrix(labels, dtype=np.float64)
    together = sparse.csr_matrix(Y.T @ Y)
    together.setdiag(0.0)
    together.eliminate_zeros()
    return together


def walk_similarity(graph: sparse.csr_matrix, window: int = WINDOW) -> sparse.csr_matrix:
    """log max(1, vol(G) / (b T) * sum over r <= T of (D^-1 A)^r D^-1), what DeepWalk factorises."""
    degree = np.asarray(graph.sum(axis=1)).ravel()
    inverse = sparse.diags(np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0))
    step = inverse @ graph
    power, total = step, step
    for _ in range(1, window):
        power = power @ step
        total = total + power
    found = sparse.csr_matrix(total @ inverse) * (degree.sum() / (NEGATIVES * window))
    found.data = np.log(np.maximum(found.data, 1.0))
    found.eliminate_zeros()
    return found


def label_vectors(labels: sparse.csr_matrix, dimensions: int) -> np.ndarray:
    """A vector of length 1 for each label, float32[L, d], d at most ``dimensions``.

    A label that occurs with no other has no place in the graph; it is given a direction of its
    own, orthogonal to all others, or its documents would be lost to every search.
    """
    similarity = walk_similarity(cooccurrence(labels))
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    alone = np.flatnonzero((counts > 0) & (np.diff(similarity.indptr) == 0))
    rank = min(dimensions, labels.shape[1] - 1)
    # A fixed start: the default is drawn.
    start = np.ones(labels.shape[1])
    left, values, _ = svds(similarity, k=rank, v0=start, solver="arpack")
    order = np.argsort(-values, kind="stable")
    vectors = left[:, order] * np.sqrt(values[order])
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)])
    vectors = vectors * np.where(signs == 0, 1.0, signs)
    own = np.zeros((labels.shape[1], len(alone)))
    own[alone, np.arange(len(alone))] = 1.0
    vectors[alone] = 0.0
    vectors = np.hstack([vectors, own])
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return unit.astype(np.float32)


def document_targets(labels: sparse.csr_matrix, vectors: np.ndarray) -> np.ndarray:
    """The mean vector of each document's labels, float32[n, d]; 0 without labels."""
    sizes = np.maximum(np.diff(labels.indptr), 1)[:, None]
    return np.asarray((labels @ vectors) / sizes, np.float32)


def neighbour_scores(
    queries: np.ndarray, documents: np.ndarray, labels: sparse.csr_matrix, k: int
) -> np.ndarray:
    """Scores from the labels of the k nearest training documents, float32[n, L].

    Neighbours by Euclidean distance count by exp(-distance^2), normalised to sum 1, so that a
    score is a share of the neighbourhood. Ties go to the earlier document.
    """
    k = min(k, len(documents))
    squares = (documents**2).sum(axis=1)
    scores = np.empty((len(queries), labels.shape[1]), np.float32)
    for row, query in enumerate(queries):
        # One query at a time: a blocked product may round by the size of the block.
        distance = np.maximum(squares - 2 * documents @ query + query @ query, 0.0)
        nearest = np.argsort(distance, kind="stable")[:k]
        weight = np.exp(distance[nearest].min() - distance[nearest])
        scores[row] = labels[nearest].T @ (weight / weight.sum())
    return scores
