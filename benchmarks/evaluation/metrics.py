"""Every declared metric of a top-k ranking, under a named convention.

The primitive is a numerator and a denominator for each test point: every metric is
100 * sum(numerators) / sum(denominators), a mean being the case of denominators of one. Rows that
a convention leaves out have both at zero. No n x L array is ever made.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.common.atomic import atomic_path
from benchmarks.evaluation import _kernels as kernels
from benchmarks.evaluation.bin_points import bounds_by_bin, columns, points_by_bin
from benchmarks.evaluation.bins import Bins
from benchmarks.evaluation.conventions import DEFAULT, HTTN_BATCH, Convention, get_convention
from benchmarks.evaluation.declarations import METRICS, Metric, split_name
from benchmarks.evaluation.propensity import DEFAULT_A, DEFAULT_B, inverse_propensity
from benchmarks.evaluation.view import Ranking, View, frozen

FORMAT = 1
BIN_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Evaluation:
    """What was measured of one ranking.

    ``numerators`` and ``denominators`` hold float64[n] for each metric of points;
    ``by_bin[metric][bin]`` is the part of a metric's numerator due to labels of that bin;
    ``by_label`` holds metrics that are sums over labels, as (numerator, denominator).
    ``bin_points`` are the numerators of ``by_bin`` point by point, a column per metric and bin in
    the order of ``by_bin``; ``bin_bounds`` the largest that any ranking could make their sums.
    """

    convention: str
    n: int
    numerators: dict[str, np.ndarray]
    denominators: dict[str, np.ndarray]
    by_bin: dict[str, dict[str, float]] = field(default_factory=dict)
    by_label: dict[str, tuple[float, float]] = field(default_factory=dict)
    bin_points: sparse.csr_matrix | None = None
    bin_bounds: dict[str, dict[str, float]] = field(default_factory=dict)

    def sums(self) -> dict[str, tuple[float, float]]:
        """Numerator and denominator of every metric, summed over points (or labels)."""
        points = {
            name: (float(self.numerators[name].sum()), float(self.denominators[name].sum()))
            for name in self.numerators
        }
        return {**points, **self.by_label}

    def values(self) -> dict[str, float]:
        """Every metric in percent; NaN where the denominator is 0."""
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
            "bin_bounds": self.bin_bounds,
        }
        arrays = {
            "facts": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
            "numerators": _stack(self.numerators, names, self.n),
            "denominators": _stack(self.denominators, names, self.n),
        }
        if self.bin_points is not None:
            parts = {name: getattr(self.bin_points, name) for name in BIN_PARTS}
            arrays |= {f"bins.{name}": array for name, array in parts.items()}
        with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                # The default of ZipInfo is the first day of 1980, whatever the clock says.
                entry = zipfile.ZipInfo(f"{name}.npy")
                archive.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=6)

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """The evaluation in a file of :meth:`save`; a file of another format is refused."""
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
            parts = [archive[f"bins.{name}"] for name in BIN_PARTS if f"bins.{name}" in archive]
        width = sum(len(by_bin) for by_bin in facts["by_bin"].values())
        points = sparse.csr_matrix(tuple(parts), (numerators.shape[1], width)) if parts else None
        names = facts["names"]
        return cls(
            convention=facts["convention"],
            n=facts["n"],
            numerators=dict(zip(names, numerators, strict=True)),
            denominators=dict(zip(names, denominators, strict=True)),
            by_bin=facts["by_bin"],
            by_label={name: (pair[0], pair[1]) for name, pair in facts["by_label"].items()},
            bin_points=points,
            bin_bounds=facts.get("bin_bounds", {}),
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
    if bins is not None and len(bins.of_label) != n_labels:
        raise ValueError(f"bins of {len(bins.of_label)} labels, but there are {n_labels}")
    view = View(
        top=_check_ranking(top, n, n_labels, int(cutoffs.max())),
        scores=frozen(top.scores),
        labels=labels,
        weights=_weights(labels, train_labels, A, B, chosen),
        counted=_counted_rows(labels, chosen),
        ks=cutoffs,
        convention=chosen,
        bins=bins,
        threshold=threshold,
    )
    short = None if threshold is None else ends_above(top, n_labels, threshold)
    if short is not None:
        raise ValueError(short)
    evaluation = Evaluation(convention, int(view.counted.sum()), {}, {})
    for metric in METRICS.values():
        if metric.needs != "threshold" or threshold is not None:
            _add(evaluation, metric, view)
    return evaluation if bins is None else _with_points(evaluation, view, bins)


def _with_points(evaluation: Evaluation, view: View, bins: Bins) -> Evaluation:
    bounds: dict[str, dict[str, float]] = {}
    for (name, bin_name), bound in zip(columns(view, bins), bounds_by_bin(view, bins), strict=True):
        bounds.setdefault(name, {})[bin_name] = float(bound)
    return replace(evaluation, bin_points=points_by_bin(view, bins), bin_bounds=bounds)


def ends_above(top: Ranking, n_labels: int, threshold: float) -> str | None:
    """Why F1 is unavailable: the ranking ends above the threshold; None where it does not."""
    width = top.indices.shape[1]
    if width < n_labels and (top.scores[:, -1] > threshold).any():
        return (
            f"F1 needs every label scored above {threshold}, but the ranking ends above it in "
            f"some rows: predict more than {width} labels"
        )
    return None


def _add(evaluation: Evaluation, metric: Metric, view: View) -> None:
    """Measure one metric, by its declaration."""
    names = metric.names(view.ks)
    n = -1 if metric.average == "labels" else len(view.counted)
    columns = [np.asarray(part).reshape(n, len(names)).T for part in metric.kernel(view)]
    for name, numerator, denominator in zip(names, *columns, strict=True):
        if metric.average == "labels":
            evaluation.by_label[name] = (float(numerator.sum()), float(denominator.sum()))
            continue
        pair = _of_counted(numerator, view.counted), _of_counted(denominator, view.counted)
        if metric.average == "batches":
            pair = _over_batches(*pair, view.convention.batch or HTTN_BATCH)
        evaluation.numerators[name], evaluation.denominators[name] = pair
    if metric.by_bin is not None and view.bins is not None:
        for name, part in zip(names, metric.by_bin(view), strict=True):
            evaluation.by_bin[name] = dict(zip(view.bins.names, part.tolist(), strict=True))


def _of_counted(column: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """A contiguous column of floats, zero in the rows that the convention leaves out."""
    column = np.ascontiguousarray(column, dtype=np.float64)
    return column if counted.all() else np.where(counted, column, 0.0)


def _over_batches(
    numerators: np.ndarray, denominators: np.ndarray, batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each row with the ratio of its batch of consecutive rows, over whole batches only."""
    n = len(numerators)
    whole = n - n % batch if n >= batch else n
    batch_of = np.arange(whole) // batch
    over, under = (np.bincount(batch_of, part[:whole]) for part in (numerators, denominators))
    ratios = np.divide(over, under, out=np.zeros(len(over)), where=under > 0)
    rows = (np.arange(n) < whole).astype(np.float64)
    return np.concatenate([ratios[batch_of], np.zeros(n - whole)]), rows


def label_counts(labels: sparse.csr_matrix) -> np.ndarray:
    """How many rows carry each label, int64[L]."""
    labels = _canonical(labels)
    return np.bincount(labels.indices, minlength=labels.shape[1]).astype(np.int64)


def _weights(
    labels: sparse.csr_matrix,
    train_labels: sparse.csr_matrix,
    A: float,
    B: float,
    convention: Convention,
) -> np.ndarray:
    """Inverse propensities, float64[L], from the rows that the convention counts."""
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


def _check_ks(ks: Sequence[int]) -> np.ndarray:
    cutoffs = np.asarray(sorted(set(ks)), dtype=np.int64)
    if not len(cutoffs) or cutoffs[0] < 1:
        raise ValueError(f"ks must be positive integers, not {tuple(ks)}")
    return cutoffs


def _check_ranking(top: Ranking, n: int, n_labels: int, kmax: int) -> np.ndarray:
    indices = frozen(top.indices)
    if len(indices) != n:
        raise ValueError(f"{len(indices)} rows are ranked but {n} rows have labels")
    width = indices.shape[1]
    if width < min(kmax, n_labels):
        raise ValueError(f"@{kmax} needs {min(kmax, n_labels)} ranked labels per row, not {width}")
    row, label = kernels.find_fault(indices, min(kmax, width), n_labels)
    if row >= 0:
        what = "twice" if -1 < label < n_labels else f"which is none of the {n_labels} labels"
        raise ValueError(f"row {row} of the ranking holds label {label} {what}")
    return indices


def _canonical(labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """Sorted rows without repeats or stored zeros; a copy only where that is not so yet."""
    labels = labels if sparse.issparse(labels) and labels.format == "csr" else labels.tocsr()
    if labels.has_canonical_format and (labels.data != 0).all():
        return labels
    labels = labels.copy()
    labels.sum_duplicates()
    labels.eliminate_zeros()
    return labels


def _stack(arrays: dict[str, np.ndarray], names: list[str], n: int) -> np.ndarray:
    return np.stack([arrays[name] for name in names]) if names else np.empty((0, n))


def _percent(numerator: float, denominator: float) -> float:
    return 100.0 * numerator / denominator if denominator else float("nan")
