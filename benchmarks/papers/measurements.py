"""Our side of a comparison: what a run measured, or why there is nothing.

Built on ``results/cells.csv`` (values, failures) and the cells' ``instance.npz`` (intervals and
paired changes). A lookup either gives a :class:`Measured` or raises :class:`MissingError` with a
verdict and a reason; no value is silently skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import norm as normal

from benchmarks.data.cards import all_cards
from benchmarks.evaluation.conventions import interchangeable
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import (
    LEVEL,
    RESAMPLES,
    SUMMARY_METRICS,
    SUMMARY_NAMES,
    Kind,
    bootstrap,
    mean_relative_change,
    over_seeds,
    paired_bootstrap,
)
from benchmarks.papers.verdicts import FAILED, NOT_APPLICABLE, NOT_RUN
from benchmarks.records.cell import KEY, Cell, Setup

Instances = Callable[[Cell], Evaluation | None]
Bounds = tuple[float, float, float]


class MissingError(LookupError):
    """There is no value of ours: ``outcome`` is a verdict, ``reason`` says why."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(f"{outcome}: {reason}")
        self.outcome = outcome
        self.reason = reason


@dataclass(frozen=True)
class Measured:
    """A measured value: the mean over seeds, with its interval over test points and seeds."""

    value: float
    low: float
    high: float
    seeds: tuple[int, ...]
    seed_sd: float
    runs: tuple[str, ...]
    p: float = float("nan")
    """The p-value of no change, where the value is a change: the largest over the seeds, and no
    less than the interval over seeds allows (as if of a normal variable)."""

    @property
    def half_width(self) -> float:
        """Half the interval; 0 where there is none."""
        return 0.0 if np.isnan(self.low) else (self.high - self.low) / 2


class Measurements:
    """What one run measured.

    ``cells`` and ``runs`` are the frames of ``cells.csv`` and ``runs.csv``, ``instances(cell)``
    gives a saved evaluation or None, ``missing`` is that of a
    :class:`~benchmarks.papers.spec.Paper`.
    """

    def __init__(
        self,
        cells: pd.DataFrame,
        instances: Instances,
        runs: pd.DataFrame | None = None,
        missing: Mapping[str, tuple[str, str]] | None = None,
        resamples: int = RESAMPLES,
    ) -> None:
        self.cells = cells
        self.instances = instances
        self.runs = runs
        self.missing = missing or {}
        self.resamples = resamples
        self._intervals: dict[Cell, pd.DataFrame | None] = {}
        self._pairs: dict[tuple[Cell, Cell], pd.DataFrame] = {}

    @cached_property
    def _values(self) -> dict[tuple[Setup, str], dict[str, dict[int, float]]]:
        """{(setup, metric): {convention: {seed: value}}} over all labels."""
        good = self.cells[(self.cells["status"] == "ok") & (self.cells["bin"] == "all")]
        out: dict[tuple[Setup, str], dict[str, dict[int, float]]] = {}
        for row in good.itertuples():
            name = row.metric if pd.isna(row.k) else f"{row.metric}@{int(row.k)}"
            key = (Setup(row.dataset, row.base, row.variant), name)
            out.setdefault(key, {}).setdefault(row.convention, {})[int(row.seed)] = row.value
        return out

    @cached_property
    def _known(self) -> dict[Setup, tuple[str, str]]:
        """Status and reason of each setup; of several seeds, the best."""
        out: dict[Setup, tuple[str, str]] = {}
        for row in self.cells.drop_duplicates(KEY).itertuples():
            key = Setup(row.dataset, row.base, row.variant)
            if key not in out or row.status == "ok":
                reason = "" if pd.isna(row.reason) else str(row.reason)
                out[key] = (str(row.status), reason)
        return out

    def values(self, setup: Setup, metric: str, convention: str) -> dict[int, float]:
        """{seed: value} of a metric under a convention, or one that means the same."""
        self.require(setup)
        by_convention = self._values.get((setup, metric), {})
        for name in [convention, *by_convention]:
            if name == convention or _means_the_same(metric, name, convention):
                found = {s: v for s, v in by_convention.get(name, {}).items() if not np.isnan(v)}
                if found:
                    return found
        if not by_convention:
            raise MissingError(NOT_RUN, f"{metric} was not measured for {setup}")
        raise MissingError(
            NOT_RUN,
            f"{metric} was scored under {', '.join(sorted(by_convention))}, "
            f"the table uses {convention}",
        )

    def require(self, setup: Setup) -> None:
        """Raise with the reason unless a cell of the setup ran."""
        dataset, base, variant = setup
        if setup in self._known:
            status, reason = self._known[setup]
            if status == "ok":
                return
            if reason.startswith(NOT_APPLICABLE):
                raise MissingError(NOT_APPLICABLE, reason.removeprefix(NOT_APPLICABLE).lstrip(": "))
            if status == "skipped":
                raise MissingError(NOT_RUN, reason or "skipped")
            raise MissingError(FAILED, f"{status}: {reason}" if reason else status)
        for name in (dataset, base, variant, *variant.split("+")):
            if name in self.missing:
                outcome, reason = self.missing[name]
                raise MissingError(outcome, f"{name}: {reason}")
        datasets = {known.dataset for known in self._known}
        if dataset not in datasets:
            reason = f"{dataset} is not in this run"
            for card in all_cards().values():
                if card.subset_of == dataset and card.name in datasets:
                    reason += f"; {card.name} is, but it is another split and not comparable"
            raise MissingError(NOT_RUN, reason)
        if not any((d, b) == (dataset, base) for d, b, _ in self._known):
            raise MissingError(NOT_RUN, f"{base} was not run on {dataset}")
        raise MissingError(NOT_RUN, f"{base} with {variant} was not run on {dataset}")

    def measured(self, setup: Setup, metric: str, convention: str) -> Measured:
        """A metric: mean over seeds, interval over test points and seeds."""
        values = self.values(setup, metric, convention)
        bounds: list[Bounds] = []
        for seed, value in values.items():
            row = self._interval(setup.cell(seed), metric)
            if row is not None:
                shift = value - row["value"]
                bounds.append((row["low"] + shift, row["high"] + shift, float("nan")))
        return _measured(setup, values, bounds)

    def change(
        self, base: Setup, variant: Setup, metric: str, convention: str, relative: bool
    ) -> Measured:
        """Variant over base for the seeds both ran with: percent of the base, or points."""
        before = self.values(base, metric, convention)
        after = self.values(variant, metric, convention)
        seeds = self._shared_seeds(base, variant, before, after)
        values: dict[int, float] = {}
        bounds: list[Bounds] = []
        for seed in seeds:
            points = after[seed] - before[seed]
            values[seed] = 100.0 * points / before[seed] if relative else points
            bounds += self._bounds(base, variant, seed, metric, relative, values[seed])
        return _measured(variant, values, bounds)

    def mean_change(self, base: Setup, variant: Setup, kind: Kind, convention: str) -> Measured:
        """Mean relative change in percent over the metrics of a kind, for the seeds of both."""
        names = SUMMARY_METRICS[kind]
        before = {m: self.values(base, m, convention) for m in names}
        after = {m: self.values(variant, m, convention) for m in names}
        seeds = self._shared_seeds(base, variant, before[names[0]], after[names[0]])
        values: dict[int, float] = {}
        bounds: list[Bounds] = []
        for seed in seeds:
            values[seed] = mean_relative_change(
                {m: before[m][seed] for m in names}, {m: after[m][seed] for m in names}, kind
            )
            name = SUMMARY_NAMES[kind]
            bounds += self._bounds(base, variant, seed, name, True, values[seed])
        return _measured(variant, values, bounds)

    def _bounds(
        self, base: Setup, variant: Setup, seed: int, metric: str, relative: bool, value: float
    ) -> list[Bounds]:
        """Low, high and p of a seed's change, where both members saved their points."""
        pair = self._pair(base.cell(seed), variant.cell(seed))
        if pair is None or metric not in pair.index:
            return []
        row = pair.loc[metric]
        names = ("change", "low", "high")
        if not relative:
            names = ("difference", "difference_low", "difference_high")
        # Another convention's interval lends its width, not its position.
        shift = value - float(row[names[0]])
        return [(float(row[names[1]]) + shift, float(row[names[2]]) + shift, float(row["p"]))]

    def _shared_seeds(
        self, base: Setup, variant: Setup, before: dict[int, float], after: dict[int, float]
    ) -> list[int]:
        seeds = sorted(set(before) & set(after))
        if not seeds:
            raise MissingError(NOT_RUN, "base and variant have no seed in common")
        unlike = {seed: self._unlike_terms(base, variant, seed) for seed in seeds}
        return [seed for seed in seeds if not unlike[seed]] or _refuse(base, variant, unlike)

    def _unlike_terms(self, base: Setup, variant: Setup, seed: int) -> list[str]:
        """In what the members of a pair differ that should be the same: data, budget, device."""
        if self.runs is None:
            return []
        terms = ("data", "threads", "device")
        columns = [c for c in self.runs if c in terms or str(c).startswith("budget")]
        rows = [self._run(setup.cell(seed))[columns] for setup in (base, variant)]
        if not all(len(row) for row in rows):
            return ["record"]
        before, after = (row.iloc[0].astype(str) for row in rows)
        return [f"{c} ({before[c]}, {after[c]})" for c in columns if before[c] != after[c]]

    def _run(self, cell: Cell) -> pd.DataFrame:
        assert self.runs is not None
        return self.runs[(self.runs[KEY] == list(astuple(cell))).all(axis=1)]

    def _interval(self, cell: Cell, metric: str) -> pd.Series | None:
        if cell not in self._intervals:
            evaluation = self.instances(cell)
            self._intervals[cell] = (
                bootstrap(evaluation, resamples=self.resamples).set_index("metric")
                if evaluation is not None and evaluation.numerators
                else None
            )
        frame = self._intervals[cell]
        return None if frame is None or metric not in frame.index else frame.loc[metric]

    def _pair(self, base: Cell, variant: Cell) -> pd.DataFrame | None:
        key = (base, variant)
        if key not in self._pairs:
            members = [self.instances(cell) for cell in key]
            if any(m is None or not m.numerators for m in members):
                return None
            first, second = (m for m in members if m is not None)
            frame = paired_bootstrap(first, second, resamples=self.resamples)
            self._pairs[key] = frame.set_index("metric")
        return self._pairs[key]


def average(parts: list[Measured]) -> Measured:
    """The mean of several measured values over the seeds they share."""
    seeds = tuple(sorted(set.intersection(*(set(p.seeds) for p in parts))))
    return Measured(
        value=float(np.mean([p.value for p in parts])),
        low=float(np.mean([p.low for p in parts])),
        high=float(np.mean([p.high for p in parts])),
        seeds=seeds,
        seed_sd=float("nan"),
        runs=parts[0].runs,
    )


def _measured(setup: Setup, values: dict[int, float], bounds: Sequence[Bounds]) -> Measured:
    seen = list(values.values())
    value = float(np.mean(seen))
    low, high = np.mean([b[:2] for b in bounds], axis=0) if bounds else (np.nan, np.nan)
    p = max((b[2] for b in bounds), default=np.nan)
    wide = over_seeds(seen, float(low), float(high))
    if wide != (low, high):
        to_zero = value - wide[0] if value > 0 else wide[1] - value
        p = np.maximum(p, 2 * normal.sf(normal.ppf(0.5 + LEVEL / 2) * abs(value) / to_zero))
    return Measured(
        value=value,
        low=wide[0],
        high=wide[1],
        seeds=tuple(sorted(values)),
        seed_sd=float(np.std(seen, ddof=1)) if len(seen) > 1 else float("nan"),
        runs=tuple(setup.cell(seed).path for seed in sorted(values)),
        p=float(p),
    )


def _refuse(base: Setup, variant: Setup, unlike: Mapping[int, list[str]]) -> list[int]:
    terms = "; ".join(dict.fromkeys(term for found in unlike.values() for term in found))
    raise MissingError(
        NOT_RUN,
        f"{base} and {variant} did not run on the same data and budget, "
        f"or not on the same device: they differ in {terms}",
    )


def _means_the_same(metric: str, one: str, other: str) -> bool:
    try:
        return interchangeable(metric, one, other)
    except ValueError:
        return False  # e.g. scores against complete labels, which no evaluator knows
