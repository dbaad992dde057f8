"""L2-regularised squared hinge, one against the rest, for every label of a matrix at once.

The objective of a label is liblinear's primal (``-s 2 -B 1``), the bias regularised:

    1/2 |w|^2 + sum_i c_i max(0, 1 - y_i w.x_i)^2,   c_i = cost * weight of the label's side.

PW, PW-cb and variants like them only change ``positive_weight`` (PW eqs. 15, 21).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from methods._kernels.rows import copy_rows
from methods.linear.layout import Layout, lay_out
from methods.linear.newton import (
    ACTIVE,
    GAP,
    OBJECTIVE,
    PRODUCTS,
    REPORT,
    ROUNDS,
    VISITED,
    train_labels,
)

DEFAULT_TOL = 1e-3
MAX_SLOTS = 32  # labels in work at a time: more take memory and are not faster
MAX_TASK = 512  # labels handed to a thread at once


@dataclass(frozen=True)
class Solution:
    """Classifiers of the labels asked for, and how well each was solved."""

    labels: np.ndarray
    """int64[m]: which label each row below belongs to."""
    weights: sparse.csr_matrix
    """float32[m, D + 1], the bias last; entries below ``prune`` in size are left out."""
    report: np.ndarray
    """float64[m, 6], columns as in :mod:`methods.linear.newton`; before pruning."""

    @property
    def objective(self) -> np.ndarray:
        """The objective reached."""
        return np.asarray(self.report[:, OBJECTIVE])

    @property
    def gap(self) -> np.ndarray:
        """An upper bound on (objective - optimum) / objective."""
        return np.asarray(self.report[:, GAP])

    @property
    def rounds(self) -> np.ndarray:
        """Newton rounds made."""
        return self.report[:, ROUNDS].astype(np.int64)

    @property
    def products(self) -> np.ndarray:
        """Products with the Hessian made."""
        return self.report[:, PRODUCTS].astype(np.int64)

    @property
    def active(self) -> np.ndarray:
        """Rows inside the margin at the end."""
        return self.report[:, ACTIVE].astype(np.int64)

    @property
    def visited(self) -> np.ndarray:
        """Entries of active rows and candidates that gradients, products and searches went through.

        And of cold columns that products of X with a direction did. Besides these, each round goes
        through the hot columns of X once for the labels in work together.
        """
        return self.report[:, VISITED].astype(np.int64)


class OneVsRest:
    """The problems of all labels over one X; see :func:`solve` for the parameters.

    ``wide`` overrules which way X is laid out (:mod:`methods.linear.layout`), for comparison.
    """

    def __init__(
        self,
        X: sparse.csr_matrix,
        Y: sparse.csr_matrix,
        *,
        cost: float = 1.0,
        bias: bool = True,
        positive_weight: np.ndarray | None = None,
        negative_weight: np.ndarray | None = None,
        tol: float = DEFAULT_TOL,
        prune: float = 0.0,
        max_rounds: int = 200,
        threads: int = 1,
        memory_mb: float = 1024.0,
        wide: bool | None = None,
    ) -> None:
        if X.shape[0] != Y.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, Y {Y.shape[0]}")
        if not tol > 0 or not cost > 0:
            raise ValueError(f"cost and tol must be positive, not {cost} and {tol}")
        if not np.isfinite(X.data).all():
            raise ValueError("X has entries that are not finite")
        self.X = sparse.csr_matrix(X)
        self.n_labels = int(Y.shape[1])
        by_label = sparse.csc_matrix(Y)
        by_label.sum_duplicates()
        by_label.eliminate_zeros()
        self._label_indptr = by_label.indptr.astype(np.int64)
        self._label_rows = by_label.indices.astype(np.int64)
        self.cost_positive = cost * _weights("positive_weight", positive_weight, self.n_labels)
        self.cost_negative = cost * _weights("negative_weight", negative_weight, self.n_labels)
        self.bias = bias
        self.tol = tol
        self.prune = prune
        self.max_rounds = max_rounds
        self.threads = max(1, threads)
        self.memory_mb = memory_mb
        self.wide = wide
        self._layout: Layout | None = None

    def solve(self, labels: np.ndarray | None = None) -> Solution:
        """Train the given labels (all by default); the result has their order."""
        labels = np.arange(self.n_labels) if labels is None else np.asarray(labels, np.int64)
        jobs = list(self._jobs(labels))
        if self.threads == 1 or len(jobs) == 1:
            parts = [job() for job in jobs]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                parts = list(pool.map(lambda job: job(), jobs))
        return join_solutions(parts, labels, self.X.shape[1] + 1)

    def _jobs(self, labels: np.ndarray) -> Iterator[partial[Solution]]:
        """What can run at the same time, the longest first."""
        counts = np.diff(self._label_indptr)[labels]
        by_size = labels[np.argsort(-counts, kind="stable")]
        layout = self.layout  # made once, before the threads start
        task = int(np.clip(len(labels) // (4 * self.threads), MAX_SLOTS, MAX_TASK))
        for first in range(0, len(by_size), task):
            yield partial(self._train, by_size[first : first + task], layout)

    def _train(self, labels: np.ndarray, layout: Layout) -> Solution:
        """Train some labels."""
        rows = [
            self._label_rows[self._label_indptr[label] : self._label_indptr[label + 1]]
            for label in labels
        ]
        names = np.append(layout.columns, self.X.shape[1])
        indptr, columns, values, report = train_labels(
            *layout._replace(columns=names),
            np.float32(self.bias),
            np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64),
            np.concatenate([*rows, np.empty(0, np.int64)]),
            self.cost_positive[labels],
            self.cost_negative[labels],
            self.tol,
            self.max_rounds,
            self.slots,
            np.float32(self.prune),
        )
        weights = sparse.csr_matrix(
            (values, columns, indptr), shape=(len(labels), self.X.shape[1] + 1)
        )
        return Solution(labels, weights, report)

    @property
    def layout(self) -> Layout:
        """X as the solver reads it."""
        if self._layout is None:
            self._layout = lay_out(self.X, wide=self.wide)
        return self._layout

    @property
    def slots(self) -> int:
        """How many labels share a pass over X, within the memory of a thread."""
        layout = self.layout
        per_slot = 4.0 * (3 * (len(layout.columns) + 1) + 2 * len(layout.indptr))
        fitting = int(self.memory_mb * 2**20 / self.threads / per_slot)
        if fitting >= 8:
            fitting = fitting // 8 * 8
        return int(np.clip(fitting, 1, MAX_SLOTS))


def solve(
    X: sparse.csr_matrix,
    Y: sparse.csr_matrix,
    *,
    labels: np.ndarray | None = None,
    cost: float = 1.0,
    bias: bool = True,
    positive_weight: np.ndarray | None = None,
    negative_weight: np.ndarray | None = None,
    tol: float = DEFAULT_TOL,
    prune: float = 0.0,
    max_rounds: int = 200,
    threads: int = 1,
    memory_mb: float = 1024.0,
) -> Solution:
    """Train a classifier for each label of Y (n x L; any stored non-zero is a positive).

    ``tol`` bounds the relative gap of each label's objective to its optimum. ``prune`` leaves
    out weights smaller than it (the objective reported is that before pruning). ``memory_mb``
    bounds the working memory of all threads, X and the result apart. The result does not depend
    on ``threads``, ``memory_mb`` or on which labels are trained together, bit for bit.
    """
    problem = OneVsRest(
        X,
        Y,
        cost=cost,
        bias=bias,
        positive_weight=positive_weight,
        negative_weight=negative_weight,
        tol=tol,
        prune=prune,
        max_rounds=max_rounds,
        threads=threads,
        memory_mb=memory_mb,
    )
    return problem.solve(labels)


def objective(
    X: sparse.csr_matrix,
    Y: sparse.csr_matrix,
    weights: sparse.csr_matrix,
    *,
    cost: float = 1.0,
    positive_weight: np.ndarray | None = None,
    negative_weight: np.ndarray | None = None,
) -> np.ndarray:
    """The objective of each row of ``weights`` (L x (D + 1), bias last) in float64, for checks."""
    n_labels = Y.shape[1]
    positive = cost * _weights("positive_weight", positive_weight, n_labels)
    negative = cost * _weights("negative_weight", negative_weight, n_labels)
    X64 = sparse.csr_matrix(X, dtype=np.float64)
    by_label = sparse.csc_matrix(Y)
    values = np.empty(n_labels)
    for first in range(0, n_labels, 128):
        part = slice(first, min(first + 128, n_labels))
        dense = np.asarray(weights[part].todense(), dtype=np.float64)
        scores = X64 @ dense[:, :-1].T + dense[:, -1]
        true = by_label[:, part].toarray() != 0
        slack = np.maximum(0.0, np.where(true, 1.0 - scores, 1.0 + scores))
        costs = np.where(true, positive[part], negative[part])
        values[part] = 0.5 * (dense**2).sum(axis=1) + (costs * slack**2).sum(axis=0)
    return values


def _weights(name: str, values: np.ndarray | None, n_labels: int) -> np.ndarray:
    if values is None:
        return np.ones(n_labels)
    values = np.asarray(values, np.float64)
    if values.shape != (n_labels,):
        raise ValueError(f"{name} has shape {values.shape}, there are {n_labels} labels")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative")
    return values


def join_solutions(parts: list[Solution], labels: np.ndarray, width: int) -> Solution:
    """Solutions of some labels each, in the order of ``labels``.

    The list is emptied: each part is let go as soon as it is copied.
    """
    if not parts:
        empty = sparse.csr_matrix((0, width), dtype=np.float32)
        return Solution(labels, empty, np.zeros((0, REPORT)))
    trained = np.concatenate([part.labels for part in parts])
    position = np.empty(len(labels), np.int64)  # in ``labels`` of each label trained
    position[np.argsort(trained, kind="stable")] = np.argsort(labels, kind="stable")
    report = np.empty((len(labels), REPORT))
    report[position] = np.concatenate([part.report for part in parts])
    lengths = np.empty(len(labels), np.int64)
    lengths[position] = np.concatenate([np.diff(part.weights.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    # Written at once where they belong: stacking and then ordering would copy all of it twice.
    indices = np.empty(indptr[-1], np.int32 if indptr[-1] < 2**31 else np.int64)
    data = np.empty(indptr[-1], np.float32)
    first = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        at = position[first : first + len(part.labels)]
        first += len(part.labels)
        rows = part.weights
        copy_rows(rows.indptr, rows.indices, rows.data, at, indptr, indices, data)
    weights = sparse.csr_matrix((data, indices, indptr), shape=(len(labels), width))
    return Solution(labels, weights, report)
