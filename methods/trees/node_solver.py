"""The classifiers of one tree node, trained side by side (L2-regularised squared hinge).

Parabel and Bonsai train each classifier with liblinear's dual coordinate descent on the documents
that reach the node. Here a block of classifiers goes through the node's documents together: the
weights of one feature lie side by side, so that each step is a short dense loop over classifiers
instead of a gather for each. The documents' order is shared by the block, and each classifier
stops where liblinear would stop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from methods._kernels.random import shuffle, stream
from methods._kernels.rows import gather_scaled
from methods.trees.margins import CACHE_LINE
from methods.trees.node_problem import grouped_positives

BLOCK = 128
"""Classifiers trained side by side: a whole leaf of Parabel's."""


@dataclass(frozen=True)
class SolverSettings:
    """How a node's classifiers are trained (Parabel -c, -n, -tcl, -b)."""

    C: float = 1.0
    eps: float = 0.1
    passes: int = 20
    threshold: float = 0.1
    bias: float = 1.0


class NodeWeights(NamedTuple):
    """Weights of a node's classifiers: sparse, one row per feature that any of them uses."""

    features: np.ndarray  # int32[r], ascending
    indptr: np.ndarray  # int64[r + 1]
    targets: np.ndarray  # int32: which classifier
    values: np.ndarray  # float32


_FAST = {"contract", "reassoc", "nsz", "arcp"}
AHEAD = 32
"""Documents that are read into the cache together, before the steps on them."""


@njit(cache=True, nogil=True)
def _positives_by_row(pos_indptr, pos_rows, n):  # type: ignore[no-untyped-def]
    """For each row the classifiers it is a positive of."""
    indptr = np.zeros(n + 1, np.int64)
    for p in range(pos_indptr[-1]):
        indptr[pos_rows[p] + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    at = indptr[:-1].copy()
    classifiers = np.empty(pos_indptr[-1], np.int32)
    for b in range(len(pos_indptr) - 1):
        for p in range(pos_indptr[b], pos_indptr[b + 1]):
            classifiers[at[pos_rows[p]]] = b
            at[pos_rows[p]] += 1
    return indptr, classifiers


@njit(cache=True, nogil=True)
def _squared_norms(indptr, values):  # type: ignore[no-untyped-def]
    squares = np.empty(len(indptr) - 1, np.float32)
    for i in range(len(squares)):
        total = np.float32(0.0)
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * values[p]
        squares[i] = total
    return squares


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _read_ahead(indptr, columns, values, squares, row_indptr, alpha, documents, sink):  # type: ignore[no-untyped-def]
    """Read what the steps on some documents need.

    They come in random order, each a few misses of the cache. Here those of many are waited for at
    once; steps, which depend on each other, would wait one by one.
    """
    total = np.float32(0.0)
    for i in documents:
        total += squares[i] + np.float32(row_indptr[i])
        for b in range(0, alpha.shape[1], CACHE_LINE):
            total += alpha[i, b]
        last = indptr[i + 1] - 1
        for p in range(indptr[i], last, CACHE_LINE):
            total += values[p] + np.float32(columns[p])
        total += values[last] + np.float32(columns[last])
    sink[0] = total  # of no use, but without it the compiler would read nothing


@njit(cache=True, nogil=True, fastmath=_FAST)
def _one_pass(indptr, columns, values, squares, order, row_indptr, row_slot, W, alpha, diag, span):  # type: ignore[no-untyped-def]
    """Every document once: a coordinate step of each classifier of the block.

    ``W`` is flat, ``width`` weights per feature; ``span`` takes the largest and the smallest
    projected gradient of each classifier. Unsigned indices and a width known only at run time
    let the compiler turn the loops over classifiers into vector instructions.
    """
    width = np.uint64(alpha.shape[1])
    sign = np.full(width, np.float32(-1.0))
    shift = diag[0].copy()
    margin = np.empty(width, np.float32)
    step = np.empty(width, np.float32)
    highest = span[0]
    lowest = span[1]
    highest[:] = -np.inf
    lowest[:] = np.inf
    sink = np.empty(1, np.float32)
    for at in range(len(order)):
        if at % AHEAD == 0:
            documents = order[at : at + AHEAD]
            _read_ahead(indptr, columns, values, squares, row_indptr, alpha, documents, sink)
        i = order[at]
        start, stop = indptr[i], indptr[i + 1]
        margin[:] = 0.0
        for p in range(start, stop):
            x = values[p]
            o = np.uint64(columns[p]) * width
            for b in range(width):
                margin[b] += x * W[o + b]
        for q in range(row_indptr[i], row_indptr[i + 1]):
            b = row_slot[q]
            if b >= 0:
                sign[b] = 1.0
                shift[b] = diag[1, b]
        a = alpha[i]
        square = squares[i]
        change = np.float32(0.0)
        for b in range(width):
            old = a[b]
            gradient = sign[b] * margin[b] - np.float32(1.0) + old * shift[b]
            new = max(old - gradient / (square + shift[b]), np.float32(0.0))
            projected = gradient if old > 0.0 else min(gradient, np.float32(0.0))
            highest[b] = max(highest[b], projected)
            lowest[b] = min(lowest[b], projected)
            a[b] = new
            step[b] = (new - old) * sign[b]
            change += abs(new - old)
        for q in range(row_indptr[i], row_indptr[i + 1]):
            b = row_slot[q]
            if b >= 0:
                sign[b] = -1.0
                shift[b] = diag[0, b]
        if change > 0.0:
            for p in range(start, stop):
                x = values[p]
                o = np.uint64(columns[p]) * width
                for b in range(width):
                    W[o + b] += x * step[b]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _one_pass_of_two(  # type: ignore[no-untyped-def]
    indptr, columns, values, squares, order, row_indptr, row_slot, W, alpha, diag, span
):
    """:func:`_one_pass` for the two children of a binary node, kept in registers."""
    one, zero = np.float32(1.0), np.float32(0.0)
    high_0 = high_1 = np.float32(-np.inf)
    low_0 = low_1 = np.float32(np.inf)
    sink = np.empty(1, np.float32)
    for at in range(len(order)):
        if at % AHEAD == 0:
            documents = order[at : at + AHEAD]
            _read_ahead(indptr, columns, values, squares, row_indptr, alpha, documents, sink)
        i = order[at]
        start, stop = indptr[i], indptr[i + 1]
        margin_0 = margin_1 = zero
        for p in range(start, stop):
            o = np.uint64(columns[p]) * np.uint64(2)
            margin_0 += values[p] * W[o]
            margin_1 += values[p] * W[o + np.uint64(1)]
        sign_0 = sign_1 = -one
        shift_0, shift_1 = diag[0, 0], diag[0, 1]
        for q in range(row_indptr[i], row_indptr[i + 1]):
            if row_slot[q] == 0:
                sign_0, shift_0 = one, diag[1, 0]
            elif row_slot[q] == 1:
                sign_1, shift_1 = one, diag[1, 1]
        old_0, old_1 = alpha[i, 0], alpha[i, 1]
        gradient_0 = sign_0 * margin_0 - one + old_0 * shift_0
        gradient_1 = sign_1 * margin_1 - one + old_1 * shift_1
        new_0 = max(old_0 - gradient_0 / (squares[i] + shift_0), zero)
        new_1 = max(old_1 - gradient_1 / (squares[i] + shift_1), zero)
        projected_0 = gradient_0 if old_0 > 0.0 else min(gradient_0, zero)
        projected_1 = gradient_1 if old_1 > 0.0 else min(gradient_1, zero)
        high_0, high_1 = max(high_0, projected_0), max(high_1, projected_1)
        low_0, low_1 = min(low_0, projected_0), min(low_1, projected_1)
        step_0 = (new_0 - old_0) * sign_0
        step_1 = (new_1 - old_1) * sign_1
        alpha[i, 0] = new_0
        alpha[i, 1] = new_1
        if step_0 != 0.0 or step_1 != 0.0:
            for p in range(start, stop):
                o = np.uint64(columns[p]) * np.uint64(2)
                W[o] += values[p] * step_0
                W[o + np.uint64(1)] += values[p] * step_1
    span[0, 0], span[0, 1] = high_0, high_1
    span[1, 0], span[1, 1] = low_0, low_1


@njit(cache=True, nogil=True)
def solve_block(  # type: ignore[no-untyped-def]
    indptr, columns, values, n_local, pos_indptr, pos_rows, diag, eps, passes, state
):
    """Weights float32[n_local, B] of B classifiers, and the passes that each took.

    The positives of classifier b are ``pos_rows[pos_indptr[b]:pos_indptr[b + 1]]``; ``diag[0, b]``
    and ``diag[1, b]`` are 0.5 / C of its negatives and positives. A classifier is done when its
    projected gradients span at most ``eps``; the block narrows as classifiers leave it.
    """
    n = len(indptr) - 1
    n_classifiers = len(pos_indptr) - 1
    row_indptr, row_classifier = _positives_by_row(pos_indptr, pos_rows, n)
    squares = _squared_norms(indptr, values)
    out = np.zeros((n_local, n_classifiers), np.float32)
    used = np.zeros(n_classifiers, np.int32)

    members = np.arange(n_classifiers)  # the classifier in each slot of the block
    width = _padded(n_classifiers)
    W = np.zeros(n_local * width, np.float32)
    alpha = np.zeros((n, width), np.float32)
    slot_diag = np.full((2, width), np.float32(0.5))
    slot_diag[:, :n_classifiers] = diag
    row_slot = row_classifier.copy()
    span = np.empty((2, width), np.float32)
    order = np.arange(n)
    done = np.zeros(n_classifiers, np.bool_)
    for passed in range(1, passes + 1):
        shuffle(state, order, n)
        if width == 2:
            _one_pass_of_two(
                indptr, columns, values, squares, order, row_indptr, row_slot, W, alpha, slot_diag,
                span,
            )  # fmt: skip
        else:
            _one_pass(
                indptr, columns, values, squares, order, row_indptr, row_slot, W, alpha, slot_diag,
                span,
            )  # fmt: skip
        left = n_ready = 0
        ready = np.empty(len(members), np.int64)
        for b in range(len(members)):
            label = members[b]
            if done[label]:
                continue
            if span[0, b] - span[1, b] <= eps or passed == passes:
                done[label] = True
                used[label] = passed
                ready[n_ready] = b
                n_ready += 1
            else:
                left += 1
        # By feature: a classifier's weights alone would be a cache line each.
        for f in range(n_local if n_ready > 0 else 0):
            for b in ready[:n_ready]:
                out[f, members[b]] = W[f * width + b]
        if left == 0:
            break
        if _padded(left) < width:
            keep = np.empty(left, np.int64)
            at = 0
            for b in range(len(members)):
                if not done[members[b]]:
                    keep[at] = b
                    at += 1
            new_width = _padded(left)
            W, alpha = _narrowed(W, alpha, keep, new_width, n_local)
            slot_diag = np.full((2, new_width), np.float32(0.5))
            place = np.full(n_classifiers, -1, np.int32)
            for b in range(left):
                place[members[keep[b]]] = b
                slot_diag[0, b] = diag[0, members[keep[b]]]
                slot_diag[1, b] = diag[1, members[keep[b]]]
            members = members[keep]
            for q in range(len(row_slot)):
                row_slot[q] = place[row_classifier[q]]
            span = np.empty((2, new_width), np.float32)
            width = new_width
    return out, used


@njit(cache=True, nogil=True)
def _padded(n):  # type: ignore[no-untyped-def]
    """Block widths: 2, 4, or a multiple of 8 (one vector register of float32)."""
    if n <= 2:
        return 2
    return 4 if n <= 4 else (n + 7) // 8 * 8


@njit(cache=True, nogil=True)
def _narrowed(W, alpha, keep, new_width, n_local):  # type: ignore[no-untyped-def]
    """The kept slots of a block, side by side again."""
    width = alpha.shape[1]
    new_W = np.zeros(n_local * new_width, np.float32)
    for f in range(n_local):
        for b in range(len(keep)):
            new_W[f * new_width + b] = W[f * width + keep[b]]
    new_alpha = np.zeros((alpha.shape[0], new_width), np.float32)
    for i in range(alpha.shape[0]):
        for b in range(len(keep)):
            new_alpha[i, b] = alpha[i, keep[b]]
    return new_W, new_alpha


@njit(cache=True, nogil=True)
def prune(W, n_used, threshold):  # type: ignore[no-untyped-def]
    """The weights above a threshold, by row: indptr, classifier, value."""
    n = 0
    for f in range(W.shape[0]):
        for b in range(n_used):
            n += abs(W[f, b]) > threshold
    indptr = np.zeros(W.shape[0] + 1, np.int64)
    targets = np.empty(n, np.int32)
    values = np.empty(n, np.float32)
    at = 0
    for f in range(W.shape[0]):
        for b in range(n_used):
            if abs(W[f, b]) > threshold:
                targets[at] = b
                values[at] = W[f, b]
                at += 1
        indptr[f + 1] = at
    return indptr, targets, values


@njit(cache=True, nogil=True)
def _join_rows(features, indptrs, targets, values, first):  # type: ignore[no-untyped-def]
    total = 0
    for t in targets:
        total += len(t)
    out_features = np.empty(len(features), np.int32)
    out_indptr = np.zeros(len(features) + 1, np.int64)
    out_targets = np.empty(total, np.int32)
    out_values = np.empty(total, np.float32)
    rows = 0
    at = 0
    for f in range(len(features)):
        for block in range(len(first)):
            for p in range(indptrs[block][f], indptrs[block][f + 1]):
                out_targets[at] = targets[block][p] + first[block]
                out_values[at] = values[block][p]
                at += 1
        if at > out_indptr[rows]:
            out_features[rows] = features[f]
            rows += 1
            out_indptr[rows] = at
    return out_features[:rows].copy(), out_indptr[: rows + 1].copy(), out_targets, out_values


def train_node(
    X: sparse.csr_matrix,
    scales: np.ndarray,
    by_label: sparse.csc_matrix,
    targets: Sequence[np.ndarray],
    settings: SolverSettings,
    factors: np.ndarray,
    seed_axes: tuple[int, ...],
) -> NodeWeights:
    """One classifier for each target (a group of labels) on the documents of all of them.

    ``factors`` float64[2, targets] multiply C of a classifier's negatives and positives. Rows of X
    are multiplied by ``scales``; ``seed_axes`` seed the order of documents.
    """
    pos_indptr, documents = grouped_positives(by_label, targets)
    rows = np.unique(documents)
    pos_rows = np.searchsorted(rows, documents)
    features, indptr, columns, values = gather_scaled(
        X.indptr, X.indices, X.data, scales, rows, X.shape[1], np.float32(settings.bias)
    )
    diag = (0.5 / (settings.C * factors)).astype(np.float32)
    eps = np.float32(settings.eps)
    parts = []
    # Blocks are cut by the classifiers' order alone, so that they do not depend on the threads.
    firsts = range(0, len(targets), BLOCK)
    for first in firsts:
        last = min(first + BLOCK, len(targets))
        W, _ = solve_block(
            indptr,
            columns,
            values,
            len(features),
            pos_indptr[first : last + 1] - pos_indptr[first],
            pos_rows[pos_indptr[first] : pos_indptr[last]],
            diag[:, first:last],
            eps,
            settings.passes,
            stream(*seed_axes),
        )
        parts.append(prune(W, last - first, np.float32(settings.threshold)))
    indptrs, places, weights = zip(*parts, strict=True)
    return NodeWeights(*_join_rows(features, indptrs, places, weights, np.array(firsts)))
