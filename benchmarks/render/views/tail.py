"""The tail view: metrics by bin against their bound, gains and losses, norms, moved labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.evaluation.bins import DECILES, ONCE, PARTS
from benchmarks.records.cell import PLAIN, Setup
from benchmarks.records.labels import FOUND, NORM, movements
from benchmarks.records.summary import Summary

NAMES = (*PARTS, ONCE, *DECILES)
"""The bins in the order of the page's data."""

TABLES = (("parts", ("head", "torso", "tail", ONCE, "unseen")), ("deciles", DECILES))
"""The tables of numbers by what the reader chose, with their columns."""

MOST = 8
"""Labels listed on each side."""

Ids = Callable[[Setup], str]


def binned(summary: Summary, ids: Ids) -> dict[str, dict[str, list[list[float] | None]]]:
    """{setup: {metric: [[value, low, high, bound, difference, low, high] for each bin]}}."""
    found: dict[str, dict[str, list[list[float] | None]]] = {}
    metrics = list(dict.fromkeys(summary.bins["metric"]))
    for setup in summary.setups:
        by_metric = {
            metric: [_bin(summary, setup, metric, name) for name in NAMES] for metric in metrics
        }
        by_metric = {metric: rows for metric, rows in by_metric.items() if any(rows)}
        if by_metric:
            found[ids(setup)] = by_metric
    return found


def _bin(summary: Summary, setup: Setup, metric: str, name: str) -> list[float] | None:
    found = summary.bin(setup, metric, name)
    if found is None:
        return None
    return [*found.part[:3], found.bound, *found.difference[:3]]


def definitions(labels: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """Per dataset and bin: its labels, how often these are seen in training and in test."""
    rows = []
    for dataset, frame in labels.items():
        if frame.empty:
            continue
        groups = {part: frame[frame["part"] == part] for part in PARTS}
        groups[ONCE] = frame[frame["train"] == 1]
        for name, group in groups.items():
            if len(group):
                rows.append(
                    {
                        "dataset": dataset,
                        "bin": name,
                        "labels": len(group),
                        "least": int(group["train"].min()),
                        "most": int(group["train"].max()),
                        "test": int(group["test"].sum()),
                        "share": 100.0 * group["test"].sum() / max(int(frame["test"].sum()), 1),
                    }
                )
    return rows


def norms(labels: Mapping[str, pd.DataFrame], ids: Ids) -> dict[str, list[float]]:
    """{setup: mean norm of the labels of each bin of :data:`NAMES`}."""
    found = {}
    for dataset, frame in labels.items():
        groups = [
            *((frame["part"] == part).to_numpy() for part in PARTS),
            (frame["train"] == 1).to_numpy(),
            *((frame["decile"] == d + 1).to_numpy() for d in range(len(DECILES))),
        ]
        for column in frame.columns:
            if column.startswith(NORM):
                values = frame[column].to_numpy(float)
                setup = Setup(dataset, *column.removeprefix(NORM).rsplit("/", 1))
                found[ids(setup)] = [_mean(values[group]) for group in groups]
    return found


def moved_labels(labels: Mapping[str, pd.DataFrame], ids: Ids) -> dict[str, dict[str, list[Any]]]:
    """{setup: {gained, lost: [[name, part, train, test, found before, found after], ...]}}."""
    found = {}
    for dataset, frame in labels.items():
        for column in [c for c in frame.columns if c.startswith(FOUND)]:
            method = column.removeprefix(FOUND)
            base, variant = method.rsplit("/", 1)
            plain = f"{base}/{PLAIN}"
            if variant == PLAIN or FOUND + plain not in frame.columns:
                continue
            moved = movements(frame, plain, method, MOST)
            found[ids(Setup(dataset, base, variant))] = {
                side: _listed(rows) for side, rows in moved.items()
            }
    return found


def _listed(rows: pd.DataFrame) -> list[Sequence[Any]]:
    columns = ["name", "part", "train", "test", "before", "after"]
    return [list(row) for row in rows[columns].itertuples(index=False, name=None)]


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
