"""RankNet's network, loss and training on short lists of candidates (RankNet+Taug sec. 3.2).

A document is the base's k best labels with their scores y. A block maps scores to scores of the
same labels:

    residual    F = y + W_r y          W_r sparse: each label looks at its ``neighbours`` only
    bottleneck  F = y + W_r2 s(W_r1 y) s = relu, V hidden units

and blocks stack. Everything is written for one document at a time, so that no L x L matrix and no
n x L matrix exists; gradients are by hand.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse

from methods._kernels.random import below, shuffle
from methods._kernels.topk import best_of

RESIDUAL, BOTTLENECK = 0, 1
_TINY = 1e-8


@njit(cache=True, nogil=True)
def pair_loss(F, positive, negative, frequency, trade_off, margin, slope):  # type: ignore[no-untyped-def]
    """The population-aware loss of one document (RankNet+Taug sec. 3.2), and its gradient.

    ``positive`` and ``negative`` are positions in F, ``frequency`` holds the training count of
    the label at each position; ``slope`` takes dloss/dF.
    """
    slope[:] = 0.0
    loss = 0.0
    for i in positive:
        for j in positive:
            total = frequency[i] + frequency[j]
            if total <= 0.0:
                continue
            share = (frequency[i] - frequency[j]) / total
            term = share * (F[i] - F[j])
            if term > 0.0:
                loss += term
                slope[i] += share
                slope[j] -= share
    for i in positive:
        for k in negative:
            term = F[k] - F[i] + margin
            if term > 0.0:
                loss += trade_off * term
                slope[k] += trade_off
                slope[i] -= trade_off
    return loss


@njit(cache=True, nogil=True)
def _residual_forward(y, labels, position, indptr, columns, W, out):  # type: ignore[no-untyped-def]
    for i in range(len(labels)):
        total = y[i]
        for e in range(indptr[labels[i]], indptr[labels[i] + 1]):
            p = position[columns[e]]
            if p >= 0:
                total += W[e] * y[p]
        out[i] = total


@njit(cache=True, nogil=True)
def _move(parameter, squares, at, gradient, rate):  # type: ignore[no-untyped-def]
    """A step of AdaGrad; with a rate of 0 the gradient itself is left in ``squares``."""
    if rate == 0.0:
        squares[at] = gradient
    else:
        squares[at] += gradient * gradient
        parameter[at] -= rate * gradient / np.sqrt(squares[at] + _TINY)


@njit(cache=True, nogil=True)
def _residual_backward(slope, y, labels, position, indptr, columns, W, squares, rate, out):  # type: ignore[no-untyped-def]
    """Turn dloss/dF (``slope``) into dloss/dy (``out``) and move W."""
    for i in range(len(labels)):
        out[i] = slope[i]
    for i in range(len(labels)):
        if slope[i] == 0.0:
            continue
        for e in range(indptr[labels[i]], indptr[labels[i] + 1]):
            p = position[columns[e]]
            if p >= 0:
                out[p] += W[e] * slope[i]
                _move(W, squares, e, slope[i] * y[p], rate)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _bottleneck_forward(y, labels, W1, W2, hidden, out):  # type: ignore[no-untyped-def]
    V = len(hidden)
    hidden[:] = 0.0
    for p in range(len(labels)):
        row = W1[labels[p]]
        for v in range(V):
            hidden[v] += y[p] * row[v]
    for v in range(V):
        hidden[v] = max(hidden[v], 0.0)
    for i in range(len(labels)):
        row = W2[labels[i]]
        total = 0.0
        for v in range(V):
            total += row[v] * hidden[v]
        out[i] = y[i] + total


@njit(cache=True, nogil=True)
def _bottleneck_backward(slope, y, labels, W1, W2, squares1, squares2, hidden, rate, out):  # type: ignore[no-untyped-def]
    V = len(hidden)
    into = np.zeros(V)
    for i in range(len(labels)):
        out[i] = slope[i]
        if slope[i] == 0.0:
            continue
        row, squares = W2[labels[i]], squares2[labels[i]]
        for v in range(V):
            into[v] += slope[i] * row[v]
            _move(row, squares, v, slope[i] * hidden[v], rate)
    for v in range(V):
        if hidden[v] <= 0.0:
            into[v] = 0.0
    for p in range(len(labels)):
        row, squares = W1[labels[p]], squares1[labels[p]]
        total = 0.0
        for v in range(V):
            total += row[v] * into[v]
            _move(row, squares, v, y[p] * into[v], rate)
        out[p] += total


@njit(cache=True, nogil=True)
def forward(form, y, labels, position, indptr, columns, W, W1, W2, layers, hidden):  # type: ignore[no-untyped-def]
    """Scores after every block: ``layers[0]`` is y, ``layers[-1]`` the re-ranked scores.

    ``position[label]`` is the label's position among the candidates, -1 for all others.
    """
    n = len(labels)
    layers[0, :n] = y
    for b in range(len(layers) - 1):
        if form == RESIDUAL:
            _residual_forward(
                layers[b, :n], labels, position, indptr, columns, W[b], layers[b + 1, :n]
            )
        else:
            _bottleneck_forward(layers[b, :n], labels, W1[b], W2[b], hidden[b], layers[b + 1, :n])


@njit(cache=True, nogil=True)
def backward(  # type: ignore[no-untyped-def]
    form, slope, labels, position, indptr, columns, W, W1, W2, squares, squares1, squares2, layers,
    hidden, rate,
):  # fmt: skip
    """Send dloss/dF back through the blocks and move their weights."""
    n = len(labels)
    n_blocks = len(layers) - 1
    current = slope.copy()
    below_it = np.empty(n)
    for back in range(n_blocks):
        b = n_blocks - 1 - back
        if form == RESIDUAL:
            _residual_backward(
                current, layers[b, :n], labels, position, indptr, columns, W[b], squares[b], rate,
                below_it,
            )  # fmt: skip
        else:
            _bottleneck_backward(
                current, layers[b, :n], labels, W1[b], W2[b], squares1[b], squares2[b], hidden[b],
                rate, below_it,
            )  # fmt: skip
        current[:] = below_it


@njit(cache=True, nogil=True)
def train(  # type: ignore[no-untyped-def]
    form, candidates, scores, label_indptr, label_indices, counts, exempt,
    indptr, columns, W, W1, W2, n_negatives, trade_off, margin, rate, epochs, state,
):  # fmt: skip
    """Stochastic AdaGrad over documents; the mean loss of each epoch.

    Negatives are drawn among a document's candidates that are not its labels and not ``exempt``
    (bool[L]). Labels of a document that the base did not propose cannot be ranked, and are left
    out.
    """
    n, k = candidates.shape
    n_labels = len(counts)
    n_blocks = W.shape[0]
    squares, squares1, squares2 = np.zeros_like(W), np.zeros_like(W1), np.zeros_like(W2)
    position = np.full(n_labels, -1, np.int32)
    layers = np.empty((n_blocks + 1, k))
    hidden = np.zeros((n_blocks, W1.shape[2]))
    slope = np.empty(k)
    frequency = np.empty(k)
    positive = np.empty(k, np.int64)
    negative = np.empty(k, np.int64)
    order = np.arange(n)
    history = np.zeros(epochs)
    for epoch in range(epochs):
        shuffle(state, order, n)
        used = 0
        for i in order:
            length = 0
            while length < k and candidates[i, length] >= 0:
                position[candidates[i, length]] = length
                frequency[length] = counts[candidates[i, length]]
                length += 1
            labels = candidates[i, :length]
            n_positive = 0
            for p in range(label_indptr[i], label_indptr[i + 1]):
                at = position[label_indices[p]]
                if at >= 0:
                    positive[n_positive] = at
                    n_positive += 1
            if n_positive > 0:
                chosen = _draw_negatives(
                    positive[:n_positive], labels, exempt, n_negatives, negative, state
                )
                forward(
                    form, scores[i, :length], labels, position, indptr, columns, W, W1, W2, layers,
                    hidden,
                )  # fmt: skip
                history[epoch] += pair_loss(
                    layers[n_blocks, :length], positive[:n_positive], negative[:chosen], frequency,
                    trade_off, margin, slope[:length],
                )  # fmt: skip
                backward(
                    form, slope[:length], labels, position, indptr, columns, W, W1, W2, squares,
                    squares1, squares2, layers, hidden, rate,
                )  # fmt: skip
                used += 1
            for label in labels:
                position[label] = -1
        history[epoch] /= max(used, 1)
    return history


@njit(cache=True, nogil=True)
def _draw_negatives(positive, labels, exempt, n_negatives, out, state):  # type: ignore[no-untyped-def]
    """Different positions, neither positive nor of exempt labels, into ``out``; how many."""
    n = 0
    for p in range(len(labels)):
        taken = exempt[labels[p]]
        for q in positive:
            taken = taken or q == p
        if not taken:
            out[n] = p
            n += 1
    chosen = min(n, n_negatives)
    for i in range(chosen):
        j = i + below(state, n - i)
        out[i], out[j] = out[j], out[i]
    return chosen


@njit(cache=True, nogil=True)
def apply(form, candidates, scores, n_labels, indptr, columns, W, W1, W2, out):  # type: ignore[no-untyped-def]
    """The re-ranked scores of every candidate; positions without a candidate stay as they are."""
    n, k = candidates.shape
    n_blocks = W.shape[0]
    position = np.full(n_labels, -1, np.int32)
    layers = np.empty((n_blocks + 1, k))
    hidden = np.zeros((n_blocks, W1.shape[2]))
    for i in range(n):
        length = 0
        while length < k and candidates[i, length] >= 0:
            position[candidates[i, length]] = length
            length += 1
        labels = candidates[i, :length]
        forward(
            form, scores[i, :length], labels, position, indptr, columns, W, W1, W2, layers, hidden
        )
        out[i, :length] = layers[n_blocks, :length]
        for label in labels:
            position[label] = -1


def neighbour_pattern(candidates: np.ndarray, n_labels: int, neighbours: int) -> sparse.csr_matrix:
    """Which entries of W_r exist: a label itself and those most often proposed along with it.

    Ties go to the lower label. With ``neighbours`` >= L - 1 every pair that is ever proposed
    together has its entry, and no other could ever be trained.
    """
    real = candidates >= 0
    rows = np.repeat(np.arange(len(candidates)), real.sum(axis=1))
    by_label = sparse.csc_matrix(
        (np.ones(len(rows), np.float32), (rows, candidates[real])),
        shape=(len(candidates), n_labels),
    )
    indptr, columns = _most_often_together(
        candidates, by_label.indptr, by_label.indices, n_labels, min(neighbours, n_labels)
    )
    return sparse.csr_matrix(
        (np.zeros(len(columns), np.float32), columns, indptr), shape=(n_labels, n_labels)
    )


@njit(cache=True, nogil=True)
def _most_often_together(candidates, doc_indptr, docs, n_labels, neighbours):  # type: ignore[no-untyped-def]
    """Each label and its neighbours, ascending, as the rows of a pattern: pointers and columns."""
    times = np.zeros(n_labels, np.int64)
    touched = np.empty(n_labels, np.int32)
    chosen = np.empty(neighbours, np.int32)
    counts = np.empty(neighbours, np.float32)
    indptr = np.zeros(n_labels + 1, np.int64)
    columns = np.empty(n_labels * (neighbours + 1), np.int32)
    at = 0
    for label in range(n_labels):
        n = 0
        for d in range(doc_indptr[label], doc_indptr[label + 1]):
            for other in candidates[docs[d]]:
                if other >= 0 and other != label:
                    if times[other] == 0:
                        touched[n] = other
                        n += 1
                    times[other] += 1
        best_of(times, touched[:n], chosen, counts)
        kept = min(n, neighbours)
        columns[at] = label
        columns[at + 1 : at + 1 + kept] = chosen[:kept]
        columns[at : at + 1 + kept].sort()
        at += 1 + kept
        indptr[label + 1] = at
        for q in range(n):
            times[touched[q]] = 0
    return indptr, columns[:at].copy()
