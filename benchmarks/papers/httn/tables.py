"""Tables 2 to 4 of the HTTN paper, for every dataset of a run that has its methods."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmarks.evaluation.statistics import over_seeds
from benchmarks.papers.httn import rows
from benchmarks.papers.httn.comparison import RANKING, TAIL, measured
from benchmarks.records.results import METHOD, Results
from benchmarks.render.table import Table

METRICS = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "batchF1", "microF1")
NOTE = (
    "Brackets: 95% interval over test documents (and seeds, where there are several). batchF1 is "
    "the paper's F1-score, the mean of the micro-F1 of batches of 90 documents, without an "
    "interval; microF1 is that of all documents. Rows without l_tail: the rarest third of the "
    "labels is the tail."
)

ON_TAIL = {
    "tail F1": (TAIL, "microF1"),
    "tail P@1": (RANKING, "P@1"),
    "tail nDCG@5": (RANKING, "nDCG@5"),
}
TAIL_NOTE = (
    "Tail labels are the rarest third of those that occur in training. true and predicted: pairs "
    "of a test document and a tail label, the latter at probability 0.5, on which tail F1 (micro) "
    "rests. tail P@1 and nDCG@5 rank the tail labels alone, over the test documents that carry "
    "one, and depend on no threshold; they are left out where not every label was ranked. "
    "Brackets: 95% interval over test documents, and seeds where there are several."
)
TIME_NOTE = (
    "Minutes of processor time of the cells that ended well; half as many by the clock on two "
    "cores that do nothing else. Evaluation and the report are not counted."
)


def results_table(results: Results) -> Table:
    """A row per dataset and method in the paper's order, a column per metric."""
    found = results.intervals[results.intervals["metric"].isin(METRICS)]
    lines, texts = [], {}
    for key, own in found.groupby(METHOD, sort=False):
        name = rows.row_name(key[1], key[2], results.settings)
        if name is not None:
            lines.append((key[0], name, own))
    place = {method: number for number, method in enumerate(rows.METHODS)}
    datasets = list(dict.fromkeys(line[0] for line in lines))
    lines.sort(key=lambda line: (datasets.index(line[0]), _order(line[1], place)))
    frame = pd.DataFrame(columns=["dataset", "method", *METRICS])
    for number, (dataset, name, own) in enumerate(lines):
        values: dict[str, object] = {"dataset": dataset, "method": name}
        for metric, seeds in own.groupby("metric", sort=False):
            means = seeds[["value", "low", "high"]].mean()
            low, high = over_seeds(seeds["value"], means["low"], means["high"])
            values[str(metric)] = means["value"]
            if metric != "batchF1":  # documents of a batch share one value: no interval over them
                texts[number, str(metric)] = _bracketed(means["value"], low, high)
        frame.loc[number] = pd.Series(values)
    for metric in METRICS:
        frame[metric] = frame[metric].astype(float)
    best = _best(frame, METRICS)
    return Table("", frame, ["dataset", "method"], texts=texts, bold=best, notes=[NOTE])


def tail_table(results: Results) -> Table:
    """Tail labels alone: a row per dataset and method in the paper's order."""
    lines: list[dict[str, object]] = []
    texts = {}
    for dataset, by_method in measured(results).items():
        tail = rows.tail_labels(results.training[dataset])
        true = int(results.testing[dataset].labels[:, tail].nnz)
        for method in (m for m in rows.METHODS if m in by_method):
            own = by_method[method]
            line: dict[str, object] = {
                "dataset": dataset,
                "method": method,
                "seeds": str(len(own.predicted)),
                "tail labels": str(len(tail)),
                "true": str(true),
                "predicted": f"{np.mean(list(own.predicted.values())):.0f}",
            }
            for column, (part, metric) in ON_TAIL.items():
                value, low, high = own.interval(part, metric)
                line[column] = value
                if not np.isnan(value):
                    texts[len(lines), column] = _bracketed(value, low, high)
            lines.append(line)
    keys = ["dataset", "method", "seeds", "tail labels", "true", "predicted"]
    frame = pd.DataFrame(lines, columns=[*keys, *ON_TAIL])
    return Table("", frame, keys, texts=texts, bold=_best(frame, ON_TAIL), notes=[TAIL_NOTE])


def _bracketed(value: float, low: float, high: float) -> str:
    return f"{value:.2f} [{low:.2f},\N{NO-BREAK SPACE}{high:.2f}]"


def _best(frame: pd.DataFrame, columns: Iterable[str]) -> frozenset[tuple[int, str]]:
    """Row and column of the highest value per dataset, where one is above 0."""
    return frozenset(
        (int(own[column].idxmax()), column)
        for _, own in frame.groupby("dataset", sort=False)
        for column in columns
        if own[column].max() > 0
    )


def time_table(results: Results) -> Table:
    """A row per dataset: where the processor time of its cells goes."""
    runs = results.runs[[rows.method_of(base) is not None for base in results.runs["base"]]]
    lines = []
    for dataset, own in runs[runs["status"] == "ok"].groupby("dataset", sort=False):
        # A run without a fit that ended has no columns of phases.
        parts = own.reindex(columns=["cpu_s", "fit_cpu_s", "predict_cpu_s"])
        total, fit, predict = parts.astype(float).sum()
        longest = own.loc[own["cpu_s"].idxmax()]
        lines.append(
            {
                "dataset": dataset,
                "cells": str(len(own)),
                "minutes": total / 60,
                "fit %": 100 * fit / total,
                "predict %": 100 * predict / total,
                "start and load %": 100 * (total - fit - predict) / total,
                "longest cell": f"{longest['base']} {longest['variant']}",
                "its minutes": longest["cpu_s"] / 60,
            }
        )
    keys = ["dataset", "cells", "longest cell"]
    values = ["minutes", "fit %", "predict %", "start and load %"]
    columns = ["dataset", "cells", *values, "longest cell", "its minutes"]
    return Table("", pd.DataFrame(lines, columns=columns), keys, notes=[TIME_NOTE])


def _order(name: str, place: dict[str, int]) -> tuple[float, int]:
    """Methods without l_tail as printed, then those with it by falling l_tail."""
    method, _, setting = name.partition(", l_tail = ")
    return (-float(setting) if setting else -np.inf, place[method])
