"""All cells of a run in two frames: what was measured (cells.csv), how it went (runs.csv)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.records.cell import KEY, METRICS
from benchmarks.records.files import cell_file, read_record

CELL_COLUMNS = [
    *KEY,
    "status",
    "reason",
    "metric",
    "k",
    "convention",
    "bin",
    "value",
    "numerator",
    "denominator",
    "n",
]

# Where the complete labels are known, P is also given against them and as propensity scoring
# estimates it: rows under these names in the column of conventions.
COMPLETE_LABELS = "complete-labels"
PS_ESTIMATE = "ps-estimate"

RUN_FACTS = (
    "n_train",
    "n_test",
    "n_features",
    "n_labels",
    "labels_in_train",
    "features_per_train_document",
    "labels_per_document",
    "tokens_per_document",
    "n_words",
)
"""Of a run's data: what its cost depends on, so that ``runs.csv`` is enough to fit a law to."""

UNSCORED = "evaluation"
"""The column of a cell's ``metrics.csv`` that says why its predictions could not be scored."""


def collect(
    folders: Iterable[str | Path], facts: Callable[[str], Mapping[str, Any]] = lambda dataset: {}
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``cells`` (a row per measured value, or one row for a cell without any) and ``runs``.

    ``cells`` holds nothing that differs between two runs of the same code on the same data:
    times, memory and machines are in ``runs``, with what ``facts`` says of the datasets' sizes.
    """
    measured, records = [], []
    for folder in map(Path, folders):
        record = read_record(folder)
        metrics = pd.read_csv(cell_file(folder, METRICS, record), dtype={"k": "Int64"})
        if UNSCORED in metrics:
            record |= {"status": "error", "reason": str(metrics[UNSCORED].iloc[0])}
        if metrics.empty or UNSCORED in metrics:
            metrics = pd.DataFrame([{}])
        for position, column in enumerate([*KEY, "status", "reason"]):
            metrics.insert(position, column, record[column])
        measured.append(metrics.reindex(columns=CELL_COLUMNS))
        meta = facts(record["dataset"])
        sizes = {name: meta[name] for name in RUN_FACTS if meta.get(name) is not None}
        records.append({**_flat(record), **sizes})
    if not measured:
        return pd.DataFrame(columns=CELL_COLUMNS), pd.DataFrame(columns=KEY)
    cells = pd.concat(measured, ignore_index=True)
    return cells, pd.DataFrame(records)


def write_cells(cells: pd.DataFrame, path: str | Path) -> None:
    """Write ``results/cells.csv``."""
    write_csv(path, cells)


def read_cells(path: str | Path) -> pd.DataFrame:
    """``results/cells.csv`` as it was collected."""
    return pd.read_csv(path, dtype={"k": "Int64", "reason": "string"}, keep_default_na=True)


def write_runs(runs: pd.DataFrame, path: str | Path) -> None:
    """Write ``results/runs.csv``."""
    write_csv(path, runs)


def read_runs(path: str | Path) -> pd.DataFrame:
    """``results/runs.csv``: one row per cell, with status, times, memory and budget."""
    return pd.read_csv(path)


def cpu_of_work(row: Mapping[str, Any]) -> float:
    """CPU seconds that a row of ``runs.csv`` took, compiling apart, in all its processes.

    ``cpu_s`` is of the cell's own process. The shards of a cell, which alone has a phase of
    merging, are fitted in others, and ``fit_cpu_s`` is their sum.
    """
    in_shards = _seconds(row, "fit_cpu_s") if not pd.isna(row.get("merge_cpu_s", math.nan)) else 0.0
    return float(row["cpu_s"]) - _seconds(row, "warm_up_cpu_s") + in_shards


def metric_names(cells: pd.DataFrame) -> pd.Series:
    """The printed names, ``PSP@3``, of the rows of ``cells``."""
    suffix = cells["k"].map(lambda k: "" if pd.isna(k) else f"@{int(k)}")
    return cells["metric"].fillna("") + suffix


def wide(cells: pd.DataFrame, convention: str = DEFAULT) -> pd.DataFrame:
    """One row per dataset, base and variant, one column per metric such as ``PSP@3``.

    Values over all labels, averaged over seeds; rows in order of appearance.
    """
    rows = cells[(cells["bin"] == "all") & (cells["convention"] == convention)]
    named = rows.assign(name=metric_names(rows))
    return named.pivot_table(index=KEY[:3], columns="name", values="value", sort=False)


def failures(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells that are not ok, with status and reason."""
    bad = cells[cells["status"] != "ok"]
    return bad[[*KEY, "status", "reason"]].drop_duplicates().reset_index(drop=True)


def _seconds(row: Mapping[str, Any], column: str) -> float:
    """0 where a row has no such phase."""
    value = row.get(column, math.nan)
    return 0.0 if pd.isna(value) else float(value)


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    phases = {
        f"{phase}_{unit}": seconds
        for phase, times in record["phases"].items()
        for unit, seconds in times.items()
    }
    keep = ["status", "reason", "wall_s", "cpu_s", "peak_mb", "threads", "commit", "dirty"]
    return {
        **{key: record[key] for key in [*KEY, *keep, "code", "data"]},
        **{key: record.get(key) for key in ("device", "peak_gpu_mb")},
        **phases,
        **{f"budget_{key}": value for key, value in record["budget"].items()},
        **{name: values[-1] for name, values in record.get("history", {}).items() if values},
        "cpu": record["node"]["cpu"],
        "notes": "; ".join(record.get("notes", [])),
        "recipe": json.dumps(record["recipe"], sort_keys=True) if "recipe" in record else None,
    }
