"""What each test point gains from the labels of each bin, and the most it could gain.

A bin's part of a metric is a sum over points like the metric itself, so it is resampled in the
same way. A point has few hits: the parts are kept as a sparse matrix.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.evaluation import _kernels as kernels
from benchmarks.evaluation.bins import Bins
from benchmarks.evaluation.view import View

RANKED = ("P", "R", "nDCG", "PSP", "PSnDCG")
"""The metrics that are taken apart by bin, in the order of ``_kernels``."""


def columns(view: View, bins: Bins) -> list[tuple[str, str]]:
    """(metric, bin) of each column of the matrices below."""
    names = [f"{metric}@{k}" for metric in RANKED for k in view.ks]
    return [(name, bin_name) for name in names for bin_name in bins.names]


def points_by_bin(view: View, bins: Bins) -> sparse.csr_matrix:
    """Numerators of each metric due to the labels of each bin, float64[n, metrics x bins]."""
    hits = np.argwhere(view.hits & view.counted[:, None])
    rows, ranks = hits.T
    plain = _parts(view, bins, rows, ranks, view.top[rows, ranks], metrics=(0, 1, 2))
    if view.ps_top is not view.top:
        found = kernels.find_hits(view.ps_top, int(view.ks[-1]), *view._true)
        rows, ranks = np.argwhere(found & view.counted[:, None]).T
    return plain + _parts(view, bins, rows, ranks, view.ps_top[rows, ranks], metrics=(3, 4))


def bounds_by_bin(view: View, bins: Bins) -> np.ndarray:
    """The largest sum that any ranking reaches in each column of :func:`points_by_bin`.

    It ranks the true labels of the bin first, those of the largest weight before the others.
    """
    labels = view.labels
    rows = np.repeat(np.arange(labels.shape[0]), view.true_counts)
    kept = view.counted[rows]
    rows, own = rows[kept], labels.indices[kept]
    order = np.lexsort((-view.weights[own], rows))
    rows, own = rows[order], own[order]
    total = np.zeros(len(RANKED) * len(view.ks) * len(bins.names))
    for number in range(len(bins.names)):
        inside = (bins.of_label[own] == number).any(axis=1)
        of_row, label = rows[inside], own[inside]
        first = np.searchsorted(of_row, of_row)
        ranks = np.arange(len(of_row)) - first
        alone = Bins(bins.names, np.full((labels.shape[1], 1), number, np.int16))
        within = ranks < view.ks[-1]
        part = _parts(view, alone, of_row[within], ranks[within], label[within], range(5))
        total += np.asarray(part.sum(axis=0)).ravel()
    return total


def _parts(
    view: View,
    bins: Bins,
    rows: np.ndarray,
    ranks: np.ndarray,
    labels: np.ndarray,
    metrics: range | tuple[int, ...],
) -> sparse.csr_matrix:
    """What the hits (row, rank, label) add to each metric, k and bin."""
    n_ks, n_bins = len(view.ks), len(bins.names)
    discount = 1.0 / np.log2(np.arange(int(view.ks[-1])) + 2.0)
    ideal = np.concatenate([[0.0], np.cumsum(discount)])
    at, where, added = [], [], []
    for u, k in enumerate(view.ks.tolist()):
        near = ranks < k
        row, label, gain = rows[near], labels[near], discount[ranks[near]]
        weight, true = view.weights[label], np.maximum(view.true_counts[row], 1)
        reachable = ideal[np.minimum(k, true)]
        values = {
            0: np.full(len(row), 1.0 / k),
            1: 1.0 / true,
            2: gain / (ideal[k] if view.convention.fixed_ndcg else reachable),
            3: weight,
            4: weight * gain / (reachable if view.convention.row_normalised_psndcg else 1.0),
        }
        for slot in bins.of_label.T:
            own = slot[label]
            inside = own >= 0
            for metric in metrics:
                at.append(row[inside])
                where.append((metric * n_ks + u) * n_bins + own[inside].astype(np.int64))
                added.append(values[metric][inside])
    shape = (view.labels.shape[0], len(RANKED) * n_ks * n_bins)
    triple = (np.concatenate(added), (np.concatenate(at), np.concatenate(where)))
    return sparse.csr_matrix(triple, shape=shape)
