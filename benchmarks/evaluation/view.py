"""What the kernel of a metric is given: one ranking, its test labels, and what both imply."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from benchmarks.evaluation import _kernels as kernels
from benchmarks.evaluation.bins import Bins

if TYPE_CHECKING:
    from benchmarks.evaluation.conventions import Convention


class Ranking(Protocol):
    """What is scored: the best labels of each row, best first, padded with -1."""

    @property
    def indices(self) -> np.ndarray: ...
    @property
    def scores(self) -> np.ndarray: ...


class RankedPass(NamedTuple):
    """Five metrics in one pass; axis 0 of ``numerators`` and ``by_bin`` is as in ``_kernels``.

    ``numerators`` float64[5, len(ks), n]; ``ps_ideals`` float64[2, len(ks), n], the denominators
    of PSP and PSnDCG (those of the others are 1); ``by_bin`` float64[5, len(ks), bins], the part
    of the numerators due to labels of each bin; ``found`` bool[len(ks), L], labels that some row
    has rightly in its top k.
    """

    numerators: np.ndarray
    ps_ideals: np.ndarray
    by_bin: np.ndarray
    found: np.ndarray


class Decided(NamedTuple):
    """Labels scored above the threshold: right ones and all, by row and by label (int64)."""

    row_hits: np.ndarray
    row_predicted: np.ndarray
    label_hits: np.ndarray
    label_predicted: np.ndarray


@dataclass(frozen=True, eq=False)
class View:
    """One ranking beside the labels of the test set; what several metrics use is made once.

    ``top`` int[n, width] and ``scores`` float[n, width]: the ranking, padded with -1;
    ``labels``: the true labels, n x L; ``weights``: inverse propensities, float64[L];
    ``counted``: rows that the convention counts, bool[n] (the others are set to zero after the
    kernel); ``ks``: the cut-offs, rising; ``threshold``: None where no F1 is asked for.
    """

    top: np.ndarray
    scores: np.ndarray
    labels: sparse.csr_matrix
    weights: np.ndarray
    counted: np.ndarray
    ks: np.ndarray
    convention: Convention
    bins: Bins | None = None
    threshold: float | None = None

    @cached_property
    def hits(self) -> np.ndarray:
        """Which of the labels ranked up to the largest k are true, bool[n, ks[-1]]."""
        return np.asarray(kernels.find_hits(self.top, int(self.ks[-1]), *self._true))

    @cached_property
    def ones(self) -> np.ndarray:
        """The denominator of a mean: 1 for each counted row, float64[n]."""
        return self.counted.astype(np.float64)

    @cached_property
    def true_counts(self) -> np.ndarray:
        """How many true labels each row has, int[n]."""
        return np.diff(self.labels.indptr)

    @cached_property
    def label_counts(self) -> np.ndarray:
        """How many counted rows carry each label, int64[L]."""
        kept = np.repeat(self.counted, self.true_counts)
        return np.bincount(self.labels.indices[kept], minlength=self.labels.shape[1])

    @cached_property
    def ps_top(self) -> np.ndarray:
        """The ranking that propensity-scored metrics are taken on, best label first."""
        if not self.convention.reranked:
            return self.top
        # The top 5 is re-ranked as a whole, whatever the largest k asked for.
        width = min(max(int(self.ks[-1]), kernels.RERANKED), self.top.shape[1])
        return frozen(kernels.rerank_by_propensity(self.top, self.scores, self.weights, width))

    @cached_property
    def ranked(self) -> RankedPass:
        """P, R, nDCG, PSP, PSnDCG and the labels found, all in one pass."""
        no_bins = np.empty((self.labels.shape[1], 0), dtype=np.int16)
        return RankedPass(
            *kernels.score_rows(
                self.top,
                self.ps_top,
                *self._true,
                self.weights,
                self.counted,
                self.ks,
                self.convention.fixed_ndcg,
                self.convention.row_normalised_psndcg,
                frozen(no_bins if self.bins is None else self.bins.of_label),
                0 if self.bins is None else len(self.bins.names),
            )
        )

    @cached_property
    def decided(self) -> Decided:
        """The labels scored above the threshold, counted."""
        assert self.threshold is not None
        limit, n_labels = float(self.threshold), self.labels.shape[1]
        return Decided(
            *kernels.count_above(self.top, self.scores, *self._true, self.counted, limit, n_labels)
        )

    @property
    def _true(self) -> tuple[np.ndarray, np.ndarray]:
        return frozen(self.labels.indptr), frozen(self.labels.indices)


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only contiguous view: memory maps and arrays share one compiled kernel."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
