"""What a run left, opened for those who draw from it: every file is read once, when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data.prepared import open_prepared, prepared_names
from benchmarks.data.split import Split
from benchmarks.records.cell import INSTANCE, NORMS, PREDICTIONS, Cell, Setup
from benchmarks.records.cells import read_cells, read_runs
from benchmarks.records.files import cell_file
from benchmarks.records.intervals import differences_over, read_intervals

METHOD = list(Setup._fields)
"""The columns that name a method on a dataset, seeds aside."""


class Results:
    """The results of a run, by kind.

    ``cells`` are those whose own files are read, norms and predictions of the first seed of a
    method; ``settings`` are parameters of the run's variants, by variant; ``ks`` the cut-offs of
    the metrics.
    """

    def __init__(
        self,
        folder: str | Path = "results",
        cells: Iterable[Cell] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        ks: Sequence[int] = (1, 3, 5),
    ) -> None:
        self.folder = Path(folder)
        self.data = self.folder / "data"
        self.settings = settings or {}
        self.ks = ks
        self._cells = tuple(cells)
        first = {(c.dataset, c.base, c.variant): c for c in reversed(self._cells)}
        self._first = tuple(c for c in self._cells if first[c.dataset, c.base, c.variant] is c)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """``cells.csv``: one row per measured value, or per cell without any."""
        return read_cells(self.folder / "cells.csv")

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """``intervals.csv``: one row per cell and metric."""
        return read_intervals(self.folder / "intervals.csv")

    def differences_over(self, variant: str) -> pd.DataFrame:
        """As the differences of ``intervals``, but to another variant than the plain base."""
        there = {cell.file(INSTANCE, self.folder) for cell in self._cells}
        return differences_over(sorted(path for path in there if path.exists()), variant)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """``runs.csv``: one row per cell, with its time and memory."""
        return read_runs(self.folder / "runs.csv")

    @cached_property
    def training(self) -> dict[str, Split]:
        """The training split of every prepared dataset with labels, by name."""
        return {name: open_prepared(self.data / name)[0] for name in prepared_names(self.data)}

    @cached_property
    def norms(self) -> pd.DataFrame:
        """Weight norms of every label that has one.

        Columns dataset, base, variant, label, count (training documents), rank (1 is the most
        frequent), norm.
        """
        frames = []
        for cell in self._first:
            if cell.dataset not in self.training:
                continue
            counts = self.training[cell.dataset].label_counts()
            norms = self._array(cell, NORMS, "norms")
            rank = np.empty(len(norms), np.int64)
            rank[np.argsort(-counts, kind="stable")] = np.arange(1, len(norms) + 1)
            columns = {"label": np.arange(len(norms)), "count": counts, "rank": rank, "norm": norms}
            frames.append(_of(cell, columns).dropna(subset="norm"))
        return joined(frames, [*METHOD, "label", "count", "rank", "norm"])

    @cached_property
    def predicted(self) -> pd.DataFrame:
        """How often each method with norms puts a label among its first five.

        Columns dataset, base, variant, label, times (test documents).
        """
        normed = set(self.norms[METHOD].itertuples(index=False, name=None))
        frames = []
        for cell in self._first:
            if (cell.dataset, cell.base, cell.variant) in normed:
                size = self.training[cell.dataset].labels.shape[1]
                times = times_predicted(self._array(cell, PREDICTIONS, "indices"), size)
                frames.append(_of(cell, {"label": np.arange(size), "times": times}))
        return joined(frames, [*METHOD, "label", "times"])

    def _array(self, cell: Cell, file: str, name: str) -> np.ndarray:
        path = cell.file(file, self.folder)
        with np.load(cell_file(path.parent, file)) as stored:
            return np.asarray(stored[name])


def times_predicted(indices: np.ndarray, n_labels: int, k: int = 5) -> np.ndarray:
    """In how many rows' top k each label is, int64[L]."""
    head = indices[:, :k]
    return np.bincount(head[head >= 0], minlength=n_labels).astype(np.int64)


def _of(cell: Cell, columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    names = {"dataset": cell.dataset, "base": cell.base, "variant": cell.variant}
    return pd.DataFrame({**names, **columns})


def joined(frames: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """The frames one below the other; without any, an empty frame with the columns."""
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(columns))
