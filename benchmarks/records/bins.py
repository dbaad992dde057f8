"""``bins.csv``: what the labels of each frequency bin add to the metrics of every cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.evaluation.bin_statistics import bin_intervals, resampled_bins
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.records.cell import INSTANCE, KEY, PLAIN, Cell
from benchmarks.records.files import cell_file

COLUMNS = [
    *KEY,
    *("metric", "bin", "value", "low", "high", "bound"),
    *("difference", "difference_low", "difference_high"),
]


def bins(files: Iterable[str | Path]) -> pd.DataFrame:
    """One row per cell, metric and bin, from the cells' ``instance.npz``.

    ``value`` is the bin's part of the metric in percent, ``bound`` the largest part that any
    ranking could reach, ``difference`` the change over the plain base in points.
    """
    paths = {Cell.from_path(Path(path).parent): Path(path) for path in files}
    groups: dict[Cell, list[Cell]] = {}
    for cell in paths:
        groups.setdefault(replace(cell, variant=PLAIN), []).append(cell)
    frames = []
    for plain, cells in groups.items():
        base = _load(paths[plain]) if plain in paths else None
        base_draws = resampled_bins(base) if base is not None else None
        for cell in cells:
            own = base if cell == plain else _load(paths[cell])
            if own is None:
                continue
            if base is None or base_draws is None:
                frame = bin_intervals(own, resampled_bins(own))
            elif cell == plain:
                frame = bin_intervals(own, base_draws)
            else:
                frame = bin_intervals(own, resampled_bins(own), base, base_draws)
            for place, (column, value) in enumerate(zip(KEY, astuple(cell), strict=True)):
                frame.insert(place, column, value)
            frames.append(frame.reindex(columns=COLUMNS))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def write_bins(frame: pd.DataFrame, path: str | Path) -> None:
    """Write ``results/bins.csv``."""
    write_csv(path, frame)


def read_bins(path: str | Path) -> pd.DataFrame:
    """``results/bins.csv``, as :func:`bins` made it."""
    return pd.read_csv(path)


def _load(path: Path) -> Evaluation | None:
    """A cell's evaluation; None where the cell failed."""
    evaluation = Evaluation.load(cell_file(path.parent, INSTANCE))
    return evaluation if evaluation.bin_points is not None else None
