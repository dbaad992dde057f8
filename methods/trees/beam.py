"""Beam search through a forest for many documents at once.

The score of a label in a tree is exp(sum of log path probabilities), where a node with margin m
has log probability -max(0, 1 - m)^2 and the parents' part is discounted at each step (Parabel: 1,
Bonsai: 0.98). Trees are averaged; a label that a tree's beam did not reach counts as 0 there.

All documents that stand before a node are served together, so that the node's weights are spread
out once. A document's result does not depend on the others.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numba import njit
from scipy import sparse

from methods.interface import TopK
from methods.trees.label_tree import Forest
from methods.trees.topk import best_of

CHUNK = 1024
"""Documents that go through the forest together in one thread."""
DENSE_TARGETS, DENSE_ROWS = 16, 20
"""A node's weights are made dense for up to so many targets, or a document for so many rows."""


def search(
    forest: Forest,
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
    if len(forest.roots) == 0:
        return top
    if X.shape[1] != forest.n_features:
        raise ValueError(f"{X.shape[1]} features; the model was trained on {forest.n_features}")
    threads = numba.get_num_threads()
    chunk = max(32, min(CHUNK, -(-n // threads)))

    def search_chunk(start: int) -> None:
        stop = min(start + chunk, n)
        _search_rows(
            X.indptr,
            X.indices,
            X.data,
            scales,
            start,
            stop,
            forest.n_features,
            np.float32(forest.bias),
            forest.roots,
            forest.leaf,
            forest.target_indptr,
            forest.targets,
            forest.row_indptr,
            forest.features,
            forest.entry_indptr,
            forest.places,
            forest.values,
            forest.n_labels,
            beam,
            np.float32(discount),
            top.indices,
            top.scores,
        )

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(search_chunk, range(0, n, chunk)))
    return top


@njit(cache=True, nogil=True)
def _search_rows(  # type: ignore[no-untyped-def]
    indptr, indices, data, scales, start, stop, n_features, bias,
    roots, leaf, target_indptr, targets, row_indptr, features, entry_indptr, places, values,
    n_labels, beam, discount, out_labels, out_scores,
):  # fmt: skip
    n_trees = len(roots)
    n_queries = (stop - start) * n_trees  # a query is a document in a tree
    widest = 0
    for v in range(len(leaf)):
        widest = max(widest, target_indptr[v + 1] - target_indptr[v])

    node = np.empty((n_queries, beam), np.int64)
    score = np.zeros((n_queries, beam), np.float32)
    held = np.ones(n_queries, np.int64)
    for q in range(n_queries):
        node[q, 0] = roots[q % n_trees]
    spread = np.zeros(n_features + 1, np.int64)
    margins = np.empty(_padded(widest), np.float32)
    while True:
        # Inner nodes in the beams, grouped by node.
        n_inner = 0
        for q in range(n_queries):
            for s in range(held[q]):
                n_inner += not leaf[node[q, s]]
        if n_inner == 0:
            break
        query, slot = _waiting(node, held, leaf, n_inner, False)
        order = _by_node(node, query, slot, len(leaf))
        new_node = np.empty_like(node)
        new_score = np.empty_like(score)
        new_held = np.zeros_like(held)
        for q in range(n_queries):
            for s in range(held[q]):
                if leaf[node[q, s]]:
                    _offer(new_node[q], new_score[q], new_held, q, node[q, s], score[q, s])
        at = 0
        while at < n_inner:
            v = node[query[order[at]], slot[order[at]]]
            group = at
            while group < n_inner and node[query[order[group]], slot[order[group]]] == v:
                group += 1
            n_targets = target_indptr[v + 1] - target_indptr[v]
            _spread_out(spread, features, row_indptr, v)
            dense = _dense_weights(
                row_indptr, entry_indptr, places, values, v, n_targets, group - at
            )
            for g in range(at, group):
                q = query[order[g]]
                i = start + q // n_trees
                _margins_at(
                    indptr, indices, data, scales[i], i, n_features, bias, spread, row_indptr[v],
                    entry_indptr, places, values, dense, n_targets, margins,
                )  # fmt: skip
                parent = discount * score[q, slot[order[g]]]
                for t in range(n_targets):
                    loss = max(np.float32(0.0), np.float32(1.0) - margins[t])
                    child = targets[target_indptr[v] + t]
                    _offer(new_node[q], new_score[q], new_held, q, child, parent - loss * loss)
            _take_in(spread, features, row_indptr, v)
            at = group
        node, score, held = new_node, new_score, new_held

    # The labels of the leaves that were reached.
    n_leaves = held.sum()
    query, slot = _waiting(node, held, leaf, n_leaves, True)
    order = _by_node(node, query, slot, len(leaf))
    found_indptr = np.zeros(n_queries + 1, np.int64)
    for q in range(n_queries):
        found_indptr[q + 1] = found_indptr[q]
        for s in range(held[q]):
            v = node[q, s]
            found_indptr[q + 1] += target_indptr[v + 1] - target_indptr[v]
    found_label = np.empty(found_indptr[n_queries], np.int32)
    found_score = np.empty(found_indptr[n_queries], np.float32)
    cursor = found_indptr[:-1].copy()
    at = 0
    while at < n_leaves:
        v = node[query[order[at]], slot[order[at]]]
        group = at
        while group < n_leaves and node[query[order[group]], slot[order[group]]] == v:
            group += 1
        n_targets = target_indptr[v + 1] - target_indptr[v]
        _spread_out(spread, features, row_indptr, v)
        dense = _dense_weights(row_indptr, entry_indptr, places, values, v, n_targets, group - at)
        for g in range(at, group):
            q = query[order[g]]
            i = start + q // n_trees
            _margins_at(
                indptr, indices, data, scales[i], i, n_features, bias, spread, row_indptr[v],
                    entry_indptr, places, values, dense, n_targets, margins,
            )  # fmt: skip
            parent = discount * score[q, slot[order[g]]]
            for t in range(n_targets):
                loss = max(np.float32(0.0), np.float32(1.0) - margins[t])
                found_label[cursor[q]] = targets[target_indptr[v] + t]
                found_score[cursor[q]] = np.exp(parent - loss * loss)
                cursor[q] += 1
        _take_in(spread, features, row_indptr, v)
        at = group

    total = np.zeros(n_labels, np.float64)
    seen = np.zeros(n_labels, np.bool_)
    for i in range(start, stop):
        first = (i - start) * n_trees
        entries = range(found_indptr[first], found_indptr[first + n_trees])
        touched = np.empty(len(entries), np.int32)
        n_touched = 0
        for p in entries:
            label = found_label[p]
            total[label] += found_score[p]
            if not seen[label]:
                seen[label] = True
                touched[n_touched] = label
                n_touched += 1
        for p in range(n_touched):
            total[touched[p]] /= n_trees
        best_of(total, touched[:n_touched], out_labels[i], out_scores[i])
        for p in range(n_touched):
            total[touched[p]] = 0.0
            seen[touched[p]] = False


@njit(cache=True, nogil=True)
def _waiting(node, held, leaf, n, at_leaf):  # type: ignore[no-untyped-def]
    """The (query, slot) pairs whose node is a leaf, or is not."""
    query = np.empty(n, np.int64)
    slot = np.empty(n, np.int64)
    at = 0
    for q in range(node.shape[0]):
        for s in range(held[q]):
            if leaf[node[q, s]] == at_leaf:
                query[at] = q
                slot[at] = s
                at += 1
    return query, slot


@njit(cache=True, nogil=True)
def _by_node(node, query, slot, n_nodes):  # type: ignore[no-untyped-def]
    """The order that puts pairs before the same node side by side (a counting sort)."""
    starts = np.zeros(n_nodes + 1, np.int64)
    for i in range(len(query)):
        starts[node[query[i], slot[i]] + 1] += 1
    for v in range(n_nodes):
        starts[v + 1] += starts[v]
    order = np.empty(len(query), np.int64)
    for i in range(len(query)):
        v = node[query[i], slot[i]]
        order[starts[v]] = i
        starts[v] += 1
    return order


@njit(cache=True, nogil=True)
def _offer(nodes, scores, held, q, candidate, value):  # type: ignore[no-untyped-def]
    """Keep the best nodes of a beam in order: higher score first, then lower number."""
    beam = len(nodes)
    n = held[q]
    if n == beam:
        if value < scores[n - 1] or (value == scores[n - 1] and candidate > nodes[n - 1]):
            return
        n -= 1
    else:
        held[q] += 1
    while n > 0 and (
        value > scores[n - 1] or (value == scores[n - 1] and candidate < nodes[n - 1])
    ):
        nodes[n] = nodes[n - 1]
        scores[n] = scores[n - 1]
        n -= 1
    nodes[n] = candidate
    scores[n] = value


@njit(cache=True, nogil=True)
def _padded(n):  # type: ignore[no-untyped-def]
    return n if n <= 2 else (n + 7) // 8 * 8


@njit(cache=True, nogil=True)
def _spread_out(spread, features, row_indptr, v):  # type: ignore[no-untyped-def]
    """Number the node's rows from 1 by feature; 0 is a feature that the node does not use."""
    for r in range(row_indptr[v], row_indptr[v + 1]):
        spread[features[r]] = r - row_indptr[v] + 1


@njit(cache=True, nogil=True)
def _take_in(spread, features, row_indptr, v):  # type: ignore[no-untyped-def]
    for r in range(row_indptr[v], row_indptr[v + 1]):
        spread[features[r]] = 0


@njit(cache=True, nogil=True)
def _dense_weights(row_indptr, entry_indptr, places, values, v, n_targets, n_documents):  # type: ignore[no-untyped-def]
    """The node's weights as a flat dense matrix, row 0 all zero; empty where it would not pay.

    A dense row is read without branches, but has to be filled first: worth it for few targets or
    many documents.
    """
    n_rows = row_indptr[v + 1] - row_indptr[v]
    if n_targets > DENSE_TARGETS and n_documents * DENSE_ROWS < n_rows:
        return np.empty(0, np.float32)
    width = _padded(n_targets)
    dense = np.zeros((n_rows + 1) * width, np.float32)
    for r in range(n_rows):
        row = row_indptr[v] + r
        for e in range(entry_indptr[row], entry_indptr[row + 1]):
            dense[(r + 1) * width + places[e]] = values[e]
    return dense


@njit(cache=True, nogil=True)
def _add_dense(x, dense, row, width, margins):  # type: ignore[no-untyped-def]
    # Without fused or reordered arithmetic: the sums are those of the sparse way, to the bit.
    start = np.uint64(row) * np.uint64(width)
    for t in range(np.uint64(width)):
        margins[t] += x * dense[start + t]


@njit(cache=True, nogil=True)
def _margins_at(  # type: ignore[no-untyped-def]
    indptr, indices, data, scale, i, n_features, bias, spread, first_row, entry_indptr, places,
    values, dense, n_targets, margins,
):  # fmt: skip
    """The margin of document i with each target of the node that is spread out."""
    width = _padded(n_targets)
    for t in range(width):
        margins[t] = 0.0
    if len(dense) > 0 and width == 2:
        margin_0 = margin_1 = np.float32(0.0)
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p] * scale
            start = np.uint64(spread[indices[p]]) * np.uint64(2)
            margin_0 += x * dense[start]
            margin_1 += x * dense[start + np.uint64(1)]
        start = np.uint64(spread[n_features]) * np.uint64(2)
        margins[0] = margin_0 + bias * dense[start]
        margins[1] = margin_1 + bias * dense[start + np.uint64(1)]
        return
    if len(dense) > 0:
        for p in range(indptr[i], indptr[i + 1]):
            _add_dense(data[p] * scale, dense, spread[indices[p]], width, margins)
        _add_dense(bias, dense, spread[n_features], width, margins)
        return
    for p in range(indptr[i], indptr[i + 1]):
        r = spread[indices[p]]
        if r > 0:
            x = data[p] * scale
            row = first_row + r - 1
            for e in range(entry_indptr[row], entry_indptr[row + 1]):
                margins[places[e]] += x * values[e]
    r = spread[n_features]
    if r > 0:
        row = first_row + r - 1
        for e in range(entry_indptr[row], entry_indptr[row + 1]):
            margins[places[e]] += bias * values[e]
