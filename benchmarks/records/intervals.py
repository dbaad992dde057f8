"""Intervals of every cell, and of every variant's change against its plain base."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, astuple, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import SUMMARY_NAMES, bootstrap, holm, paired_bootstrap
from benchmarks.records.cell import INSTANCE, KEY, PLAIN, Cell
from benchmarks.records.files import cell_file, read_record

COLUMNS = [
    *KEY,
    "metric",
    "value",
    "low",
    "high",
    "change",
    "change_low",
    "change_high",
    "p",
    "p_holm",
    "difference",
    "difference_low",
    "difference_high",
    "note",
]


def intervals(files: Iterable[str | Path]) -> pd.DataFrame:
    """One row per cell and metric: value with its interval, and change over the plain base.

    ``files`` are the cells' ``instance.npz``, below ``results/runs``. The change is in percent of
    the base, the difference in points. Test points are resampled, the same ones for a variant and
    its base. ``p_holm`` corrects the tests of the two mean relative changes over all variants of
    the run; single metrics carry no such claim. The note of a cell says when its base ran on
    another device: part of the change may be the device's.
    """
    folders = {Cell.from_path(Path(path).parent): Path(path).parent for path in files}
    records = {cell: read_record(folder) for cell, folder in folders.items()}
    evaluations = {
        cell: Evaluation.load(cell_file(folder, INSTANCE, records[cell]))
        for cell, folder in folders.items()
    }
    frames = []
    for cell, evaluation in evaluations.items():
        if not evaluation.numerators:
            continue  # the cell failed: it has nothing to resample
        frame = bootstrap(evaluation)
        plain = evaluations.get(replace(cell, variant=PLAIN))
        if cell.variant != PLAIN and plain is not None and plain.numerators:
            changes = paired_bootstrap(plain, evaluation)
            changes = changes.rename(columns={"low": "change_low", "high": "change_high"})
            wanted = ["metric", "change", "change_low", "change_high", "p"]
            wanted += ["difference", "difference_low", "difference_high"]
            frame = frame.merge(changes[wanted], on="metric", how="outer", sort=False)
            base_device = records[replace(cell, variant=PLAIN)]["device"]
            if (device := records[cell]["device"]) != base_device:
                frame["note"] = f"the base ran on {base_device}, this cell on {device}"
        for position, (column, value) in enumerate(zip(KEY, astuple(cell), strict=True)):
            frame.insert(position, column, value)
        frames.append(frame)
    joined = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)
    joined = joined.reindex(columns=COLUMNS)
    tested = joined["metric"].isin(SUMMARY_NAMES.values()) & joined["p"].notna()
    joined.loc[tested, "p_holm"] = holm(joined.loc[tested, "p"].to_numpy(np.float64))
    return joined


def differences_over(files: Iterable[str | Path], over: str) -> pd.DataFrame:
    """Differences in points of every variant to another one of its base, test points paired.

    Columns: those that name a cell, metric, difference, difference_low, difference_high, as in
    :func:`intervals`, whose differences are to the plain base.
    """
    paths = {Cell.from_path(Path(path).parent): Path(path) for path in files}
    others = {cell: path for cell, path in paths.items() if cell.variant == over}
    frames = []
    for other, path in others.items():
        base = Evaluation.load(cell_file(path.parent, INSTANCE))
        beside = [c for c in paths if replace(c, variant=over) == other and c.variant != over]
        for cell in beside:
            evaluation = Evaluation.load(cell_file(paths[cell].parent, INSTANCE))
            if base.numerators and evaluation.numerators:
                frame = paired_bootstrap(base, evaluation)
                frames.append(frame.assign(**asdict(cell)))
    columns = [*KEY, "metric", "difference", "difference_low", "difference_high"]
    joined = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return joined.reindex(columns=columns)


def write_intervals(frame: pd.DataFrame, path: str | Path) -> None:
    """Write ``results/intervals.csv``."""
    write_csv(path, frame)


def read_intervals(path: str | Path) -> pd.DataFrame:
    """``results/intervals.csv``, as :func:`intervals` made it."""
    return pd.read_csv(path)
