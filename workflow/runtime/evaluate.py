"""Score the predictions of a cell: ``metrics.csv`` and ``instance.npz``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.evaluation.bins import frequency_bins
from benchmarks.evaluation.completeness import true_beside_estimate
from benchmarks.evaluation.conventions import CONVENTIONS, DEFAULT
from benchmarks.evaluation.metrics import Evaluation, evaluate
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cells import COMPLETE_LABELS, PS_ESTIMATE

COLUMNS = ("metric", "k", "convention", "bin", "value", "numerator", "denominator", "n")


def evaluate_cell(folder: Path, data: Path, ks: Sequence[int], metrics: Path, inst: Path) -> None:
    """Score a cell under every convention; a cell that failed gets empty files.

    ``instance.npz`` holds the points of the default convention.
    """
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    if record["status"] != "ok":
        _write(metrics, pd.DataFrame(columns=list(COLUMNS)))
        Evaluation(DEFAULT, 0, {}, {}).save(inst)
        return
    train, test = open_prepared(data)
    with np.load(folder / "predictions.npz") as stored:
        top = TopK(stored["indices"], stored["scores"])
    settings = {"A": train.meta["A"], "B": train.meta["B"], "ks": ks}
    bins = frequency_bins(train.label_counts())
    evaluation = evaluate(top, test.labels, train.labels, bins=bins, **settings)
    frames = [evaluation.frame()]
    for convention in CONVENTIONS:
        if convention != DEFAULT:
            other = evaluate(top, test.labels, train.labels, convention=convention, **settings)
            frames.append(other.frame())
    if test.complete is not None:
        frames.append(_truth(top, train, test, settings))
    _write(metrics, pd.concat(frames, ignore_index=True))
    evaluation.save(inst)


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
        frame.to_csv(temporary, index=False, columns=list(COLUMNS))
