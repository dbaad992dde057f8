"""What a finished run had been expected to cost, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from benchmarks.records.cell import Cell
from workflow.planning.laws import Laws, fit
from workflow.planning.observed import from_parts, work_again
from workflow.planning.reference import reference_runs


def planned_seconds(
    records: Mapping[Cell, Mapping[str, Any]], metas: Mapping[str, Mapping[str, Any]]
) -> dict[Cell, float]:
    """CPU seconds of cells, compiling apart, by laws fitted to the shipped reference runs.

    Of that, the runs on a cell's own dataset are left out: a price that was measured is no plan.
    Nothing but the cells' own files and those of the tree is read, so that the same run has the
    same report.
    """
    runs, _ = reference_runs()

    @cache
    def laws_without(dataset: str) -> Laws:
        return fit([run for run in runs if run.cell.dataset != dataset])

    datasets = {run.cell.dataset for run in runs}
    found = {}
    for cell, record in records.items():
        meta = metas.get(cell.dataset, {})
        if "n_train" not in meta or "members" in record["params"].get("ensemble", {}):
            continue
        recipes = partial(from_parts, record["recipe"])
        work, _ = work_again(recipes, meta, str(record.get("device", "cpu")))
        if work is not None:
            laws = laws_without(cell.dataset if cell.dataset in datasets else "")
            found[cell] = _three_digits(laws.seconds(work))
    return found


def _three_digits(value: float) -> float:
    """More are not known, and the last bits of a fit differ between machines; a report's do not."""
    return float(f"{value:.3g}")
