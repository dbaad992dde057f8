"""What the cells cost: time and memory, as planned and as measured, and per point gained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from benchmarks.records.cell import PLAIN, Cell, Setup
from benchmarks.records.cells import cpu_of_work
from benchmarks.records.summary import METHOD, Summary
from benchmarks.render.views.numbers import plain, seconds
from benchmarks.render.views.passport import COMPILING

PHASES = (COMPILING, "fit", "merge", "predict")

Ids = Callable[[Setup], str]


def cost_rows(
    summary: Summary, runs: pd.DataFrame, planned: Mapping[Cell, float], ids: Ids
) -> list[dict[str, Any]]:
    """A row per setup that ran, seeds averaged.

    ``planned`` are the CPU seconds that were expected, compiling apart; ``ratio`` is what it took
    over that. ``per_point`` is the training time that
    a variant adds to its base for each percent of PS improvement, where there is any.
    """
    columns = [f"{phase}_wall_s" for phase in PHASES]
    columns += ["wall_s", "cpu_s", "peak_mb", "fit_cpu_s", "merge_cpu_s", f"{COMPILING}_cpu_s"]
    ran = runs[runs["status"] == "ok"].reindex(columns=[*METHOD, *columns])
    ran["work_s"] = [cpu_of_work(row) for row in ran.to_dict("records")]
    ran["all_s"] = ran["work_s"] + ran[f"{COMPILING}_cpu_s"].fillna(0.0)
    means = {Setup(*key): row for key, row in ran.groupby(METHOD, sort=False).mean().iterrows()}
    rows = []
    for setup in summary.setups:
        if setup not in means:
            continue
        own = means[setup]
        laws = [planned[cell] for cell in summary.seeds[setup] if cell in planned]
        law = sum(laws) / len(laws) if laws else math.nan
        gained = summary.change(setup, summary.headline("PS"))
        base = means.get(setup._replace(variant=PLAIN))
        extra = own["fit_wall_s"] - base["fit_wall_s"] if base is not None else math.nan
        per_point = extra / gained.value if gained.sign > 0 else math.nan
        numbers = {
            "compile": own[f"{COMPILING}_wall_s"],
            "fit": own["fit_wall_s"],
            "planned": law,
            "predict": own["predict_wall_s"],
            "CPU": own["all_s"],
            "per_point": per_point,
        }
        texts = {name: seconds(float(value)) for name, value in numbers.items()}
        if per_point < 0:
            texts["per_point"] = "less than plain"
        numbers["ratio"] = own["work_s"] / law
        texts["ratio"] = plain(float(numbers["ratio"]))
        numbers["memory"] = own["peak_mb"]
        texts["memory"] = f"{plain(float(own['peak_mb']), 0)} MB"
        known = {name: None if math.isnan(v) else float(v) for name, v in numbers.items()}
        rows.append({"id": ids(setup), "setup": setup, "numbers": known, "texts": texts})
    return rows
