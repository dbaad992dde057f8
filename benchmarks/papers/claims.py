"""Evaluate a paper's claims: expressions over values, and statements about them.

The same statement is judged on the printed values (what the paper says of itself) and on ours
(whether it holds here): only the function from a row of ``Paper.values`` to its number differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.papers import printed as intervals
from benchmarks.papers.printed import Interval
from benchmarks.papers.spec import POSITION, Paper

Lookup = Callable[[pd.Series], Interval]
Gain = Callable[[pd.Series, pd.Series], Interval]
"""From the rows of two values to the first minus the second."""

ABOUT = 0.05
"""How far, relative to the right side, an "about" may be off."""

READING = "$reading"
ZERO = intervals.exactly(0.0)


@dataclass(frozen=True)
class Outcome:
    """Whether a statement holds, and the numbers it was judged on.

    ``undecided``: it does not hold, but the interval of the difference of its two sides holds zero.
    """

    holds: bool
    left: str
    right: str
    detail: str = ""
    value: Interval | None = None
    undecided: bool = False


def printed_value(entry: pd.Series) -> Interval:
    """The numbers that round to what is printed."""
    return Interval(entry["low"], entry["high"])


def values_of(paper: Paper, claim: Mapping[str, Any], reading: str | None) -> pd.DataFrame:
    """Every value a claim refers to."""
    if "leads" in claim:
        return _columns_of(paper, claim["leads"])
    if "rises" in claim:
        return paper.select(claim["rises"]["cells"])
    positions = [*_positions(claim["left"]), *_positions(claim["right"])]
    found = [paper.select(_read(position, reading)) for position in positions]
    return pd.concat(found).drop_duplicates() if found else paper.values.iloc[:0]


def judge(
    paper: Paper,
    claim: Mapping[str, Any],
    value: Lookup,
    reading: str | None = None,
    gain: Gain | None = None,
) -> Outcome:
    """Judge a claim, its ``$reading`` being the printed row named by ``reading``.

    ``gain`` knows differences better than by subtracting intervals, e.g. from paired documents.
    """
    gain = gain or (lambda first, second: value(first) - value(second))
    if "leads" in claim:
        return _judge_lead(paper, claim, value, reading)
    if "rises" in claim:
        return _judge_rise(paper, claim["rises"], gain)
    left = _single(paper, claim["left"], value, reading)
    right = _single(paper, claim["right"], value, reading)
    holds = _compare(left, claim["op"], right)
    undecided = not holds and left.overlaps(right)
    if undecided and "cell" in claim["left"] and "cell" in claim["right"]:
        cells = [paper.one(_read(claim[side]["cell"], reading)) for side in ("left", "right")]
        undecided = gain(*cells).overlaps(ZERO)
    return Outcome(holds, str(left), str(right), value=left, undecided=undecided)


def _compare(left: Interval, op: str, right: Interval) -> bool:
    """An inequality holds unless rounding cannot save it; so does an equation."""
    if op == "=":
        return left.overlaps(right)
    if op == "about":
        room = ABOUT * abs(right.middle)
        return left.overlaps(Interval(right.low - room, right.high + room))
    if op == ">":
        return right.below(left) or (left.overlaps(right) and left.middle > right.middle)
    if op == "<":
        return _compare(right, ">", left)
    if op == ">=":
        return not left.below(right)
    if op == "<=":
        return not right.below(left)
    raise ValueError(f"no comparison {op!r}")


def _single(paper: Paper, expression: Any, value: Lookup, reading: str | None) -> Interval:
    found = _evaluate(paper, expression, value, reading)
    if len(found) != 1:
        raise ValueError(f"{paper.id}: {expression} has {len(found)} values where one is wanted")
    return found[0]


def _evaluate(paper: Paper, expression: Any, value: Lookup, reading: str | None) -> list[Interval]:
    if isinstance(expression, str):
        return [intervals.printed(expression)]
    ((kind, body),) = expression.items()
    if kind == "cell":
        return [value(paper.one(_read(body, reading)))]
    if kind == "cells":
        return [value(entry) for _, entry in paper.select(_read(body, reading)).iterrows()]
    terms = [term for part in body for term in _evaluate(paper, part, value, reading)]
    if kind == "mean":
        return [intervals.mean(terms)]
    if kind == "min":
        return [Interval(min(t.low for t in terms), min(t.high for t in terms))]
    if kind == "max":
        return [Interval(max(t.low for t in terms), max(t.high for t in terms))]
    first, second = terms
    if kind == "change":
        return [intervals.relative_change(first, second)]
    if kind == "difference":
        return [first - second]
    if kind == "ratio":
        return [first / second]
    raise ValueError(f"no operation {kind!r}")


def _judge_lead(
    paper: Paper, claim: Mapping[str, Any], value: Lookup, reading: str | None
) -> Outcome:
    lead = claim["leads"]
    rows = {tuple(_read(row, reading)) for row in lead["rows"]}
    # The paper's own rows under another reading are no rivals of this one.
    others = claim.get("readings", {}).values()
    kin = rows | {tuple(_read(row, other)) for row in lead["rows"] for other in others}
    ranks: Counter[int] = Counter()
    losses = []
    for (table, dataset, metric), column in _columns_of(paper, lead).groupby(
        ["table", "dataset", "metric"], sort=False
    ):
        own = [(b, v) in rows for b, v in zip(column["base"], column["variant"], strict=True)]
        if not any(own):
            continue
        values = [value(entry) for _, entry in column.iterrows()]
        mine = max((v for v, o in zip(values, own, strict=True) if o), key=lambda v: v.middle)
        ahead = [
            f"{base} {variant}".strip() + f" {v.middle:g}"
            for base, variant, v in zip(column["base"], column["variant"], values, strict=True)
            if (base, variant) not in kin and mine.below(v)
        ]
        rank = 1 + len(ahead)
        ranks[rank] += 1
        if rank > 1:
            where = f"Table {table}, {dataset}, {metric}"
            losses.append(f"{where}: rank {rank} at {mine.middle:g}, behind {', '.join(ahead)}")
    total = sum(ranks.values())
    wanted = {int(rank): count for rank, count in lead["ranks"].items()}
    holds = all(
        ranks[rank] == (total if count == "all" else count) for rank, count in wanted.items()
    )
    seen = ", ".join(f"{ranks[rank]} at rank {rank}" for rank in sorted(ranks))
    said = ", ".join(f"{count} at rank {rank}" for rank, count in wanted.items())
    return Outcome(holds, f"{seen}, of {total}", said, "; ".join(losses))


def _judge_rise(paper: Paper, rise: Mapping[str, Any], gain: Gain) -> Outcome:
    """Whether every cell is above that of the row ``over``; names the cells that are not."""
    gains = {}
    for _, entry in paper.select(rise["cells"]).iterrows():
        table, dataset, base, variant, metric = entry[list(POSITION)]
        before = paper.one([table, dataset, base, rise["over"], metric])
        gains[dataset, variant, metric] = gain(entry, before)
    fallen = {where: change for where, change in gains.items() if change.middle <= 0}
    return Outcome(
        not fallen,
        f"{len(fallen)} of {len(gains)} cells do not rise",
        "none",
        "; ".join(f"{', '.join(where)} {change.middle:+.2f}" for where, change in fallen.items()),
        undecided=bool(fallen) and all(change.overlaps(ZERO) for change in fallen.values()),
    )


def _columns_of(paper: Paper, lead: Mapping[str, Any]) -> pd.DataFrame:
    position = [
        "|".join(lead["table"]),
        "|".join(lead["datasets"]),
        "*",
        "*",
        "|".join(lead["metrics"]),
    ]
    found = paper.select(position)
    left_out = {tuple(pair) for pair in lead["except"]}
    pairs = zip(found["dataset"], found["metric"], strict=True)
    return found[[pair not in left_out for pair in pairs]]


def _positions(expression: Any) -> list[Sequence[str]]:
    if isinstance(expression, str):
        return []
    ((kind, body),) = expression.items()
    if kind in ("cell", "cells"):
        return [body]
    return [position for part in body for position in _positions(part)]


def _read(names: Sequence[str], reading: str | None) -> list[str]:
    if READING in names and reading is None:
        raise ValueError(f"{list(names)} needs a reading")
    return [str(reading) if name == READING else name for name in names]
