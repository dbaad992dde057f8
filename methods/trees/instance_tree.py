"""A FastXML tree: documents split so that each side can be ranked well by one list of labels.

At a node, documents start on random sides; the best list of each side and the better side of each
document are found in turns until nDCG no longer rises, and an L1-regularised logistic hyperplane
learns the sides (Prabhu and Varma). PfastreXML is the same with labels weighted by their inverse
propensity and without the ideal DCG (Jain, Prabhu and Varma).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.typed import List

from methods._kernels.topk import best_of
from methods.trees import l1_logistic
from methods.trees._columns import ENTRY, divide
from methods.trees._introsort import sort_descending
from methods.trees._mersenne import next_uint32

EPS = 1e-6
"""nDCG must rise by this much for another turn."""
NO_WEIGHT = 1e-16
"""Weights of the hyperplane that are no larger are dropped."""


class InstanceTree(NamedTuple):
    """Flat arrays of a tree: node v goes to ``children[v, 0]`` (w.x >= 0) or ``children[v, 1]``.

    Weights of node v are ``weight_indptr[v]:weight_indptr[v + 1]``; a leaf (children -1) has its
    labels and their scores at ``label_indptr[v]:label_indptr[v + 1]``.
    """

    children: np.ndarray
    weight_indptr: np.ndarray
    weight_features: np.ndarray
    weights: np.ndarray
    label_indptr: np.ndarray
    labels: np.ndarray
    label_scores: np.ndarray


@njit(cache=True, nogil=True)
def rank_discounts(n):  # type: ignore[no-untyped-def]
    """1 / log2(1 + rank) for ranks 1..n."""
    out = np.empty(n, np.float32)
    for r in range(n):
        out[r] = 1.0 / np.float32(np.log2(r + 2.0))
    return out


@njit(cache=True, nogil=True)
def ideal_gains(lengths, discounts, use_ideal):  # type: ignore[no-untyped-def]
    """1 / ideal DCG of a document by its number of labels; 1 where it is not used."""
    sums = np.empty(len(discounts), np.float32)
    total = np.float32(0.0)
    for r in range(len(discounts)):
        total += discounts[r]
        sums[r] = total
    out = np.ones(len(lengths), np.float32)
    if use_ideal:
        for i in range(len(lengths)):
            if lengths[i] > 0:
                out[i] = np.float32(1.0) / sums[lengths[i] - 1]
    return out


@njit(cache=True, nogil=True)
def split_by_ndcg(indptr, local, values, documents, n_local, inverse_ideal, discounts, side):  # type: ignore[no-untyped-def]
    """Move documents between sides (-1, 1) until nDCG stops rising; the nDCG of every turn.

    ``local`` are the documents' labels numbered within the node. Everything is float32, as in the
    authors' program: rounding tells labels apart that are equal otherwise.
    """
    n = len(documents)
    gains = np.empty(len(local), np.float32)
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            gains[p] = values[p] * inverse_ideal[documents[i]]
    history = List()
    ndcg = np.float32(-2.0)
    sums = np.empty((2, n_local), np.float32)
    order = np.empty(n_local, np.uint32)
    lead = np.empty(n_local, np.float32)
    while True:
        sums[:] = 0.0
        lead[:] = 0.0
        for i in range(n):
            of_side = sums[1 if side[i] > 0 else 0]
            for p in range(indptr[i], indptr[i + 1]):
                of_side[local[p]] += gains[p]
        new_ndcg = np.float32(0.0)
        for which in (-1, 1):
            ranked = sums[max(which, 0)]
            for label in range(n_local):
                order[label] = label
            sort_descending(ranked, order)
            for rank in range(n_local):
                lead[order[rank]] += np.float32(which) * discounts[rank]
                new_ndcg += discounts[rank] * ranked[rank]
        new_ndcg /= np.float32(n)
        history.append(new_ndcg)
        for i in range(n):
            gain = np.float32(0.0)
            for p in range(indptr[i], indptr[i + 1]):
                gain += gains[p] * lead[local[p]]
            if gain > 0.0:
                side[i] = 1
            elif gain < 0.0:
                side[i] = -1
        if new_ndcg - ndcg < np.float32(EPS):
            return history
        ndcg = new_ndcg


@njit(cache=True, nogil=True)
def _local_labels(indptr, indices, data, documents, number):  # type: ignore[no-untyped-def]
    """The documents' labels numbered within the node; ``number`` is int64[L] of -1, left so."""
    nnz = 0
    for i in documents:
        nnz += indptr[i + 1] - indptr[i]
    out_indptr = np.zeros(len(documents) + 1, np.int64)
    local = np.empty(nnz, np.uint32)
    values = np.empty(nnz, np.float32)
    names = np.empty(nnz, np.int32)
    n_local = 0
    for i in documents:
        for p in range(indptr[i], indptr[i + 1]):
            if number[indices[p]] < 0:
                number[indices[p]] = 0
                names[n_local] = indices[p]
                n_local += 1
    # Ascending, so that among labels of equal weight the lower is ranked first.
    names[:n_local].sort()
    for q in range(n_local):
        number[names[q]] = q
    at = 0
    for row in range(len(documents)):
        i = documents[row]
        for p in range(indptr[i], indptr[i + 1]):
            local[at] = number[indices[p]]
            values[at] = data[p]
            at += 1
        out_indptr[row + 1] = at
    for label in names[:n_local]:
        number[label] = -1
    return out_indptr, local, values, names[:n_local].copy()


@njit(cache=True, nogil=True)
def _margin(indptr, indices, data, i, n_features, bias, dense):  # type: ignore[no-untyped-def]
    """w.x of document i for weights that are spread out in ``dense``, the bias last."""
    margin = np.float32(bias * dense[n_features])
    for p in range(indptr[i], indptr[i + 1]):
        margin += data[p] * dense[indices[p]]
    return margin


@njit(cache=True, nogil=True)
def _hyperplane(indptr, entries, C, side, state):  # type: ignore[no-untyped-def]
    """Learn the sides of a node's documents; its weights. ``side`` becomes where they fall."""
    n = len(side)
    n_upper = np.sum(side > 0)
    # Each side weighs the same (C over its share), which keeps trees balanced.
    share = np.float32(n_upper) / np.float32(n)
    other = np.float32(n - n_upper) / np.float32(n)
    costs = np.empty(n, np.float32)
    for i in range(n):
        costs[i] = C / (share if side[i] > 0 else other)
    w = l1_logistic.fit(indptr, entries, side, costs, state)
    # Summed by columns in float32 as the authors do; where the margin is zero but for
    # rounding, prediction, which sums by rows, may decide otherwise.
    margins = np.zeros(n, np.float32)
    for j in range(len(w)):
        if abs(w[j]) > NO_WEIGHT:
            for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                margins[entries[p].row] += w[j] * entries[p].value
    for i in range(n):
        side[i] = 1 if margins[i] >= 0.0 else -1
    return w


@njit(cache=True, nogil=True)
def _deal(documents, side, lengths, order, code):  # type: ignore[no-untyped-def]
    """Order documents by side, upper first; how many those are, and how many entries they have.

    ``code`` becomes what :func:`divide` reads.
    """
    n_upper = np.sum(side > 0)
    n_entries = 0
    up = 0
    down = 0
    for i in range(len(documents)):
        if side[i] > 0:
            order[up] = documents[i]
            code[i] = 2 * up + 1
            n_entries += lengths[documents[i]]
            up += 1
        else:
            order[n_upper + down] = documents[i]
            code[i] = 2 * down
            down += 1
    return n_upper, n_entries


@njit(cache=True, nogil=True)
def grow(  # type: ignore[no-untyped-def]
    root_features, root_indptr, root_entries, lengths,
    label_indptr, label_indices, label_values, n_labels,
    max_leaf, labels_per_leaf, C, use_ideal, state,
):  # fmt: skip
    """Grow one tree; the arrays of :class:`InstanceTree`.

    It starts from the columns of all documents (:func:`columns_of`), which have ``lengths`` entries
    each, the bias among them.
    """
    n_documents = len(lengths)
    number = np.full(n_labels, -1, np.int64)
    discounts = rank_discounts(max(n_labels, 1))
    inverse_ideal = ideal_gains(np.diff(label_indptr), discounts, use_ideal)

    order = np.arange(n_documents)  # documents, those of a node side by side
    code = np.empty(n_documents, np.uint32)
    # Columns of the nodes to come: those of this level, and room for those of the next.
    here = root_entries
    below = np.empty(len(root_entries), ENTRY)
    spare = np.empty(len(root_entries), ENTRY)
    level_stop = 1
    used = 0
    columns = List()  # features and indptr of each node, and where its entries begin
    columns.append((root_features, root_indptr, 0))
    no_columns = (root_features[:0], root_indptr[:0], 0)
    starts = List()
    stops = List()
    left = List()
    right = List()
    w_features = List()
    w_values = List()
    leaf_labels = List()
    leaf_scores = List()
    starts.append(0)
    stops.append(n_documents)
    v = 0
    while v < len(starts):
        if v == level_stop:
            # The root's columns belong to all trees, and are not written over.
            here, below, spare = below, spare, below
            level_stop = len(starts)
            used = 0
        documents = order[starts[v] : stops[v]].copy()
        n = len(documents)
        sub_indptr, local, values, names = _local_labels(
            label_indptr, label_indices, label_values, documents, number
        )
        split = False
        if n > max_leaf:
            side = np.empty(n, np.int64)
            for i in range(n):
                side[i] = 1 if next_uint32(state) & 1 else -1
            split_by_ndcg(
                sub_indptr,
                local,
                values,
                documents,
                len(names),
                inverse_ideal,
                discounts,
                side,
            )
            if 0 < np.sum(side > 0) < n:
                features, indptr, begin = columns[v]
                entries = here[begin : begin + indptr[-1]]
                w = _hyperplane(indptr, entries, C, side, state)
                split = bool(0 < np.sum(side > 0) < n)
        if split:
            kept = np.flatnonzero(np.abs(w) > NO_WEIGHT)
            w_features.append(features[kept])
            w_values.append(w[kept].astype(np.float32))
            leaf_labels.append(np.empty(0, np.int32))
            leaf_scores.append(np.empty(0, np.float32))
            n_upper, n_entries = _deal(documents, side, lengths, order[starts[v] : stops[v]], code)
            left.append(len(starts))
            right.append(len(starts) + 1)
            starts.append(starts[v])
            stops.append(starts[v] + n_upper)
            starts.append(starts[v] + n_upper)
            stops.append(stops[v])
            if max(n_upper, n - n_upper) > max_leaf:
                out = below[used : used + len(entries)]
                upper, upper_indptr, lower, lower_indptr = divide(
                    features, indptr, entries, code, out, n_entries
                )
                columns.append((upper, upper_indptr, used))
                columns.append((lower, lower_indptr, used + n_entries))
                used += len(entries)
            else:
                columns.append(no_columns)
                columns.append(no_columns)
        else:
            w_features.append(np.empty(0, np.int32))
            w_values.append(np.empty(0, np.float32))
            left.append(-1)
            right.append(-1)
            sums = np.zeros(len(names), np.float64)
            for p in range(len(local)):
                sums[local[p]] += values[p]
            best = np.full(min(labels_per_leaf, len(names)), -1, np.int32)
            best_scores = np.empty(len(best), np.float32)
            ids = np.arange(len(names)).astype(np.int32)
            best_of(sums / max(n, 1), ids, best, best_scores)
            leaf_labels.append(names[best])
            leaf_scores.append(best_scores)
        columns[v] = no_columns
        v += 1

    children = np.empty((len(left), 2), np.int64)
    for v in range(len(left)):
        children[v, 0] = left[v]
        children[v, 1] = right[v]
    return children, w_features, w_values, leaf_labels, leaf_scores


@njit(cache=True, nogil=True)
def _join(parts, out):  # type: ignore[no-untyped-def]
    at = 0
    for part in parts:
        out[at : at + len(part)] = part
        at += len(part)


@njit(cache=True, nogil=True)
def _lengths(parts):  # type: ignore[no-untyped-def]
    out = np.zeros(len(parts) + 1, np.int64)
    for i in range(len(parts)):
        out[i + 1] = out[i] + len(parts[i])
    return out


@njit(cache=True, nogil=True)
def grow_flat(  # type: ignore[no-untyped-def]
    root_features, root_indptr, root_entries, lengths,
    label_indptr, label_indices, label_values, n_labels,
    max_leaf, labels_per_leaf, C, use_ideal, state,
):  # fmt: skip
    """:func:`grow`, and its lists joined into arrays."""
    children, w_features, w_values, leaf_labels, leaf_scores = grow(
        root_features, root_indptr, root_entries, lengths,
        label_indptr, label_indices, label_values, n_labels,
        max_leaf, labels_per_leaf, C, use_ideal, state,
    )  # fmt: skip
    weight_indptr = _lengths(w_features)
    features = np.empty(weight_indptr[-1], np.int32)
    weights = np.empty(weight_indptr[-1], np.float32)
    _join(w_features, features)
    _join(w_values, weights)
    label_ptr = _lengths(leaf_labels)
    labels = np.empty(label_ptr[-1], np.int32)
    scores = np.empty(label_ptr[-1], np.float32)
    _join(leaf_labels, labels)
    _join(leaf_scores, scores)
    return children, weight_indptr, features, weights, label_ptr, labels, scores


@njit(cache=True, nogil=True)
def leaves_of(  # type: ignore[no-untyped-def]
    indptr, indices, data, n_features, bias, children, weight_indptr, weight_features, weights, out
):
    """The leaf that each document falls into, documents of a node taken together."""
    n = len(indptr) - 1
    n_nodes = len(children)
    dense = np.zeros(n_features + 1, np.float32)
    order = np.arange(n)
    scratch = np.empty(n, np.int64)
    starts = np.zeros(n_nodes, np.int64)
    stops = np.zeros(n_nodes, np.int64)
    stops[0] = n
    # Children come after their parents, so one sweep serves all nodes.
    for v in range(n_nodes):
        if children[v, 0] < 0:
            for q in range(starts[v], stops[v]):
                out[order[q]] = v
            continue
        if starts[v] == stops[v]:
            continue
        for p in range(weight_indptr[v], weight_indptr[v + 1]):
            dense[weight_features[p]] = weights[p]
        up = starts[v]
        n_down = 0
        for q in range(starts[v], stops[v]):
            i = order[q]
            if _margin(indptr, indices, data, i, n_features, bias, dense) >= 0.0:
                order[up] = i
                up += 1
            else:
                scratch[n_down] = i
                n_down += 1
        for q in range(n_down):
            order[up + q] = scratch[q]
        for p in range(weight_indptr[v], weight_indptr[v + 1]):
            dense[weight_features[p]] = 0.0
        starts[children[v, 0]] = starts[v]
        stops[children[v, 0]] = up
        starts[children[v, 1]] = up
        stops[children[v, 1]] = stops[v]
