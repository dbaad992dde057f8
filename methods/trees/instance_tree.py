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
from methods.trees._introsort import sort_descending
from methods.trees._mersenne import next_uint32

EPS = 1e-6
"""nDCG must rise by this much for another turn."""


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
def _local_columns(indptr, indices, data, documents, n_features, bias, count):  # type: ignore[no-untyped-def]
    """The documents by column over the features that occur, the bias last.

    ``count`` is int64[n_features] of zeros, and is left so.
    """
    nnz = 0
    for i in documents:
        for p in range(indptr[i], indptr[i + 1]):
            count[indices[p]] += 1
        nnz += indptr[i + 1] - indptr[i]
    d = 0
    for f in range(n_features):
        d += count[f] > 0
    features = np.empty(d + 1, np.int32)
    out_indptr = np.empty(d + 2, np.int64)
    out_indptr[0] = 0
    at = 0
    for f in range(n_features):
        if count[f] > 0:
            features[at] = f
            out_indptr[at + 1] = out_indptr[at] + count[f]
            count[f] = out_indptr[at]
            at += 1
    features[d] = n_features
    out_indptr[d + 1] = out_indptr[d] + len(documents)
    rows = np.empty(nnz + len(documents), np.uint32)  # unsigned: no index is taken for negative
    values = np.empty(nnz + len(documents), np.float32)
    for row in range(len(documents)):
        i = documents[row]
        for p in range(indptr[i], indptr[i + 1]):
            q = count[indices[p]]
            rows[q] = row
            values[q] = data[p]
            count[indices[p]] = q + 1
        rows[nnz + row] = row
        values[nnz + row] = bias
    for f in features[:d]:
        count[f] = 0
    return features, out_indptr, rows, values


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
    history = List()
    ndcg = np.float32(-2.0)
    sums = np.empty(n_local, np.float32)
    order = np.empty(n_local, np.int64)
    while True:
        lead = np.zeros(n_local, np.float32)
        new_ndcg = np.float32(0.0)
        for which in (-1, 1):
            for label in range(n_local):
                sums[label] = 0.0
                order[label] = label
            for i in range(n):
                if side[i] == which:
                    for p in range(indptr[i], indptr[i + 1]):
                        sums[local[p]] += values[p] * inverse_ideal[documents[i]]
            sort_descending(sums, order)
            for rank in range(n_local):
                lead[order[rank]] += np.float32(which) * discounts[rank]
                new_ndcg += discounts[rank] * sums[rank]
        new_ndcg /= np.float32(n)
        history.append(new_ndcg)
        for i in range(n):
            gain = np.float32(0.0)
            for p in range(indptr[i], indptr[i + 1]):
                gain += values[p] * inverse_ideal[documents[i]] * lead[local[p]]
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
    local = np.empty(nnz, np.int64)
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
def grow(  # type: ignore[no-untyped-def]
    indptr, indices, data, n_features, bias,
    label_indptr, label_indices, label_values, n_labels,
    max_leaf, labels_per_leaf, C, use_ideal, state,
):  # fmt: skip
    """Grow one tree; the arrays of :class:`InstanceTree`."""
    n_documents = len(indptr) - 1
    count = np.zeros(n_features, np.int64)
    number = np.full(n_labels, -1, np.int64)
    discounts = rank_discounts(max(n_labels, 1))
    inverse_ideal = ideal_gains(np.diff(label_indptr), discounts, use_ideal)

    order = np.arange(n_documents)  # documents, those of a node side by side
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
        documents = order[starts[v] : stops[v]].copy()
        n = len(documents)
        sub_indptr, local, values, names = _local_labels(
            label_indptr, label_indices, label_values, documents, number
        )
        split = False
        features = np.empty(0, np.int32)
        weights = np.empty(0, np.float32)
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
            n_upper = np.sum(side > 0)
            if 0 < n_upper < n:
                columns, col_indptr, rows, x = _local_columns(
                    indptr, indices, data, documents, n_features, bias, count
                )
                # Each side weighs the same (C over its share), which keeps trees balanced.
                share = np.float32(n_upper) / np.float32(n)
                other = np.float32(n - n_upper) / np.float32(n)
                costs = np.empty(n, np.float32)
                for i in range(n):
                    costs[i] = C / (share if side[i] > 0 else other)
                w = l1_logistic.fit(col_indptr, rows, x, side, costs, state)
                kept = np.flatnonzero(np.abs(w) > 1e-16)
                features = columns[kept]
                weights = w[kept].astype(np.float32)
                # Summed by columns in float32 as the authors do; where the margin is zero but for
                # rounding, prediction, which sums by rows, may decide otherwise.
                margins = np.zeros(n, np.float32)
                for j in kept:
                    for p in range(col_indptr[j], col_indptr[j + 1]):
                        margins[rows[p]] += w[j] * x[p]
                for i in range(n):
                    side[i] = 1 if margins[i] >= 0.0 else -1
                n_upper = np.sum(side > 0)
                if 0 < n_upper < n:
                    split = True
                    up = starts[v]
                    down = starts[v] + n_upper
                    for i in range(n):
                        if side[i] > 0:
                            order[up] = documents[i]
                            up += 1
                        else:
                            order[down] = documents[i]
                            down += 1
                    left.append(len(starts))
                    right.append(len(starts) + 1)
                    starts.append(starts[v])
                    stops.append(starts[v] + n_upper)
                    starts.append(starts[v] + n_upper)
                    stops.append(stops[v])
        if split:
            w_features.append(features)
            w_values.append(weights)
            leaf_labels.append(np.empty(0, np.int32))
            leaf_scores.append(np.empty(0, np.float32))
        else:
            w_features.append(features[:0])
            w_values.append(weights[:0])
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
    indptr, indices, data, n_features, bias,
    label_indptr, label_indices, label_values, n_labels,
    max_leaf, labels_per_leaf, C, use_ideal, state,
):  # fmt: skip
    """:func:`grow`, and its lists joined into arrays."""
    children, w_features, w_values, leaf_labels, leaf_scores = grow(
        indptr, indices, data, n_features, bias,
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
