"""The metrics, one declaration each: an entry in ``METRICS`` is all that a new one takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmarks.evaluation import _kernels as kernels
from benchmarks.evaluation.view import View

Pair = tuple[np.ndarray, np.ndarray]
Kind = Literal["PS", "vanilla"]


@dataclass(frozen=True)
class Metric:
    """A metric: 100 * sum(numerators) / sum(denominators).

    ``kernel`` gives numerators and denominators, each [n, len(ks)], or [n] where the metric has
    no cut-off (``at_ks``). Rows stand for what ``average`` says: test documents; documents that
    are then given the ratio of their batch; or labels, which have no test points to resample.
    ``needs`` says what beyond the ranking must be known, and ``choices`` which fields of a
    :class:`Convention` change the metric beyond those that follow from ``needs``. ``by_bin``, if
    given, returns the part of the numerators due to the labels of each bin, [len(ks), bins].
    """

    name: str
    kernel: Callable[[View], Pair]
    at_ks: bool = True
    needs: Literal["ranking", "propensities", "threshold"] = "ranking"
    average: Literal["documents", "batches", "labels"] = "documents"
    choices: tuple[str, ...] = ()
    by_bin: Callable[[View], np.ndarray] | None = None

    def names(self, ks: Iterable[int]) -> list[str]:
        """The printed names, one for each column of the kernel's arrays: ``PSP@3``."""
        return [f"{self.name}@{k}" for k in ks] if self.at_ks else [self.name]

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The choices of a convention that can change this metric."""
        weighted = ("test_propensity", "reranked") if self.needs == "propensities" else ()
        return ("labelled_rows_only", "batch", *weighted, *self.choices)


def split_name(name: str) -> tuple[str, int | None]:
    """``"PSP@3"`` is ("PSP", 3); ``"microF1"`` is ("microF1", None)."""
    metric, _, k = name.partition("@")
    return metric, int(k) if k else None


def _ranked(name: str, place: int, **declared: Any) -> Metric:
    """One of the five metrics that share a single pass over the rows."""

    def points(view: View) -> Pair:
        numerators = view.ranked.numerators[place].T
        if place >= kernels.PSP:
            return numerators, view.ranked.ps_ideals[place - kernels.PSP].T
        return numerators, np.broadcast_to(view.ones[:, None], numerators.shape)

    return Metric(name, points, by_bin=lambda view: view.ranked.by_bin[place], **declared)


def _coverage(view: View) -> Pair:
    """Labels that some row has rightly in its top k, among those that occur."""
    found = view.ranked.found.T
    return found, np.broadcast_to((view.label_counts > 0)[:, None], found.shape)


def _f1(view: View) -> Pair:
    # A row with nothing predicted and nothing true is no error and no evidence: 0 over 0.
    return 2.0 * view.decided.row_hits, view.decided.row_predicted + view.true_counts


def _f1_of_labels(view: View) -> Pair:
    """The F1 of each label that occurs in the test set."""
    present = view.label_counts > 0
    positives = view.decided.label_predicted + view.label_counts
    f1 = 2.0 * view.decided.label_hits[present] / positives[present]
    return f1, np.ones(len(f1))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _ranked("P", kernels.P),
        _ranked("R", kernels.R),
        _ranked("nDCG", kernels.NDCG, choices=("fixed_ndcg",)),
        _ranked("PSP", kernels.PSP, needs="propensities"),
        _ranked("PSnDCG", kernels.PSNDCG, needs="propensities", choices=("row_normalised_psndcg",)),
        Metric("Cov", _coverage, average="labels"),
        Metric("microF1", _f1, at_ks=False, needs="threshold"),
        Metric("batchF1", _f1, at_ks=False, needs="threshold", average="batches"),
        Metric("macroF1", _f1_of_labels, at_ks=False, needs="threshold", average="labels"),
    )
}

SUMMARY_METRICS: dict[Kind, tuple[str, ...]] = {
    "PS": ("PSP@1", "PSP@3", "PSP@5", "PSP@1", "PSnDCG@3", "PSnDCG@5"),
    "vanilla": ("P@1", "P@3", "P@5", "P@1", "nDCG@3", "nDCG@5"),
}
"""The six terms of PW eq. 30: @1 stands twice, since nDCG@1 = P@1 and PSnDCG@1 = PSP@1."""

SUMMARY_NAMES: dict[Kind, str] = {"PS": "mean PS", "vanilla": "mean vanilla"}
"""Names under which eq. 30 stands among the metrics of a paired bootstrap."""
