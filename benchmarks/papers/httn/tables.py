"""Tables 2 to 4 of the HTTN paper, for every dataset of a run that has its methods."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.evaluation.statistics import over_seeds
from benchmarks.papers.httn import rows
from benchmarks.records.results import METHOD, Results
from benchmarks.render.table import Table

METRICS = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "batchF1", "microF1")
NOTE = (
    "Brackets: 95% interval over test documents (and seeds, where there are several). batchF1 is "
    "the paper's F1-score, the mean of the micro-F1 of batches of 90 documents; microF1 is that of "
    "all documents. Rows without l_tail: the rarest third of the labels is the tail."
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
            texts[number, str(metric)] = (
                f"{means['value']:.2f} [{low:.2f},\N{NO-BREAK SPACE}{high:.2f}]"
            )
        frame.loc[number] = pd.Series(values)
    for metric in METRICS:
        frame[metric] = frame[metric].astype(float)
    best = frozenset(
        (int(own[metric].idxmax()), metric)
        for _, own in frame.groupby("dataset", sort=False)
        for metric in METRICS
        if not own[metric].isna().all()
    )
    return Table("", frame, ["dataset", "method"], texts=texts, bold=best, notes=[NOTE])


def _order(name: str, place: dict[str, int]) -> tuple[float, int]:
    """Methods without l_tail as printed, then those with it by falling l_tail."""
    method, _, setting = name.partition(", l_tail = ")
    return (-float(setting) if setting else -np.inf, place[method])
