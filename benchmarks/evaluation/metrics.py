"""P, R, nDCG, PSP, PSnDCG, coverage and F1 of a top-k ranking, under a named convention.

The primitive is a numerator and a denominator for each test point: every metric is
100 * sum(numerators) / sum(denominators), a mean being the case of denominators of one. Rows that
a convention leaves out have both at zero. No n x L array is ever made.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.common.atomic import atomic_path
from benchmarks.evaluation import _kernels as kernels
from benchmarks.evaluation.bins import Bins
from benchmarks.evaluation.conventions import DEFAULT, Convention, get_convention
from benchmarks.evaluation.propensity import DEFAULT_A, DEFAULT_B, inverse_propensity

RANKED = ("P", "R", "nDCG", "PSP", "PSnDCG")
"""Metrics with a numerator and a denominator for each point, in the kernels' order."""

COVERAGE = "Cov"
"""Cov@k: the share of the test set's labels that some row has rightly in its top k."""

FORMAT = 1


class Ranking(Protocol):
    """What is scored: the best labels of each row, best first, padded with -1."""

    @property
    def indices(self) -> np.ndarray: ...
    @property
    def scores(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Evaluation:
    """The measured side of one ranking.

    ``numerators`` and ``denominators`` hold float64[n] for each metric of points;
    ``by_bin[metric][bin]`` is the part of a metric's numerator due to labels of that bin;
    ``by_label`` holds metrics that are sums over labels, as (numerator, denominator).
    """

    convention: str
    n: int
    numerators: dict[str, np.ndarray]
    denominators: dict[str, np.ndarray]
    by_bin: dict[str, dict[str, float]] = field(default_factory=dict)
    by_label: dict[str, tuple[float, float]] = field(default_factory=dict)

    def sums(self) -> dict[str, tuple[float, float]]:
        """Numerator and denominator of every metric, summed over points (or labels)."""
        points = {
            name: (float(self.numerators[name].sum()), float(self.denominators[name].sum()))
            for name in self.numerators
        }
        return {**points, **self.by_label}

    def values(self) -> dict[str, float]:
        """Every metric in percent; NaN where nothing was there to be measured."""
        return {name: _percent(*pair) for name, pair in self.sums().items()}

    def frame(self) -> pd.DataFrame:
        """Long form: metric, k, convention, bin, value, numerator, denominator, n.

        The bins' rows share the denominator of ``all``: they are contributions, and those of
        head, torso, tail and unseen (or of the deciles and unseen) add up to it.
        """
        rows = []
        for name, (numerator, denominator) in self.sums().items():
            metric, k = split_name(name)
            parts = {"all": numerator, **self.by_bin.get(name, {})}
            for bin_name, part in parts.items():
                rows.append(
                    {
                        "metric": metric,
                        "k": k,
                        "convention": self.convention,
                        "bin": bin_name,
                        "value": _percent(part, denominator),
                        "numerator": part,
                        "denominator": denominator,
                        "n": self.n,
                    }
                )
        frame = pd.DataFrame(rows)
        frame["k"] = frame["k"].astype("Int64")
        return frame

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` whose bytes depend on the content alone."""
        names = list(self.numerators)
        facts = {
            "format": FORMAT,
            "convention": self.convention,
            "n": self.n,
            "names": names,
            "by_bin": self.by_bin,
            "by_label": self.by_label,
        }
        arrays = {
            "facts": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
            "numerators": _stack(self.numerators, names, self.n),
            "denominators": _stack(self.denominators, names, self.n),
        }
        with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                # The default of ZipInfo is the first day of 1980, whatever the clock says.
                entry = zipfile.ZipInfo(f"{name}.npy")
                archive.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=6)

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """Read what :meth:`save` wrote."""
        with np.load(path, allow_pickle=False) as archive:
            if "facts" not in archive:
                raise ValueError(f"{path} holds no evaluation: it has no entry 'facts'")
            facts = json.loads(archive["facts"].tobytes())
            if facts["format"] != FORMAT:
                raise ValueError(
                    f"{path}: format {facts['format']!r}, this version reads {FORMAT}; "
                    "delete it to have the cell evaluated again"
                )
            numerators, denominators = archive["numerators"], archive["denominators"]
        names = facts["names"]
        return cls(
            convention=facts["convention"],
            n=facts["n"],
            numerators=dict(zip(names, numerators, strict=True)),
            denominators=dict(zip(names, denominators, strict=True)),
            by_bin=facts["by_bin"],
            by_label={name: (pair[0], pair[1]) for name, pair in facts["by_label"].items()},
        )


def score(
    top: Ranking,
    labels: sparse.csr_matrix,
    train_labels: sparse.csr_matrix,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    ks: Sequence[int] = (1, 3, 5),
    convention: str = DEFAULT,
) -> dict[str, float]:
    """Every metric by its printed name, in percent: ``{"P@1": 82.5, "PSP@3": 41.9, ...}``."""
    return evaluate(top, labels, train_labels, A=A, B=B, ks=ks, convention=convention).values()


def evaluate(
    top: Ranking,
    labels: sparse.csr_matrix,
    train_labels: sparse.csr_matrix,
    *,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    ks: Sequence[int] = (1, 3, 5),
    convention: str = DEFAULT,
    bins: Bins | None = None,
    threshold: float | None = None,
) -> Evaluation:
    """Score a ranking against the labels of the test set.

    ``train_labels`` gives the propensity model its counts. With a ``threshold``, labels scored
    above it are the predicted set and F1 is measured too: the ranking must then reach below it.
    """
    chosen = get_convention(convention)
    labels, train_labels = _canonical(labels), _canonical(train_labels)
    n, n_labels = labels.shape
    cutoffs = _check_ks(ks)
    indices = _check_ranking(top, n, n_labels, int(cutoffs.max()))
    weights = _weights(labels, train_labels, A, B, chosen)
    counted = _counted_rows(labels, chosen)

    ps_indices = indices
    if chosen.reranked:
        # The top 5 is re-ranked as a whole, whatever the largest k asked for.
        width = min(max(int(cutoffs.max()), kernels.RERANKED), indices.shape[1])
        ps_indices = kernels.rerank_by_propensity(indices, _frozen(top.scores), weights, width)
    no_bins = np.empty((n_labels, 0), dtype=np.int16)
    numerators, ps_ideals, by_bin, found = kernels.score_rows(
        indices,
        _frozen(ps_indices),
        _frozen(labels.indptr),
        _frozen(labels.indices),
        weights,
        counted,
        cutoffs,
        chosen.fixed_ndcg,
        chosen.row_normalised_psndcg,
        _frozen(no_bins if bins is None else _check_bins(bins, n_labels).of_label),
        0 if bins is None else len(bins.names),
    )
    one_each = counted.astype(np.float64)
    places = [
        (f"{metric}@{k}", q, t) for q, metric in enumerate(RANKED) for t, k in enumerate(cutoffs)
    ]
    n_occurring = int((_counts_in(labels, counted) > 0).sum())
    evaluation = Evaluation(
        convention=convention,
        n=int(counted.sum()),
        numerators={name: numerators[q, t] for name, q, t in places},
        denominators={
            name: one_each if q < kernels.PSP else ps_ideals[q - kernels.PSP, t]
            for name, q, t in places
        },
        by_bin={}
        if bins is None
        else {
            name: dict(zip(bins.names, by_bin[q, t].tolist(), strict=True)) for name, q, t in places
        },
        by_label={
            f"{COVERAGE}@{k}": (float(found[t].sum()), float(n_occurring))
            for t, k in enumerate(cutoffs)
        },
    )
    if threshold is not None:
        _add_f1(evaluation, top, labels, counted, threshold, chosen)
    return evaluation


def split_name(name: str) -> tuple[str, int | None]:
    """``"PSP@3"`` is ("PSP", 3); ``"microF1"`` is ("microF1", None)."""
    metric, _, k = name.partition("@")
    return metric, int(k) if k else None


def label_counts(labels: sparse.csr_matrix) -> np.ndarray:
    """How many rows carry each label, int64[L]."""
    labels = _canonical(labels)
    return np.bincount(labels.indices, minlength=labels.shape[1]).astype(np.int64)


HTTN_BATCH = 90
"""Rows in a batch of HTTN's evaluation, whose F1 is a mean of batches' micro-F1."""


def _add_f1(
    evaluation: Evaluation,
    top: Ranking,
    labels: sparse.csr_matrix,
    counted: np.ndarray,
    threshold: float,
    convention: Convention,
) -> None:
    """Micro-F1, batch-mean F1 (by point) and macro-F1 (by label) of labels above a threshold.

    Macro-F1 is the mean over labels that occur in the test set. Batch-mean F1 gives each point
    the micro-F1 of its batch of consecutive rows, over whole batches only.
    """
    n, n_labels = labels.shape
    if top.indices.shape[1] < n_labels and (top.scores[:, -1] > threshold).any():
        raise ValueError(
            f"F1 needs every label scored above {threshold}, but the ranking ends above it in "
            f"some rows: predict more than {top.indices.shape[1]} labels"
        )
    row_hits, row_predicted, label_hits, label_predicted = kernels.count_above(
        _frozen(top.indices),
        _frozen(top.scores),
        _frozen(labels.indptr),
        _frozen(labels.indices),
        counted,
        float(threshold),
        n_labels,
    )
    row_true = np.where(counted, np.diff(labels.indptr), 0)
    # A row with nothing predicted and nothing true is no error and no evidence: 0 over 0.
    evaluation.numerators["microF1"] = 2.0 * row_hits
    evaluation.denominators["microF1"] = (row_predicted + row_true).astype(np.float64)

    batch = convention.batch or HTTN_BATCH
    whole = n - n % batch if n >= batch else n
    batch_of = np.arange(whole) // batch
    hits = np.bincount(batch_of, row_hits[:whole])
    size = np.bincount(batch_of, (row_predicted + row_true)[:whole])
    by_batch = np.divide(2.0 * hits, size, out=np.zeros(len(hits)), where=size > 0)
    evaluation.numerators["batchF1"] = np.concatenate([by_batch[batch_of], np.zeros(n - whole)])
    evaluation.denominators["batchF1"] = (np.arange(n) < whole).astype(np.float64)

    label_true = _counts_in(labels, counted)
    present = label_true > 0
    by_label = 2.0 * label_hits[present] / (label_predicted + label_true)[present]
    evaluation.by_label["macroF1"] = (float(by_label.sum()), float(present.sum()))


def _weights(
    labels: sparse.csr_matrix,
    train_labels: sparse.csr_matrix,
    A: float,
    B: float,
    convention: Convention,
) -> np.ndarray:
    """Inverse propensities, float64[L], from the rows the convention counts on."""
    if labels.shape[1] != train_labels.shape[1]:
        raise ValueError(
            f"test labels have {labels.shape[1]} columns, training labels {train_labels.shape[1]}"
        )
    source = labels if convention.test_propensity else train_labels
    n = source.shape[0]
    if convention.labelled_rows_only:
        n = int((np.diff(source.indptr) > 0).sum())
    return inverse_propensity(label_counts(source), n, A, B)


def _counted_rows(labels: sparse.csr_matrix, convention: Convention) -> np.ndarray:
    n = labels.shape[0]
    counted = np.ones(n, dtype=bool)
    if convention.labelled_rows_only:
        counted = np.diff(labels.indptr) > 0
    # Fewer rows than one batch would leave nothing at all: then the one short batch counts.
    if convention.batch is not None and n >= convention.batch:
        counted[n - n % convention.batch :] = False
    return counted


def _counts_in(labels: sparse.csr_matrix, rows: np.ndarray) -> np.ndarray:
    """How many of the marked rows carry each label, int64[L]."""
    kept = np.repeat(rows, np.diff(labels.indptr))
    return np.bincount(labels.indices[kept], minlength=labels.shape[1])


def _check_ks(ks: Sequence[int]) -> np.ndarray:
    cutoffs = np.asarray(sorted(set(ks)), dtype=np.int64)
    if not len(cutoffs) or cutoffs[0] < 1:
        raise ValueError(f"ks must be positive integers, not {tuple(ks)}")
    return cutoffs


def _check_ranking(top: Ranking, n: int, n_labels: int, kmax: int) -> np.ndarray:
    indices = _frozen(top.indices)
    if len(indices) != n:
        raise ValueError(f"{len(indices)} rows are ranked but {n} rows have labels")
    width = indices.shape[1]
    if width < min(kmax, n_labels):
        raise ValueError(f"@{kmax} needs {min(kmax, n_labels)} ranked labels a row, not {width}")
    row, label = kernels.find_fault(indices, min(kmax, width), n_labels)
    if row >= 0:
        what = "twice" if -1 < label < n_labels else f"which is none of the {n_labels} labels"
        raise ValueError(f"row {row} of the ranking holds label {label} {what}")
    return indices


def _check_bins(bins: Bins, n_labels: int) -> Bins:
    if len(bins.of_label) != n_labels:
        raise ValueError(f"bins of {len(bins.of_label)} labels, but there are {n_labels}")
    return bins


def _canonical(labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """Sorted rows without repeats or stored zeros; a copy only where that is not so yet."""
    labels = labels if sparse.issparse(labels) and labels.format == "csr" else labels.tocsr()
    if labels.has_canonical_format and (labels.data != 0).all():
        return labels
    labels = labels.copy()
    labels.sum_duplicates()
    labels.eliminate_zeros()
    return labels


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only contiguous view: memory maps and arrays share one compiled kernel."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _stack(arrays: dict[str, np.ndarray], names: list[str], n: int) -> np.ndarray:
    return np.stack([arrays[name] for name in names]) if names else np.empty((0, n))


def _percent(numerator: float, denominator: float) -> float:
    return 100.0 * numerator / denominator if denominator else float("nan")
