"""Claims that a paper's own code judges on the datasets of a run, each row with a verdict.

A claim about a metric is judged by the 95% interval, over test documents and seeds, of the
variant's change in points. A verdict speaks of the dataset and base of its row alone. The metrics
of one claim at several k rank the same documents by the same scores: a pair of dataset and base
counts once, whatever the number of its k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.evaluation.statistics import LEVEL, over_seeds
from benchmarks.papers.artefacts import Artefact, Need
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS, NO_CHANGE, UNDECIDED
from benchmarks.records.cells import KEY
from benchmarks.records.results import Results
from benchmarks.render.report import Section
from benchmarks.render.table import MINUS, Table

CHANGE = ["difference", "difference_low", "difference_high"]
"""A change in points and its bounds."""
COLUMNS = ["claim", "dataset", "base", "measured", "verdict"]
NOTE = (
    f"Brackets: {LEVEL:.0%} interval of the change in points, over test documents and the seeds "
    "of the row; of one seed it does not know how much training anew would move it. "
    f"{HOLDS}: the interval lies on the side the claim speaks of; {CONTRADICTED}: on the other; "
    f"{UNDECIDED}: it holds zero; {NO_CHANGE}: every ranking is the base's. "
)
SOME = f"{HOLDS} at some k"
MIXED = "holds and contradicted"
SUMMARY_NOTE = (
    f"Pairs of a dataset and a base; a pair counts once for all its k. {HOLDS}: at every k; "
    f"{SOME}: and is contradicted at none; {MIXED}: each at some k; {CONTRADICTED}: at some k, "
    f"and holds at none; {NO_CHANGE}: at every k; {UNDECIDED}: the rest."
)


class Change(NamedTuple):
    """A claim that a variant moves metrics of some bases up (sign 1) or down (sign -1)."""

    says: str
    variant: str
    metrics: Sequence[str]
    sign: int
    bases: Sequence[str]


def row(claim: str, dataset: str, base: str, measured: str, verdict: str) -> dict[str, Any]:
    """One judged claim."""
    return dict(zip(COLUMNS, (claim, dataset, base, measured, verdict), strict=True))


def verdict(low: float, high: float, sign: int = 1) -> str:
    """Whether a change of the given sign is certain, excluded, or neither."""
    if np.isnan(low) or np.isnan(high):
        return UNDECIDED
    if low == high == 0:
        return NO_CHANGE
    if sign < 0:
        low, high = -high, -low
    if low > 0:
        return HOLDS
    return CONTRADICTED if high < 0 else UNDECIDED


def differences(intervals: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Changes in points of a variant over its base with bounds, by dataset, base, metric.

    Seeds are averaged; the bounds are those over test documents and seeds (``over_seeds``), whose
    number is in the column ``seeds``.
    """
    rows = intervals[(intervals["variant"] == variant) & intervals["difference"].notna()]
    found = rows.groupby([*KEY[:2], "metric"], sort=False)[CHANGE]
    means = found.mean()
    means["seeds"] = found.size()
    for key, seeds in found:
        means.loc[key, CHANGE[1:]] = over_seeds(seeds["difference"], *means.loc[key, CHANGE[1:]])
    return means


def about_changes(intervals: pd.DataFrame, claims: Iterable[Change]) -> list[dict[str, Any]]:
    """A row for each claim, dataset, base and metric that the run has."""
    rows = []
    for claim in claims:
        for (dataset, base, metric), change in differences(intervals, claim.variant).iterrows():
            if base in claim.bases and metric in claim.metrics:
                rows.append(about_change(claim.says, dataset, base, change, metric, claim.sign))
    return rows


def about_change(
    claim: str, dataset: str, base: str, change: pd.Series, name: str, sign: int = 1
) -> dict[str, Any]:
    """A claim of a change, as :func:`differences` has it; ``name`` says what changed."""
    value, low, high = (float(change[column]) for column in CHANGE)
    text = f"{name} {value:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", MINUS)
    seeds = int(change["seeds"])
    text += f", {seeds} seed{'s' if seeds > 1 else ''}"
    return row(claim, dataset, base, text, verdict(low, high, sign))


def summary(claims: pd.DataFrame) -> pd.DataFrame:
    """By claim: the number of pairs of dataset and base judged, and of those with each verdict.

    The verdicts of a pair at its several k are nested: the pair counts once (``SUMMARY_NOTE``).
    """
    pairs = claims.groupby(["claim", "dataset", "base"], sort=False)["verdict"].agg(_of_pair)
    counts = pairs.groupby("claim", sort=False).value_counts().unstack(fill_value=0)
    columns = [HOLDS, SOME, MIXED, CONTRADICTED, UNDECIDED, NO_CHANGE]
    counts = counts.reindex(index=claims["claim"].unique(), columns=columns, fill_value=0)
    counts.insert(0, "pairs", counts.sum(axis=1))
    return counts.reset_index(names="claim")


def _of_pair(verdicts: pd.Series) -> str:
    """The one verdict on a dataset and base from those at each k."""
    seen = set(verdicts)
    if len(seen) == 1:
        return str(seen.pop())
    if HOLDS in seen:
        return MIXED if CONTRADICTED in seen else SOME
    return CONTRADICTED if CONTRADICTED in seen else UNDECIDED


def claim_tables(
    paper: str,
    judge: Callable[[Results], list[dict[str, Any]]],
    note: str = "",
    *,
    needs: tuple[Need, ...] = ("intervals",),
    settings: tuple[str, ...] = (),
    section: Section | None = None,
) -> tuple[Artefact, Artefact]:
    """Register a paper's own judge of claims: a summary, and every verdict, as two tables.

    ``judge`` gives one :func:`row` per claim, dataset and base.
    """

    @cache
    def of_run(results: Results) -> pd.DataFrame:
        return pd.DataFrame(judge(results), columns=COLUMNS)

    def counted(results: Results) -> Table:
        return Table("", summary(of_run(results)), ["claim"], notes=[SUMMARY_NOTE])

    def whole(results: Results) -> Table:
        return Table("", of_run(results), COLUMNS, notes=[NOTE + note])

    shared: dict[str, Any] = {"needs": needs, "settings": settings, "section": section}
    return (
        Artefact(f"{paper}_summary", "The claims, and how often each held here", counted, **shared),
        Artefact(
            f"{paper}_claims",
            "Every claim, dataset and base",
            whole,
            fold="Every claim with its verdict",
            **shared,
        ),
    )
