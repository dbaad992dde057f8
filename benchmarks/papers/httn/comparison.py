"""The methods of the HTTN paper side by side on a run's predictions: all labels, and the tail."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from benchmarks.evaluation.metrics import Evaluation, evaluate
from benchmarks.evaluation.statistics import bootstrap, over_seeds, paired_bootstrap
from benchmarks.papers.httn import rows
from benchmarks.papers.run_claims import CHANGE
from benchmarks.records.cell import PLAIN
from benchmarks.records.results import Results

WHOLE, TAIL, RANKING = "all labels", "tail labels", "ranking of tail labels"
BySeed = dict[int, Evaluation]


@dataclass
class Measured:
    """A method on a dataset: evaluations by part and seed; tail labels predicted, by seed.

    ``RANKING`` is missing where not every label was ranked.
    """

    parts: dict[str, BySeed] = field(default_factory=dict)
    predicted: dict[int, int] = field(default_factory=dict)

    def of(self, part: str) -> BySeed:
        """The evaluations of a part; none where it was not measured."""
        return self.parts.get(part, {})

    def interval(self, part: str, metric: str) -> tuple[float, float, float]:
        """The mean over seeds and its bounds, in percent; NaN without any."""
        found = [bootstrap(own).set_index("metric").loc[metric] for own in self.of(part).values()]
        if not found:
            return np.nan, np.nan, np.nan
        frame = pd.DataFrame(found)[["value", "low", "high"]].astype(float)
        value, low, high = frame.mean()
        return value, *over_seeds(frame["value"], low, high)


def measured(results: Results) -> dict[str, dict[str, Measured]]:
    """By dataset and method, plain cells alone."""
    found: dict[str, dict[str, Measured]] = {}
    for cell, top in results.rankings():
        method = rows.method_of(cell.base)
        if method is None or cell.variant != PLAIN:
            continue
        train, test = results.training[cell.dataset], results.testing[cell.dataset]
        tail = rows.tail_labels(train)
        own = found.setdefault(cell.dataset, {}).setdefault(method, Measured())
        parts = {
            WHOLE: evaluate(top, test.labels, train.labels, threshold=rows.THRESHOLD),
            TAIL: rows.tail_evaluation(top, train, test, tail),
        }
        # Tail labels that a shorter ranking leaves out are not the worst ranked.
        if top.k >= train.n_labels:
            parts[RANKING] = rows.tail_ranking(top, train, test, tail)
        for part, evaluation in parts.items():
            own.parts.setdefault(part, {})[cell.seed] = evaluation
        likely = top.scores > rows.THRESHOLD
        own.predicted[cell.seed] = int(np.isin(top.indices[likely], tail).sum())
    return found


def difference(base: Measured, other: Measured, part: str, metric: str) -> pd.Series | None:
    """The difference of two methods in points with its bounds, by the seeds both have.

    As a row of :func:`~benchmarks.papers.run_claims.differences`.
    """
    ours, theirs = other.of(part), base.of(part)
    seeds = [seed for seed in ours if seed in theirs]
    if not seeds:
        return None
    pairs = [paired_bootstrap(theirs[seed], ours[seed]).set_index("metric") for seed in seeds]
    frame = pd.DataFrame([pair.loc[metric, CHANGE] for pair in pairs]).astype(float)
    means = frame.mean()
    means[CHANGE[1:]] = over_seeds(frame["difference"], *means[CHANGE[1:]])
    means["seeds"] = len(seeds)
    return means
