"""Intervals of every cell, and of every variant's change against its plain base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import SUMMARY_NAMES, bootstrap, holm, paired_bootstrap
from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import KEY

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
]
Cell = tuple[str, str, str, int]


def intervals(instances: Mapping[Cell, Path]) -> pd.DataFrame:
    """A row a cell and metric: value with its interval, and change over the plain base.

    The change is in percent of the base, the difference in points.

    Points are resampled, the same ones for a variant and its base. ``p_holm`` corrects the tests
    of PW eq. 30's two means over all variants of the run; single metrics carry no such claim.
    """
    evaluations = {cell: Evaluation.load(path) for cell, path in instances.items()}
    frames = []
    for cell, evaluation in evaluations.items():
        if not evaluation.numerators:
            continue  # the cell failed: it has nothing to resample
        frame = bootstrap(evaluation)
        plain = evaluations.get((*cell[:2], PLAIN, cell[3]))
        if cell[2] != PLAIN and plain is not None and plain.numerators:
            changes = paired_bootstrap(plain, evaluation)
            changes = changes.rename(columns={"low": "change_low", "high": "change_high"})
            wanted = ["metric", "change", "change_low", "change_high", "p"]
            wanted += ["difference", "difference_low", "difference_high"]
            frame = frame.merge(changes[wanted], on="metric", how="outer", sort=False)
        for position, (column, value) in enumerate(zip(KEY, cell, strict=True)):
            frame.insert(position, column, value)
        frames.append(frame)
    joined = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)
    joined = joined.reindex(columns=COLUMNS)
    tested = joined["metric"].isin(SUMMARY_NAMES.values()) & joined["p"].notna()
    joined.loc[tested, "p_holm"] = holm(joined.loc[tested, "p"].to_numpy(np.float64))
    return joined


def write_intervals(files: Iterable[Path], output: Path) -> None:
    """Read ``instance.npz`` files below ``results/runs`` and write the frame."""
    instances: dict[Cell, Path] = {}
    for path in files:
        dataset, base, variant, seed = path.parent.parts[-4:]
        instances[dataset, base, variant, int(seed.removeprefix("seed"))] = path
    with atomic_path(output) as temporary:
        intervals(instances).to_csv(temporary, index=False)
