"""Which printed values the cells of a run are for, and why some have no cell."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pandas as pd

from benchmarks.papers.spec import Paper
from benchmarks.records.cell import Setup

COUNTED = "a count of the dataset: made when it is prepared, not by a cell"


@dataclass(frozen=True)
class Coverage:
    """One printed value: the cells it is compared with, or the reason why there are none."""

    paper: str
    position: tuple[str, ...]
    """Table, dataset, base, variant and metric as printed."""
    setups: tuple[Setup, ...]
    reason: str

    @property
    def explained(self) -> bool:
        """Whether there is one of the two."""
        return bool(self.setups or self.reason)


def coverage(papers: Iterable[Paper], planned: Collection[Setup]) -> list[Coverage]:
    """Every printed value of the papers beside the setups of a run, in the papers' order."""
    found = []
    for paper in papers:
        own = paper.as_run(planned)
        for _, entry in own.values.iterrows():
            position = tuple(entry[["table", "dataset", "base", "variant", "metric"]])
            setups, reason = _cells_of(own, entry, planned)
            found.append(Coverage(paper.id, position, setups, reason))
    return found


def papers_of(covered: Iterable[Coverage]) -> dict[Setup, dict[str, int]]:
    """How many printed values of which paper each setup is for."""
    counts: dict[Setup, dict[str, int]] = {}
    for value in covered:
        for setup in value.setups:
            own = counts.setdefault(setup, {})
            own[value.paper] = own.get(value.paper, 0) + 1
    return counts


def _cells_of(
    paper: Paper, entry: pd.Series, planned: Collection[Setup]
) -> tuple[tuple[Setup, ...], str]:
    if entry["role"] == "statistic":
        return (), COUNTED
    if entry["role"] == "outside":
        return (), str(entry["reason"])
    rows = [entry]
    if entry["over"] and entry["over"] != entry["variant"]:
        over = paper.select([entry["table"], entry["dataset"], entry["base"], entry["over"], "*"])
        rows.append(over.iloc[0])
    setups = [Setup(*row[["our_dataset", "our_base", "our_variant"]]) for row in rows]
    for setup in setups:
        if setup not in planned:
            reasons = [paper.missing[name][1] for name in setup if name in paper.missing]
            return (), "; ".join(reasons)
    return tuple(dict.fromkeys(setups)), ""
