"""One-vs-rest by our solver, by liblinear and by the peers: the programs that are timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from methods.linear.solver import solve
from methods.peers.napkinxc import NapkinXC
from methods.peers.pecos import environment_folder, train_weights

THREADS = 2


def _liblinear_labels(
    X: sparse.csr_matrix, Y: sparse.csc_matrix, weight: np.ndarray
) -> tuple[list[np.ndarray], float]:
    """LinearSVC on each column of Y: weights with the bias last, and the CPU time it took."""
    from sklearn.svm import LinearSVC

    start = time.process_time()
    found = []
    for column in range(Y.shape[1]):
        target = np.zeros(X.shape[0], np.int64)
        target[Y.indices[Y.indptr[column] : Y.indptr[column + 1]]] = 1
        model = LinearSVC(
            dual=True, tol=0.1, class_weight={0: 1.0, 1: float(weight[column])}, random_state=0
        ).fit(X, target)
        found.append(np.append(model.coef_[0], model.intercept_[0]))
    return found, time.process_time() - start


def liblinear(
    X: sparse.csr_matrix, Y: sparse.csc_matrix, weight: np.ndarray
) -> tuple[np.ndarray, float]:
    """The same on ``THREADS`` processes, each with an interleaved share of the labels."""
    from joblib import Parallel, delayed

    shares = [np.arange(Y.shape[1])[part::THREADS] for part in range(THREADS)]
    parts = Parallel(n_jobs=THREADS, backend="loky")(
        delayed(_liblinear_labels)(X, Y[:, share], weight[share]) for share in shares
    )
    weights = np.empty((Y.shape[1], X.shape[1] + 1))
    for share, (rows, _) in zip(shares, parts, strict=True):
        weights[share] = rows
    return weights, sum(cpu for _, cpu in parts)


def ours(
    X: sparse.csr_matrix, Y: sparse.csc_matrix, weight: np.ndarray, tol: float
) -> tuple[sparse.csr_matrix, float]:
    """Weights and CPU time of the solver."""
    start = time.process_time()
    solution = solve(X, Y, positive_weight=weight, tol=tol, threads=THREADS)
    return solution.weights, time.process_time() - start


def peers(X: sparse.csr_matrix, Y: sparse.csc_matrix) -> dict[str, Callable[[], tuple[Any, float]]]:
    """One-vs-rest of the peers that are installed; napkinXC does not tell its weights."""
    programs: dict[str, Callable[[], tuple[Any, float]]] = {}
    if (environment_folder() / "ready").exists():
        programs["PECOS OVR"] = partial(train_weights, X, Y, 1.0, 0.1, 0.0, THREADS)
    try:
        import napkinxc  # noqa: F401
    except ImportError:
        return programs
    train = Split(Inputs(bow=X), sparse.csr_matrix(Y))

    def run() -> tuple[None, float]:
        start = time.process_time()
        NapkinXC().fit(train, threads=THREADS)
        return None, time.process_time() - start

    programs["napkinXC BR"] = run
    return programs
