"""The best labels behind the leaves of the beams, without opening leaves that cannot matter.

No label of a leaf scores more than the leaf itself, so once k labels are known to have at least
some total, a leaf is opened only if a label of it could still reach that total. Leaves are opened
in rounds, best first. What is left out is proven not to change the k best nor their scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from methods._kernels.topk import best_of
from methods.trees.search_index import GROUP
from methods.trees.visits import NO_NODE, by_node, leave, next_margins

PRUNED_K = 64
"""For more labels than this all leaves are opened: few could be left out."""
FIRST, GROWTH = 2, 3
"""Leaves of a beam opened in the first round, and by how much the limit grows in each round."""
SLACK = 1e-5
"""Relative; bounds are compared with more tolerance than float32 rounding needs."""


class Beams(NamedTuple):
    """The leaves that each query (a document in a tree) reached, best first."""

    node: np.ndarray  # int64[queries, beam]
    score: np.ndarray  # float32: log probability before the leaf, discounted
    bound: np.ndarray  # float32: its exponential, which no label of the leaf exceeds
    held: np.ndarray  # int64[queries]


class Opened(NamedTuple):
    """The log scores of the labels of opened leaves, and the best k labels so far."""

    start: np.ndarray  # int64[queries, beam]: where a leaf's values begin
    done: np.ndarray  # bool[queries, beam]
    values: np.ndarray  # float32, room for all leaves; filled in the order they are opened, so
    # that memory that is not needed is never touched
    filled: np.ndarray  # int64[1]
    best_label: np.ndarray  # int32[documents, k]
    best_value: np.ndarray  # float32[documents, k]: largest in any tree, falling
    n_best: np.ndarray  # int64[documents]
    front: np.ndarray  # int64[queries]: how many leaves were opened in order


@njit(cache=True, nogil=True)
def best_labels(index, documents, beams, k, table, work, out_labels, out_scores):  # type: ignore[no-untyped-def]
    """Write the k labels of largest mean score into rows that are padded already."""
    n_documents = len(documents.indptr) - 1
    width = beams.node.shape[1]
    pruned = k <= PRUNED_K
    opened = _nothing_opened(index, beams, n_documents, k if pruned else 0)
    room = beams.held.sum()
    query = np.empty(room, np.int64)
    slot = np.empty(room, np.int64)
    closed = np.zeros(n_documents, np.bool_)
    limit = min(FIRST, width) if pruned else width
    while True:
        n_wanted = _wanted(index, beams, opened, k, limit, query, slot, closed)
        if n_wanted == 0:
            break
        _open(index, documents, beams, opened, query, slot, n_wanted, table, work)
        limit = min(GROWTH * limit, width)
    _select(index, beams, opened, k, out_labels, out_scores)


@njit(cache=True, nogil=True)
def _select(index, beams, opened, k, out_labels, out_scores):  # type: ignore[no-untyped-def]
    """The best of the labels in opened leaves."""
    n_trees, n_labels = index.leaf_of.shape
    targets, target_indptr = index.targets, index.target_indptr
    leaf_of, place_of = index.leaf_of, index.place_of
    node, held = beams.node, beams.held
    start, done, values = opened.start, opened.done, opened.values
    best_label, n_best = opened.best_label, opened.n_best
    slot_of = np.full(len(index.leaf) + 1, -1, np.int32)  # the last for "no leaf", -1
    totals = np.zeros(n_labels, np.float64)
    seen = np.zeros(n_labels, np.bool_)
    candidates = np.empty(n_labels, np.int32)
    for i in range(len(out_labels)):
        first = i * n_trees
        _note_slots(node, held, first, n_trees, slot_of)
        least = _least_total(
            leaf_of, place_of, slot_of, start, done, values, first, best_label[i, : n_best[i]], k
        )
        # A total of that much needs a tree with a share of it.
        cut = np.float32(np.log(least / n_trees) - SLACK) if least > 0.0 else np.float32(-np.inf)
        n_candidates = 0
        for q in range(first, first + n_trees):
            for s in range(held[q]):
                if not done[q, s]:
                    continue
                begin = target_indptr[node[q, s]]
                for t in range(target_indptr[node[q, s] + 1] - begin):
                    if values[start[q, s] + t] >= cut and not seen[targets[begin + t]]:
                        seen[targets[begin + t]] = True
                        candidates[n_candidates] = targets[begin + t]
                        n_candidates += 1
        for c in range(n_candidates):
            label = candidates[c]
            seen[label] = False
            known = _known(leaf_of, place_of, slot_of, start, done, values, first, label)
            totals[label] = known / n_trees
        best_of(totals, candidates[:n_candidates], out_labels[i], out_scores[i])
        _forget_slots(node, held, first, n_trees, slot_of)


@njit(cache=True, nogil=True)
def _nothing_opened(index, beams, n_documents, k):  # type: ignore[no-untyped-def]
    n_queries, width = beams.node.shape
    room = 0
    for q in range(n_queries):
        for s in range(beams.held[q]):
            v = beams.node[q, s]
            room += index.target_indptr[v + 1] - index.target_indptr[v]
    return Opened(
        np.zeros((n_queries, width), np.int64),
        np.zeros((n_queries, width), np.bool_),
        np.empty(room, np.float32),
        np.zeros(1, np.int64),
        np.empty((n_documents, k), np.int32),
        np.empty((n_documents, k), np.float32),
        np.zeros(n_documents, np.int64),
        np.zeros(n_queries, np.int64),
    )


@njit(cache=True, nogil=True)
def _open(index, documents, beams, opened, query, slot, n, table, work):  # type: ignore[no-untyped-def]
    """Score the labels of the given leaves, documents at the same leaf together."""
    visits = by_node(beams.node, query, slot, n, len(index.leaf), len(index.roots))
    done, start = opened.done, opened.start
    v = NO_NODE
    at = 0
    while at < n:
        v, size = next_margins(visits, at, v, index.nodes, documents, table, work)
        labels = index.targets[index.target_indptr[v] : index.target_indptr[v + 1]]
        stride = index.nodes.width[v] + GROUP
        for j in range(size):
            q, s = visits.query[at + j], visits.slot[at + j]
            done[q, s] = True
            start[q, s] = opened.filled[0]
            opened.filled[0] += len(labels)
            values = opened.values[start[q, s] : start[q, s] + len(labels)]
            _log_scores(values, work.margins[j * stride :], beams.score[q, s])
            i = visits.ids[j]
            opened.n_best[i] = _keep_best(
                opened.best_label[i], opened.best_value[i], opened.n_best[i], labels, values
            )
        at += size
    leave(index.nodes, v, table)


@njit(cache=True, nogil=True)
def _keep_best(best_label, best_value, n, labels, values):  # type: ignore[no-untyped-def]
    k = len(best_label)
    if k == 0:
        return 0
    for t in range(len(labels)):
        if n < k or values[t] > best_value[k - 1]:
            n = _keep_distinct(best_label, best_value, n, labels[t], values[t])
    return n


@njit(cache=True, nogil=True)
def _log_scores(values, margins, parent):  # type: ignore[no-untyped-def]
    for t in range(np.uint64(len(values))):
        loss = max(np.float32(0.0), np.float32(1.0) - margins[t])
        values[t] = parent - loss * loss


@njit(cache=True, nogil=True)
def _keep_distinct(labels, values, n, label, value):  # type: ignore[no-untyped-def]
    """Keep the best labels, each once with its best value; returns how many there are."""
    at = n
    for j in range(n):
        if labels[j] == label:
            if value <= values[j]:
                return n
            at = j
            break
    if at == n:
        if n == len(labels):
            at = n - 1
        else:
            n += 1
    while at > 0 and value > values[at - 1]:
        labels[at] = labels[at - 1]
        values[at] = values[at - 1]
        at -= 1
    labels[at] = label
    values[at] = value
    return n


@njit(cache=True, nogil=True)
def _note_slots(node, held, first, n_trees, slot_of):  # type: ignore[no-untyped-def]
    """Write the places of a document's leaves in its beams into a table by leaf."""
    for q in range(first, first + n_trees):
        for s in range(held[q]):
            slot_of[node[q, s]] = s


@njit(cache=True, nogil=True)
def _forget_slots(node, held, first, n_trees, slot_of):  # type: ignore[no-untyped-def]
    for q in range(first, first + n_trees):
        for s in range(held[q]):
            slot_of[node[q, s]] = -1


@njit(cache=True, nogil=True)
def _known(leaf_of, place_of, slot_of, start, done, values, first, label):  # type: ignore[no-untyped-def]
    """A label's total over the opened leaves."""
    total = 0.0
    for t in range(len(leaf_of)):
        s = slot_of[leaf_of[t, label]]
        if s >= 0 and done[first + t, s]:
            total += np.exp(values[start[first + t, s] + place_of[t, label]])
    return total


@njit(cache=True, nogil=True)
def _unknown(leaf_of, slot_of, done, bound, first, label):  # type: ignore[no-untyped-def]
    """What a label's leaves that are not opened yet can add at most."""
    total = 0.0
    for t in range(len(leaf_of)):
        s = slot_of[leaf_of[t, label]]
        if s >= 0 and not done[first + t, s]:
            total += bound[first + t, s]
    return total


@njit(cache=True, nogil=True)
def _least_total(leaf_of, place_of, slot_of, start, done, values, first, labels, k):  # type: ignore[no-untyped-def]
    """A total that k labels are known to reach: the given ones, if they are so many."""
    if len(labels) < k:
        return 0.0
    least = np.inf
    for label in labels:
        known = _known(leaf_of, place_of, slot_of, start, done, values, first, label)
        least = min(least, known)
    return least * (1.0 - SLACK)


@njit(cache=True, nogil=True)
def _wanted(index, beams, opened, k, limit, query, slot, closed):  # type: ignore[no-untyped-def]
    """The leaves to be opened next, as pairs of query and slot, and how many they are.

    No more than ``limit`` leaves of a beam are opened in order. A document is closed when only
    labels that are known already can be among its best.
    """
    n_trees = len(index.roots)
    leaf_of, place_of = index.leaf_of, index.place_of
    targets, target_indptr = index.targets, index.target_indptr
    node, held, bound = beams.node, beams.held, beams.bound
    start, done, values, front = opened.start, opened.done, opened.values, opened.front
    best_label, n_best = opened.best_label, opened.n_best
    slot_of = np.full(len(index.leaf) + 1, -1, np.int32)  # the last for "no leaf", -1
    n = 0
    for i in range(len(closed)):
        if closed[i]:
            continue
        first = i * n_trees
        _note_slots(node, held, first, n_trees, slot_of)
        least = _least_total(
            leaf_of, place_of, slot_of, start, done, values, first, best_label[i, : n_best[i]], k
        )
        # What a label in no opened leaf can reach: the best closed leaf in each tree.
        reach = 0.0
        for q in range(first, first + n_trees):
            if front[q] < held[q]:
                reach += bound[q, front[q]]
        before = n
        if reach >= least:
            for q in range(first, first + n_trees):
                others = reach - bound[q, front[q]] if front[q] < held[q] else reach
                while (
                    front[q] < min(limit, held[q])
                    and (others + bound[q, front[q]]) * (1.0 + SLACK) >= least
                ):
                    query[n] = q
                    slot[n] = front[q]
                    n += 1
                    front[q] += 1
            closed[i] = n == before  # all are open
        else:
            # Their leaves in the other trees complete the known labels.
            closed[i] = True
            for q in range(first, first + n_trees):
                others = reach - bound[q, front[q]] if front[q] < held[q] else reach
                # A label whose best tree is this one reaches at most n_trees times its score
                # here and, where its leaf is closed, the bound of that tree.
                share = (least - others) / n_trees
                cut = np.float32(np.log(share) - SLACK) if share > 0.0 else np.float32(-np.inf)
                for s in range(front[q]):
                    begin = target_indptr[node[q, s]]
                    for t in range(target_indptr[node[q, s] + 1] - begin):
                        if values[start[q, s] + t] < cut:
                            continue
                        label = targets[begin + t]
                        missing = _unknown(leaf_of, slot_of, done, bound, first, label)
                        if missing == 0.0:
                            continue
                        known = _known(
                            leaf_of, place_of, slot_of, start, done, values, first, label
                        )
                        if known + missing < least:
                            continue
                        for tree in range(n_trees):
                            other = slot_of[leaf_of[tree, label]]
                            if other >= 0 and not done[first + tree, other]:
                                n = _once(query, slot, before, n, first + tree, other)
        _forget_slots(node, held, first, n_trees, slot_of)
    return n


@njit(cache=True, nogil=True)
def _once(query, slot, before, n, q, s):  # type: ignore[no-untyped-def]
    """Append a pair unless it is there from ``before`` on; returns how many there are."""
    for j in range(before, n):
        if query[j] == q and slot[j] == s:
            return n
    query[n] = q
    slot[n] = s
    return n + 1
