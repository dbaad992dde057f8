"""What a paper derives from its printed cells: averages, differences, the claims of its text.

Each is judged on the cells it rests on; intervals are those of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from benchmarks.evaluation.statistics import SUMMARY_METRICS
from benchmarks.papers import claims
from benchmarks.papers import printed as intervals
from benchmarks.papers.audit.within import ROW, Finding, position, value_at
from benchmarks.papers.printed import Interval
from benchmarks.papers.spec import Paper
from benchmarks.papers.verdicts import DOES_NOT_FOLLOW, NOTE, OK

DERIVED = {
    "mean": "average",
    "difference": "difference",
    "mean_change": "mean relative change (eq. 30)",
}


def check_derived(paper: Paper) -> Iterator[Finding]:
    """Averages, differences and mean relative changes, recomputed from the columns they sum up."""
    for _, entry in paper.values[paper.values["role"].isin(DERIVED)].iterrows():
        # A row is no change of itself.
        if entry["role"] == "mean_change" and entry["variant"] == entry["over"]:
            continue
        own = [str(part) for part in entry[ROW]]
        result = recomputed(paper, entry)
        holds = result.overlaps(claims.printed_value(entry))
        message = ""
        if not holds and entry["role"] == "mean":
            message = _explain_mean(entry, [value_at(paper, own, m) for m in entry["terms"]])
        yield Finding(
            paper.id,
            entry["table"],
            position(own[1], own[2], own[3], entry["metric"]),
            DERIVED[entry["role"]],
            OK if holds else DOES_NOT_FOLLOW,
            entry["value"],
            f"{result.middle:.2f} {result}",
            message,
        )


def recomputed(paper: Paper, entry: pd.Series) -> Interval:
    """A derived value from the columns it sums up; any other as printed."""
    own = [str(part) for part in entry[ROW]]
    if entry["role"] not in DERIVED or entry["variant"] == entry["over"]:
        return claims.printed_value(entry)
    if entry["role"] == "mean_change":
        base = [*own[:3], entry["over"]]
        names = SUMMARY_METRICS[entry["terms"][0]]
        pairs = [(value_at(paper, own, m), value_at(paper, base, m)) for m in names]
        return intervals.mean([intervals.relative_change(new, old) for new, old in pairs])
    terms = [value_at(paper, own, m) for m in entry["terms"]]
    return intervals.mean(terms) if entry["role"] == "mean" else terms[0] - terms[1]


def _explain_mean(entry: pd.Series, terms: list[Interval]) -> str:
    """Which single sign, if read wrongly, would give the printed mean."""
    goal = Interval(entry["low"], entry["high"])
    for i, name in enumerate(entry["terms"]):
        flipped = [-t if j == i else t for j, t in enumerate(terms)]
        if intervals.mean(flipped).overlaps(goal):
            return (
                f"sign error: the printed mean follows if {name} = {terms[i].middle:+.2f} is "
                f"taken as {-terms[i].middle:+.2f}"
            )
    return f"the mean of the printed cells is {intervals.mean(terms).middle:.2f}"


def check_claims(paper: Paper) -> Iterator[Finding]:
    """Statements of the text, judged on the printed cells, under each reading of them."""
    held_by: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for claim in paper.claims:
        readings: Mapping[str, str] = claim.get("readings") or {"": ""}
        outcomes = {
            name: claims.judge(paper, claim, claims.printed_value, row or None)
            for name, row in readings.items()
        }
        held = frozenset(name for name, outcome in outcomes.items() if outcome.holds)
        if "group" in claim:
            held_by.setdefault(claim["group"], []).append((claim["id"], held))
        best = next((o for o in outcomes.values() if o.holds), next(iter(outcomes.values())))
        message = best.detail
        if not held and best.value is not None:
            message = f"the cells give {best.value.middle:.2f}, which lies in {best.left}"
            if not isinstance(claim["right"], str):
                message += f"; the other side lies in {best.right}"
        if len(readings) > 1:
            message = "; ".join(
                f"{name} rows: {'holds' if o.holds else 'does not hold'} ({o.left})"
                + (f": {o.detail}" if o.detail else "")
                for name, o in outcomes.items()
            )
        verdict = DOES_NOT_FOLLOW if not held else NOTE if len(held) < len(readings) else OK
        if verdict == DOES_NOT_FOLLOW and best.value is not None and _cut_short(best.value, claim):
            verdict, message = NOTE, "follows if the value was cut off and not rounded"
        entries = claims.values_of(paper, claim, next(iter(readings.values())) or None)
        yield Finding(
            paper.id,
            ", ".join(sorted(set(entries["table"]))),
            claim["where"],
            f"claim {claim['id']}",
            verdict,
            claim["says"],
            best.left,
            message,
        )
        if held:
            yield from _rests_on(paper, claim, entries, readings)
    for group, members in held_by.items():
        common = frozenset.intersection(*(held for _, held in members))
        split = "; ".join(
            f"{name}: {' or '.join(sorted(held)) or 'none'}" for name, held in members
        )
        yield Finding(
            paper.id,
            "",
            group,
            "claims of one group hold under one reading",
            OK if common else DOES_NOT_FOLLOW,
            f"{len(members)} claims",
            " or ".join(sorted(common)) or "no one reading",
            "" if common else f"the readings are mixed: {split}",
        )


def _rests_on(
    paper: Paper, claim: Mapping[str, Any], entries: pd.DataFrame, readings: Mapping[str, str]
) -> Iterator[Finding]:
    """A claim that follows from printed averages must follow from what they average, too."""
    wrong = [
        f"{', '.join(entry[[*ROW[1:], 'metric']])} {entry['value']}"
        for _, entry in entries.iterrows()
        if not recomputed(paper, entry).overlaps(claims.printed_value(entry))
    ]
    outcomes = [
        claims.judge(paper, claim, lambda entry: recomputed(paper, entry), row or None)
        for row in (readings.values() if wrong else ())
    ]
    if outcomes and not any(o.holds for o in outcomes) and (value := outcomes[0].value):
        yield Finding(
            paper.id,
            ", ".join(sorted(set(entries["table"]))),
            claim["where"],
            f"claim {claim['id']} rests on sound cells",
            DOES_NOT_FOLLOW,
            claim["says"],
            f"{value.middle:.2f} {value}",
            f"it rests on {', '.join(wrong)}, which does not follow from its columns; "
            f"these give {value.middle:.2f}",
        )


def _cut_short(value: Interval, claim: Mapping[str, Any]) -> bool:
    """Whether an equation holds for a right side whose further digits were dropped."""
    if claim["op"] != "=" or not isinstance(claim["right"], str):
        return False
    right = intervals.printed(claim["right"])
    unit = math.copysign(2 * right.half_width, right.middle)
    ends = sorted((right.middle, right.middle + unit))
    return value.overlaps(Interval(*ends))
