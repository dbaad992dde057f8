"""Claims that a paper's own code judges on the datasets of a run, each row with a verdict.

A claim about a metric is judged by the 95% interval over test documents of the variant's change
in points. A verdict speaks of the dataset and base of its row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.evaluation.statistics import LEVEL
from benchmarks.papers.artefacts import Artefact, Need
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS, NO_CHANGE, OF_CLAIMS, UNDECIDED
from benchmarks.records.cells import KEY
from benchmarks.records.results import Results
from benchmarks.render.report import Section
from benchmarks.render.table import MINUS, Table

COLUMNS = ["claim", "dataset", "base", "measured", "verdict"]
NOTE = (
    f"Brackets: {LEVEL:.0%} interval of the change in points, over test documents. "
    f"{HOLDS}: the interval lies on the side the claim speaks of; {CONTRADICTED}: on the other; "
    f"{UNDECIDED}: it holds zero; {NO_CHANGE}: every ranking is the base's. "
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

    Seeds are averaged, the bounds, too: the interval is that of test documents, not of seeds.
    """
    rows = intervals[(intervals["variant"] == variant) & intervals["difference"].notna()]
    columns = ["difference", "difference_low", "difference_high"]
    return rows.groupby([*KEY[:2], "metric"], sort=False)[columns].mean()


def about_changes(intervals: pd.DataFrame, claims: Iterable[Change]) -> list[dict[str, Any]]:
    """A row for each claim, dataset, base and metric that the run has."""
    rows = []
    for claim in claims:
        for (dataset, base, metric), change in differences(intervals, claim.variant).iterrows():
            if base in claim.bases and metric in claim.metrics:
                value, low, high = change
                text = f"{metric} {value:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", MINUS)
                rows.append(row(claim.says, dataset, base, text, verdict(low, high, claim.sign)))
    return rows


def summary(claims: pd.DataFrame) -> pd.DataFrame:
    """How often each claim had which verdict, by claim."""
    counts = claims.groupby("claim", sort=False)["verdict"].value_counts().unstack(fill_value=0)
    return counts.reindex(columns=list(OF_CLAIMS), fill_value=0).reset_index()


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
    def judged(results: Results) -> pd.DataFrame:
        return pd.DataFrame(judge(results), columns=COLUMNS)

    def counted(results: Results) -> Table:
        return Table("", summary(judged(results)), ["claim"])

    def whole(results: Results) -> Table:
        return Table("", judged(results), COLUMNS, notes=[NOTE + note])

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
