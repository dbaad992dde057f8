"""What a finished run had been expected to cost, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.data.cards import all_cards
from benchmarks.records.cell import KEY, Cell
from workflow.planning.estimate import MEASURED
from workflow.planning.laws import Laws, fit
from workflow.planning.observed import NO_DEFINITIONS, from_parts, work_again
from workflow.planning.plan import earlier_runs


def planned_seconds(
    records: Mapping[Cell, Mapping[str, Any]],
    metas: Mapping[str, Mapping[str, Any]],
    plan: str | Path,
) -> dict[Cell, float]:
    """CPU seconds of cells, compiling apart, by the plan that was made before the run.

    Where ``plan`` (plan.csv) has no price, or one that was measured by this very run, it is what
    the laws say that were fitted to the shipped reference run.
    """
    made = _read(Path(plan))
    laws: Laws | None = None
    found = {}
    for cell, record in records.items():
        meta = metas.get(cell.dataset, {})
        if cell in made:
            found[cell] = made[cell]
        elif "n_train" in meta and "members" not in record["params"].get("ensemble", {}):
            if laws is None:
                laws = fit(earlier_runs(all_cards(), NO_DEFINITIONS, own=False)[0])
            recipes = partial(from_parts, record["recipe"])
            work, _ = work_again(recipes, meta, str(record.get("device", "cpu")))
            if work is not None:
                found[cell] = laws.seconds(work)
    return found


def _read(path: Path) -> dict[Cell, float]:
    if not path.exists():
        return {}
    rows = pd.read_csv(path)
    rows = rows[(rows["basis"] != MEASURED) & rows["seconds"].notna()]
    cells = rows[KEY].itertuples(index=False, name=None)
    return {Cell(*cell): float(s) for cell, s in zip(cells, rows["seconds"], strict=True)}
