"""A run by setup (dataset, base, variant): every value once, averaged over seeds, with intervals.

What the report shows is read from here; files are those of :mod:`benchmarks.records.results`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.evaluation.declarations import SUMMARY_NAMES, Kind
from benchmarks.evaluation.statistics import LEVEL
from benchmarks.records.cell import KEY, PLAIN, Cell, Setup
from benchmarks.records.cells import metric_names

METHOD = KEY[:3]


class Estimate(NamedTuple):
    """A number with its interval over test documents and seeds; NaN where there is none."""

    value: float
    low: float
    high: float
    seeds: int = 0

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)

    @property
    def known(self) -> bool:
        """Whether there is a number at all."""
        return not math.isnan(self.value)


NOTHING = Estimate(math.nan, math.nan, math.nan)


class BinPart(NamedTuple):
    """What a bin of labels adds to a metric, the most it could add, and the change in it."""

    part: Estimate
    bound: float
    difference: Estimate


def over_seeds(
    frame: pd.DataFrame, keys: Sequence[str], triples: Iterable[tuple[str, str, str]]
) -> pd.DataFrame:
    """Means of (value, low, high) over the rows of each key, as ``statistics.over_seeds`` does.

    The column ``seeds`` counts the rows.
    """
    columns = [column for triple in triples for column in triple]
    frame = frame.astype(dict.fromkeys(columns, float))  # a file of no rows knows no types
    grouped = frame.groupby(list(keys), sort=False)
    means = grouped[columns].mean()
    means["seeds"] = grouped.size()
    for value, low, high in (columns[i : i + 3] for i in range(0, len(columns), 3)):
        count = grouped[value].count()
        sd = grouped[value].std(ddof=1).fillna(0.0)
        quantile = student.ppf(0.5 + LEVEL / 2, np.maximum(count - 1, 1))
        half = np.where(count > 1, quantile * sd / np.sqrt(np.maximum(count, 1)), 0.0)
        wide = half > 0
        below, above = means[value] - means[low], means[high] - means[value]
        means[low] = np.where(wide, means[value] - np.hypot(below, half), means[low])
        means[high] = np.where(wide, means[value] + np.hypot(above, half), means[high])
    return means


@dataclass(frozen=True)
class Summary:
    """The frames of ``cells.csv``, ``intervals.csv`` and ``bins.csv``, by setup."""

    cells: pd.DataFrame
    intervals: pd.DataFrame
    bins: pd.DataFrame

    @cached_property
    def setups(self) -> list[Setup]:
        """Every setup of the run, those of a dataset and base together, in order of appearance."""
        found = [
            Setup(*row) for row in self.cells[METHOD].drop_duplicates().itertuples(index=False)
        ]
        datasets = list(dict.fromkeys(setup.dataset for setup in found))
        bases = list(dict.fromkeys(setup.base for setup in found))
        return sorted(found, key=lambda s: (datasets.index(s.dataset), bases.index(s.base)))

    @cached_property
    def seeds(self) -> dict[Setup, list[Cell]]:
        """The cells of each setup."""
        found: dict[Setup, list[Cell]] = {setup: [] for setup in self.setups}
        for row in self.cells[KEY].drop_duplicates().itertuples(index=False):
            cell = Cell(row.dataset, row.base, row.variant, int(row.seed))
            found[Setup(cell.dataset, cell.base, cell.variant)].append(cell)
        return found

    @cached_property
    def status(self) -> dict[Setup, tuple[str, str]]:
        """Status and reason; of several seeds, the worst news."""
        found: dict[Setup, tuple[str, str]] = {}
        for row in self.cells[[*METHOD, "status", "reason"]].drop_duplicates().itertuples():
            setup = Setup(row.dataset, row.base, row.variant)
            if setup not in found or row.status != "ok":
                found[setup] = (row.status, "" if pd.isna(row.reason) else str(row.reason))
        return found

    @cached_property
    def values(self) -> dict[Setup, dict[str, dict[str, float]]]:
        """{setup: {convention: {metric: mean over seeds}}} over all labels, in percent."""
        rows = self.cells[(self.cells["bin"] == "all") & (self.cells["status"] == "ok")]
        named = rows.assign(name=metric_names(rows))
        means = named.groupby([*METHOD, "convention", "name"], sort=False)["value"].mean()
        found: dict[Setup, dict[str, dict[str, float]]] = {}
        for (*key, convention, name), value in means.items():
            found.setdefault(Setup(*key), {}).setdefault(convention, {})[name] = float(value)
        return found

    def value(self, setup: Setup, metric: str) -> Estimate:
        """A metric under the default convention."""
        return self._estimate(self._values, setup, metric, "value", "low", "high")

    def change(self, setup: Setup, metric: str) -> Estimate:
        """The change over the plain base in percent of it."""
        columns = ("change", "change_low", "change_high")
        return self._estimate(self._changes, setup, metric, *columns)

    def difference(self, setup: Setup, metric: str) -> Estimate:
        """The change over the plain base in points."""
        columns = ("difference", "difference_low", "difference_high")
        return self._estimate(self._changes, setup, metric, *columns)

    def headline(self, kind: Kind) -> str:
        """The metric whose change is told first: the mean of six, or what the cut-offs allow."""
        mean = SUMMARY_NAMES[kind]
        measured = self.intervals.loc[self.intervals["change"].notna(), "metric"]
        if (measured == mean).any():
            return mean
        name = "PSP@" if kind == "PS" else "P@"
        own = [metric for metric in measured.unique() if str(metric).startswith(name)]
        return str(max(own, key=lambda metric: int(metric.partition("@")[2]), default=mean))

    def bin(self, setup: Setup, metric: str, name: str) -> BinPart | None:
        """A bin's part of a metric; None where the cell failed."""
        try:
            row = self._bins[(*setup, metric, name)]
        except KeyError:
            return None
        seeds = int(row["seeds"])
        return BinPart(
            Estimate(row["value"], row["low"], row["high"], seeds),
            row["bound"],
            Estimate(row["difference"], row["difference_low"], row["difference_high"], seeds),
        )

    def variants(self) -> list[Setup]:
        """Setups whose change over their plain base was measured."""
        return [s for s in self.setups if s.variant != PLAIN and (*s,) in self._changed]

    @cached_property
    def _values(self) -> dict[tuple[str, ...], Mapping[str, float]]:
        rows = self.intervals[self.intervals["value"].notna()]
        return _rows(over_seeds(rows, [*METHOD, "metric"], [("value", "low", "high")]))

    @cached_property
    def _changes(self) -> dict[tuple[str, ...], Mapping[str, float]]:
        rows = self.intervals[self.intervals["change"].notna()]
        triples = [
            ("change", "change_low", "change_high"),
            ("difference", "difference_low", "difference_high"),
        ]
        return _rows(over_seeds(rows, [*METHOD, "metric"], triples))

    @cached_property
    def _changed(self) -> set[tuple[str, ...]]:
        return {key[:3] for key in self._changes}

    @cached_property
    def _bins(self) -> dict[tuple[str, ...], Mapping[str, float]]:
        triples = [("value", "low", "high"), ("difference", "difference_low", "difference_high")]
        keys = [*METHOD, "metric", "bin"]
        means = over_seeds(self.bins, keys, triples)
        # The bound is of the test labels: the same for every seed.
        means["bound"] = self.bins.groupby(keys, sort=False)["bound"].first()
        return _rows(means)

    def _estimate(
        self,
        rows: Mapping[tuple[str, ...], Mapping[str, float]],
        setup: Setup,
        metric: str,
        *columns: str,
    ) -> Estimate:
        row = rows.get((*setup, metric))
        if row is None:
            return NOTHING
        value, low, high = (float(row[column]) for column in columns)
        return Estimate(value, low, high, int(row["seeds"]))


def _rows(frame: pd.DataFrame) -> dict[tuple[str, ...], Mapping[str, float]]:
    """The rows of a frame by its index, as plain dictionaries: a lookup costs nothing."""
    return dict(zip(frame.index, frame.to_dict("records"), strict=True))
