"""Beam search through a forest for many documents at once.

The score of a label in a tree is exp(sum of log path probabilities), where a node with margin m
has log probability -max(0, 1 - m)^2 and the parents' part is discounted at each step (Parabel: 1,
Bonsai: 0.98). Trees are averaged; a label that a tree's beam did not reach counts as 0 there.

The head of the forest is searched document by document; below it, all documents that stand before
a node are served together. A document's result does not depend on the others.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numba import njit
from scipy import sparse

from benchmarks.evaluation.topk import TopK
from methods.trees.leaf_search import Beams, best_labels
from methods.trees.margins import BATCH, block_margins, gather, workspace
from methods.trees.search_index import GROUP, SearchIndex
from methods.trees.visits import NO_NODE, by_node, leave, next_margins

CHUNK, LARGEST_CHUNK = 1024, 16_384
"""Documents that go through the forest together in one thread, at least and at most."""
ROWS_PER_DOCUMENT = 2048
"""Rows of the index for each document of a chunk: a chunk looks up the rows of every node once, and
where these are many it takes more documents to be worth it."""


def search(
    index: SearchIndex,
    X: sparse.csr_matrix,
    scales: np.ndarray,
    k: int,
    *,
    beam: int,
    discount: float,
) -> TopK:
    """The k best labels of each row of X (times its scale)."""
    n = X.shape[0]
    top = TopK.empty(n, k)
    if len(index.roots) == 0:
        return top
    n_features = len(index.number) - 1
    if X.shape[1] != n_features:
        raise ValueError(f"{X.shape[1]} features; the model was trained on {n_features}")
    threads = numba.get_num_threads()
    chunk = max(32, min(_chunk_size(index), -(-n // threads)))

    def search_chunk(start: int) -> None:
        stop = min(start + chunk, n)
        _search_rows(
            index,
            gather(X.indptr, X.indices, X.data, scales, start, stop, index.number, index.bias),
            beam,
            np.float32(discount),
            top.indices[start:stop],
            top.scores[start:stop],
        )

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(search_chunk, range(0, n, chunk)))
    return top


def _chunk_size(index: SearchIndex) -> int:
    return max(CHUNK, min(LARGEST_CHUNK, len(index.nodes.features) // ROWS_PER_DOCUMENT))


@njit(cache=True, nogil=True)
def _search_rows(index, documents, beam, discount, out_labels, out_scores):  # type: ignore[no-untyped-def]
    widest = max(index.nodes.width.max(), index.head.width[0])
    work = workspace(documents, widest)
    table = np.zeros(index.n_used, np.uint32)
    node, score, held = _through_head(index, documents, beam, discount, work)
    while _one_level(index, documents, discount, node, score, held, table, work):
        pass
    score *= discount
    beams = Beams(node, score, np.exp(score), held)
    best_labels(index, documents, beams, out_labels.shape[1], table, work, out_labels, out_scores)


@njit(cache=True, nogil=True)
def _through_head(index, documents, beam, discount, work):  # type: ignore[no-untyped-def]
    """The beams where the head ends: nodes below it, and leaves."""
    n_trees = len(index.roots)
    n_documents = len(documents.indptr) - 1
    node = np.empty((n_documents * n_trees, beam), np.int64)
    score = np.zeros((n_documents * n_trees, beam), np.float32)
    held = np.ones(n_documents * n_trees, np.int64)
    new_node = np.empty(beam, np.int64)
    new_score = np.empty(beam, np.float32)
    width = index.head.width[0]
    for i in range(n_documents):
        if width > 0 and i % BATCH == 0:
            ids = np.arange(i, min(i + BATCH, n_documents))
            block_margins(index.head_codes, index.head, 0, documents, ids, work)
        margins = work.margins[i % BATCH * (width + GROUP) :]
        for t in range(n_trees):
            q = i * n_trees + t
            node[q, 0] = index.roots[t]
            n_held = 1
            inside = index.head_start[index.roots[t]] >= 0
            while inside:
                inside = False
                n_new = 0
                for s in range(n_held):
                    v = node[q, s]
                    column = index.head_start[v]
                    if column < 0:
                        n_new = _offer(new_node, new_score, n_new, v, score[q, s])
                        continue
                    first = index.target_indptr[v]
                    parent = discount * score[q, s]
                    for c in range(index.target_indptr[v + 1] - first):
                        loss = max(np.float32(0.0), np.float32(1.0) - margins[column + c])
                        n_new = _offer(
                            new_node, new_score, n_new, index.targets[first + c],
                            parent - loss * loss,
                        )  # fmt: skip
                n_held = n_new
                for s in range(n_held):
                    node[q, s] = new_node[s]
                    score[q, s] = new_score[s]
                    inside |= index.head_start[new_node[s]] >= 0
            held[q] = n_held
    return node, score, held


@njit(cache=True, nogil=True)
def _one_level(index, documents, discount, node, score, held, table, work):  # type: ignore[no-untyped-def]
    """Replace the inner nodes in the beams by the best of their children; false if none is left."""
    n_trees = len(index.roots)
    n_queries = len(node)
    query = np.empty(held.sum(), np.int64)
    slot = np.empty(held.sum(), np.int64)
    n_inner = 0
    for q in range(n_queries):
        for s in range(held[q]):
            if not index.leaf[node[q, s]]:
                query[n_inner] = q
                slot[n_inner] = s
                n_inner += 1
    if n_inner == 0:
        return False
    visits = by_node(node, query, slot, n_inner, len(index.leaf), n_trees)
    new_node = np.empty_like(node)
    new_score = np.empty_like(score)
    new_held = np.zeros_like(held)
    for q in range(n_queries):
        for s in range(held[q]):
            if index.leaf[node[q, s]]:
                new_held[q] = _offer(
                    new_node[q], new_score[q], new_held[q], node[q, s], score[q, s]
                )
    v = NO_NODE
    at = 0
    while at < n_inner:
        v, size = next_margins(visits, at, v, index.nodes, documents, table, work)
        children = index.targets[index.target_indptr[v] : index.target_indptr[v + 1]]
        for j in range(size):
            q, s = visits.query[at + j], visits.slot[at + j]
            parent = discount * score[q, s]
            margins = work.margins[j * (index.nodes.width[v] + GROUP) :]
            for t in range(len(children)):
                loss = max(np.float32(0.0), np.float32(1.0) - margins[t])
                new_held[q] = _offer(
                    new_node[q], new_score[q], new_held[q], children[t], parent - loss * loss
                )
        at += size
    leave(index.nodes, v, table)
    node[:] = new_node
    score[:] = new_score
    held[:] = new_held
    return True


@njit(cache=True, nogil=True)
def _offer(nodes, scores, n, candidate, value):  # type: ignore[no-untyped-def]
    """Keep the best nodes of a beam in order: higher score first, then lower number."""
    if n == len(nodes):
        if value < scores[n - 1] or (value == scores[n - 1] and candidate > nodes[n - 1]):
            return n
        at = n - 1
    else:
        at = n
        n += 1
    while at > 0 and (
        value > scores[at - 1] or (value == scores[at - 1] and candidate < nodes[at - 1])
    ):
        nodes[at] = nodes[at - 1]
        scores[at] = scores[at - 1]
        at -= 1
    nodes[at] = candidate
    scores[at] = value
    return n
