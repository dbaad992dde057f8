"""How long a run has still to go: the methods' laws of cost, corrected by what cells took here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common.digests import read_object
from benchmarks.records.cell import Cell
from methods.cost import law as law_of_cost
from methods.registry import MisfitError, Recipe, assemble

Law = Callable[[Cell], float | None]
"""Seconds that a cell is planned to take; None where nothing is known of it."""


def planned_seconds(
    base: Recipe, variants: Sequence[Recipe], meta: Mapping[str, Any]
) -> float | None:
    """Seconds on one core by the method's law of cost, None where it has none."""
    try:
        method = assemble(base, variants)
    except MisfitError:
        return None
    estimate = law_of_cost(method.cost, meta)
    return None if estimate is None else float(estimate.seconds)


def law_of(
    recipes: Mapping[Cell, tuple[Recipe, Sequence[Recipe]]], data: Path = Path("results/data")
) -> Law:
    """The laws of cost of a run's cells; a dataset counts from when it is prepared."""
    known: dict[Cell, float | None] = {}

    def law(cell: Cell) -> float | None:
        if cell not in known:
            path = data / cell.dataset / "meta.json"
            meta = read_object(path) if path.exists() else None
            if meta is None or "unavailable" in meta:
                return None
            known[cell] = planned_seconds(*recipes[cell], meta)
        return known[cell]

    return law


class Remaining:
    """Estimates the rest of a run from the cells that are done."""

    def __init__(self, cells: Iterable[Cell], law: Law, cores: int) -> None:
        self.left = set(cells)
        self.law = law
        self.cores = max(cores, 1)
        self.took: dict[Cell, float] = {}

    def finish(self, cell: Cell, seconds: float) -> None:
        """A cell is done, after so many seconds; if it was not to be run, these are of old."""
        if cell in self.left:
            self.left.remove(cell)
            self.took[cell] = seconds

    def seconds(self) -> float | None:
        """Seconds to go on all cores; None before anything is known.

        A law may be off by the speed of the machine, so it is scaled by the median of what cells
        took over what was planned. A cell without a law takes as long as its base's others, or as
        the median cell.
        """
        if not self.took:
            return None
        ratios = [took / law for cell, took in self.took.items() if (law := self.law(cell))]
        scale = median(ratios) if ratios else 1.0
        return sum(self._expected(cell, scale) for cell in self.left) / self.cores

    def _expected(self, cell: Cell, scale: float) -> float:
        same = (cell.dataset, cell.base)
        like = [took for done, took in self.took.items() if (done.dataset, done.base) == same]
        if like:
            return median(like)
        law = self.law(cell)
        return scale * law if law else median(self.took.values())
