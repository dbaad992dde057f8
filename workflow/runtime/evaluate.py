"""Score the predictions of a cell: ``metrics.csv`` and ``instance.npz``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.atomic import atomic_path
from benchmarks.bins import frequency_bins
from benchmarks.conventions import DEFAULT
from benchmarks.data.prepared import open_prepared
from benchmarks.metrics import Evaluation, evaluate
from methods.interface import TopK

COLUMNS = ("metric", "k", "convention", "bin", "value", "numerator", "denominator", "n")
COMPLETE = "complete-labels"
"""The pseudo-convention of rows that are scored against labels before any went missing."""


def evaluate_cell(folder: Path, data: Path, ks: Sequence[int], metrics: Path, inst: Path) -> None:
    """Score a cell under the default convention; a cell that failed gets empty files."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    if record["status"] != "ok":
        _write(metrics, pd.DataFrame(columns=list(COLUMNS)))
        Evaluation(DEFAULT, 0, {}, {}).save(inst)
        return
    train, test = open_prepared(data)
    with np.load(folder / "predictions.npz") as stored:
        top = TopK(stored["indices"], stored["scores"])
    propensity = {"A": train.meta["A"], "B": train.meta["B"]}
    bins = frequency_bins(train.label_counts())
    evaluation = evaluate(top, test.labels, train.labels, ks=ks, bins=bins, **propensity)
    frames = [evaluation.frame()]
    if test.complete is not None:
        truth = evaluate(top, test.complete, train.labels, ks=ks, **propensity).frame()
        truth = truth[truth["metric"].isin(["P", "R", "nDCG"])]
        frames.append(truth.assign(convention=COMPLETE))
    _write(metrics, pd.concat(frames, ignore_index=True))
    evaluation.save(inst)


def _write(path: Path, frame: pd.DataFrame) -> None:
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, columns=list(COLUMNS))
