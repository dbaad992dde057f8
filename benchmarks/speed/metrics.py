"""Scoring at Amazon-670K's shape: our kernels beside plain scipy, same metrics, same ranking.

The peer is what one writes with scipy alone, in the manner of pyxclib: a CSR matrix of scores in,
truth looked up by fancy indexing, ideal gains from a sorted CSR matrix. Both sides start from
what they are usually handed: ours from the harness' top-k arrays, the peer from a score matrix;
the peer is timed from the top-k arrays as well, so that the cost of the sorting shows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.common.atomic import atomic_path
from benchmarks.evaluation.metrics import Evaluation, evaluate, score
from benchmarks.evaluation.propensity import inverse_propensity
from benchmarks.evaluation.statistics import RESAMPLES, bootstrap
from benchmarks.speed._memory import peak_mb

KS = (1, 3, 5)
A, B = 0.6, 2.6  # Amazon-670K's (its card)
BOOTSTRAP_POINTS = 6000


@dataclass(frozen=True)
class Ranked:
    """Top-k arrays as the harness stores them."""

    indices: np.ndarray
    scores: np.ndarray


def synthetic(
    n_train: int, n_test: int, n_labels: int, depth: int, seed: int
) -> tuple[sparse.csr_matrix, sparse.csr_matrix, Ranked]:
    """Zipf-like labels (5.45 per row) and a ranking that finds about half of them."""
    rng = np.random.default_rng(seed)
    popularity = 1.0 / (np.arange(n_labels) + 10.0) ** 0.7
    cumulative = np.cumsum(popularity / popularity.sum())

    def draw(rows: int, per_row: np.ndarray) -> sparse.csr_matrix:
        columns = np.minimum(np.searchsorted(cumulative, rng.random(per_row.sum())), n_labels - 1)
        owner = np.repeat(np.arange(rows), per_row)
        matrix = sparse.csr_matrix(
            (np.ones(len(owner), np.float32), (owner, columns)), shape=(rows, n_labels)
        )
        matrix.data[:] = 1.0
        return matrix

    train = draw(n_train, rng.integers(1, 11, n_train))
    test = draw(n_test, rng.integers(1, 11, n_test))
    # Distinct labels by stride, then true labels written over some of them.
    start = rng.integers(0, n_labels, n_test)[:, None]
    indices = ((start + 7919 * np.arange(depth)) % n_labels).astype(np.int32)
    owner = np.repeat(np.arange(n_test), np.diff(test.indptr))
    rank = np.arange(test.nnz) - np.repeat(test.indptr[:-1], np.diff(test.indptr))
    hit = (rng.random(test.nnz) < 0.5) & (rank < depth)
    indices[owner[hit], rank[hit]] = test.indices[hit]
    repeated = np.sort(indices, axis=1)
    clash = (repeated[:, 1:] == repeated[:, :-1]).any(axis=1)
    indices[clash] = ((start[clash] + 7919 * np.arange(depth)) % n_labels).astype(np.int32)
    scores = -np.sort(-rng.random((n_test, depth), dtype=np.float32), axis=1)
    return train, test, Ranked(indices, scores)


def top_of_rows(matrix: sparse.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values of each row's k largest entries, by one sort of all entries."""
    sizes = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(matrix.shape[0]), sizes)
    order = np.lexsort((-matrix.data, rows))
    rank = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], sizes)
    kept = rank < k
    indices = np.full((matrix.shape[0], k), -1)
    values = np.zeros((matrix.shape[0], k))
    indices[rows[kept], rank[kept]] = matrix.indices[order][kept]
    values[rows[kept], rank[kept]] = matrix.data[order][kept]
    return indices, values


def plain_scores(
    top: np.ndarray, labels: sparse.csr_matrix, train_labels: sparse.csr_matrix
) -> dict[str, float]:
    """The metrics of :func:`score` (xc-matlab) with scipy and numpy alone."""
    kmax = max(KS)
    top = top[:, :kmax]
    n = labels.shape[0]
    counts = np.asarray(train_labels.sum(axis=0)).ravel()
    weights = inverse_propensity(counts, train_labels.shape[0], A, B)
    rows = np.repeat(np.arange(n), kmax).reshape(n, kmax)
    hits = labels[rows, top].toarray().astype(np.float64) * (top >= 0)
    gains = hits * weights[top]
    weighted = labels.multiply(weights[None, :]).tocsr()
    _, ideal = top_of_rows(weighted, kmax)
    discount = 1.0 / np.log2(np.arange(kmax) + 2.0)
    n_true = np.diff(labels.indptr)
    ideal_dcg = np.cumsum(discount)
    occurring = (np.asarray(labels.sum(axis=0)).ravel() > 0).sum()
    out = {}
    for k in KS:
        reachable = np.clip(n_true, 1, k)
        out[f"P@{k}"] = hits[:, :k].sum(axis=1).mean() / k
        out[f"R@{k}"] = (hits[:, :k].sum(axis=1) / np.maximum(n_true, 1)).mean()
        dcg = hits[:, :k] @ discount[:k]
        out[f"nDCG@{k}"] = (dcg / ideal_dcg[reachable - 1]).mean()
        out[f"PSP@{k}"] = gains[:, :k].sum() / ideal[:, :k].sum()
        out[f"PSnDCG@{k}"] = (gains[:, :k] @ discount[:k]).sum() / (
            ideal[:, :k] @ discount[:k]
        ).sum()
        out[f"Cov@{k}"] = len(np.unique(top[:, :k][hits[:, :k] > 0])) / occurring
    return {name: 100.0 * float(value) for name, value in out.items()}


def plain_bootstrap(evaluation: Evaluation, resamples: int, seed: int) -> dict[str, float]:
    """Lower ends of the intervals of :func:`bootstrap`, by numpy indexing."""
    names = list(evaluation.numerators)
    numerators = np.stack([evaluation.numerators[name] for name in names], axis=1)
    denominators = np.stack([evaluation.denominators[name] for name in names], axis=1)
    rng = np.random.default_rng(seed)
    draws = np.empty((resamples, len(names)))
    for b in range(resamples):
        rows = rng.integers(0, len(numerators), len(numerators), dtype=np.int32)
        draws[b] = 100.0 * numerators[rows].sum(axis=0) / denominators[rows].sum(axis=0)
    return dict(zip(names, np.quantile(draws, 0.025, axis=0).tolist(), strict=True))


def our_bootstrap(evaluation: Evaluation, resamples: int, seed: int) -> dict[str, float]:
    """The same lower ends by :func:`bootstrap`."""
    frame = bootstrap(evaluation, resamples=resamples, seed=seed)
    return dict(zip(frame["metric"], frame["low"].tolist(), strict=True))


def best_of(repeats: int, work: Callable[[], dict[str, float]]) -> tuple[float, dict[str, float]]:
    """The shortest of some runs, after one that is not timed, and the result."""
    result = work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return min(seconds), result


def main(argv: list[str]) -> int:
    """Measure, print ratios, write ``results/speed/metrics.csv``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed metrics")
    parser.add_argument("--train", type=int, default=490_449, help="training rows")
    parser.add_argument("--test", type=int, default=153_025, help="test rows")
    parser.add_argument("--labels", type=int, default=670_091, help="labels")
    parser.add_argument("--depth", type=int, default=100, help="ranked labels per row")
    parser.add_argument("--repeats", type=int, default=3, help="runs; the shortest counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/speed/metrics.csv"))
    args = parser.parse_args(argv)

    train, test, ranked = synthetic(args.train, args.test, args.labels, args.depth, args.seed)
    ours_s, ours = best_of(args.repeats, lambda: score(ranked, test, train, A, B, KS))
    peak = peak_mb()
    indptr = np.arange(0, ranked.indices.size + 1, args.depth)
    matrix = sparse.csr_matrix(
        (ranked.scores.ravel(), ranked.indices.ravel(), indptr), shape=test.shape
    )
    arrays_s, plain = best_of(args.repeats, lambda: plain_scores(ranked.indices, test, train))
    matrix_s, _ = best_of(1, lambda: plain_scores(top_of_rows(matrix, max(KS))[0], test, train))
    worst = max(abs(ours[name] - plain[name]) for name in plain)
    frame = pd.DataFrame(
        [
            ("tailtables, top-k arrays in", ours_s, 1.0),
            ("plain scipy, top-k arrays in", arrays_s, arrays_s / ours_s),
            ("plain scipy, score matrix in", matrix_s, matrix_s / ours_s),
        ],
        columns=["implementation", "seconds", "ratio to ours"],
    )
    points = evaluate(
        Ranked(ranked.indices[:BOOTSTRAP_POINTS], ranked.scores[:BOOTSTRAP_POINTS]),
        test[:BOOTSTRAP_POINTS],
        train,
        A=A,
        B=B,
        ks=KS,
    )
    fast_s, fast = best_of(args.repeats, lambda: our_bootstrap(points, RESAMPLES, args.seed))
    slow_s, slow = best_of(1, lambda: plain_bootstrap(points, RESAMPLES, args.seed))
    worst = max(worst, *(abs(fast[name] - slow[name]) for name in fast))
    frame.loc[len(frame)] = ("tailtables, bootstrap", fast_s, 1.0)
    frame.loc[len(frame)] = ("plain numpy, bootstrap", slow_s, slow_s / fast_s)
    print(
        f"{args.test:,} rows x {args.labels:,} labels, top {args.depth}, "
        f"{len(plain)} metrics, xc-matlab; one core"
    )
    print(frame.to_string(index=False, float_format="{:.3f}".format))
    print(f"bootstrap: {points.n:,} points x {RESAMPLES:,} resamples x {len(fast)} metrics")
    print(f"peak memory of the process, data included: {peak:.0f} MB (before the peer ran)")
    print(f"largest difference between the two: {worst:.2e} points")
    with atomic_path(args.out) as temporary:
        frame.to_csv(temporary, index=False)
    return 0 if worst < 1e-6 else 1
