"""Score the predictions of a cell: ``metrics.csv`` and ``instance.npz``."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.common.digests import DamagedError
from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.evaluation.bins import frequency_bins
from benchmarks.evaluation.completeness import true_beside_estimate
from benchmarks.evaluation.conventions import CONVENTIONS, DEFAULT
from benchmarks.evaluation.metrics import Evaluation, ends_above, evaluate
from benchmarks.evaluation.propensity import LEAST_DOCUMENTS
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cell import PREDICTIONS
from benchmarks.records.cells import COMPLETE_LABELS, PS_ESTIMATE, UNSCORED
from benchmarks.records.files import cell_file, read_record, write_evaluation

Threshold = float | Literal["natural"] | None
"""The score above which labels count as predicted; ``natural`` is what a cell's model declares."""

COLUMNS = ("metric", "k", "convention", "bin", "value", "numerator", "denominator", "n")


def evaluate_cell(
    folder: Path,
    data: Path,
    ks: Sequence[int],
    metrics: Path,
    instance: Path,
    threshold: Threshold = None,
) -> None:
    """Score a cell under every convention; a cell that failed gets empty files.

    ``instance.npz`` holds the points of the default convention. With a ``threshold`` F1 is
    measured too, where the cell allows it. If scoring itself fails, the files say why
    (:data:`UNSCORED`), and the cell counts as failed. ``evaluation.json``, written last, binds
    both files to the record.
    """
    record = read_record(folder)
    rows = pd.DataFrame(columns=list(COLUMNS))
    evaluation = Evaluation(DEFAULT, 0, {}, {})
    if record["status"] == "ok":
        try:
            rows, evaluation = _scores(folder, data, ks, threshold, record)
        except (DamagedError, OSError):
            raise  # files that are not what was written are made again, not scored
        except Exception as error:
            # The border of the cell, as in its child: one cell's failure must not stop the rest.
            traceback.print_exc()
            reason = f"{type(error).__name__} in {UNSCORED}: {error}"
            rows = pd.DataFrame([{**dict.fromkeys(COLUMNS), UNSCORED: reason}])
    _write(metrics, rows)
    evaluation.save(instance)
    write_evaluation(record, metrics, instance)


def _scores(
    folder: Path, data: Path, ks: Sequence[int], threshold: Threshold, record: Mapping[str, Any]
) -> tuple[pd.DataFrame, Evaluation]:
    """Every row of ``metrics.csv``, and the points of the default convention."""
    train, test = open_prepared(data)
    with np.load(cell_file(folder, PREDICTIONS, record)) as stored:
        top = TopK(stored["indices"], stored["scores"])
    settings = {"A": train.meta["A"], "B": train.meta["B"], "ks": ks}
    limit = _threshold(threshold, record, top, test.n_labels)
    scored = partial(evaluate, top, test.labels, train.labels, threshold=limit, **settings)
    evaluation = scored(bins=frequency_bins(train.label_counts()))
    frames = [evaluation.frame()]
    for name, convention in CONVENTIONS.items():
        if convention.test_propensity and len(test) < LEAST_DOCUMENTS:
            print(f"no {name} rows: propensities of {len(test)} test documents are undefined")
        elif name != DEFAULT:
            frames.append(scored(convention=name).frame())
    if test.complete is not None:
        frames.append(_truth(top, train, test, settings))
    return pd.concat(frames, ignore_index=True), evaluation


def _threshold(
    asked: Threshold, record: Mapping[str, Any], top: TopK, n_labels: int
) -> float | None:
    """The score above which a label is predicted; None, said in the log, where there is none."""
    if asked is None:
        return None
    limit = record.get("decision_threshold") if asked == "natural" else asked
    why: str | None = "the model declares no threshold of its own"
    if limit is not None:
        why = ends_above(top, n_labels, limit)
    if why is not None:
        print(f"no F1 rows: {why}")
        return None
    return limit


def _truth(top: TopK, train: Split, test: Split, settings: dict[str, Any]) -> pd.DataFrame:
    """Precision on the complete labels, and what propensity scoring estimates it to be."""
    seen = true_beside_estimate(top, test.labels, test.complete, train.labels, **settings)
    kinds = {"estimate": PS_ESTIMATE, "true": COMPLETE_LABELS}
    return pd.concat(
        [
            pd.DataFrame({"metric": "P", "k": seen["k"], "value": seen[column]}).assign(
                convention=convention, bin="all", n=len(test)
            )
            for column, convention in kinds.items()
        ]
    )


def _write(path: Path, frame: pd.DataFrame) -> None:
    with atomic_path(path) as temporary:
        extra = [UNSCORED] if UNSCORED in frame else []
        frame.to_csv(temporary, index=False, columns=[*COLUMNS, *extra])
