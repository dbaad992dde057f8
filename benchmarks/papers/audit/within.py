"""Checks of one paper's printed values against one another; nothing but print goes in.

Each check yields a :class:`Finding` for everything it looked at, ``ok`` included, so that the
audit can say how much was checked. Intervals are those of rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.papers import claims
from benchmarks.papers import printed as intervals
from benchmarks.papers.printed import Interval
from benchmarks.papers.spec import Paper
from benchmarks.papers.verdicts import DISAGREES, IMPOSSIBLE, NOTE, ODD, OK

NDCG_CHECK = "nDCG within what P allows"

ROW = ["table", "dataset", "base", "variant"]


@dataclass(frozen=True)
class Finding:
    """What one check says of one position in a paper."""

    paper: str
    table: str
    where: str
    check: str
    verdict: str
    printed: str
    recomputed: str
    message: str = ""


def rows_of(paper: Paper) -> Iterator[tuple[tuple[str, ...], dict[str, Interval]]]:
    """Each row of printed metric values: (table, dataset, base, variant), {our metric: value}."""
    rows: dict[tuple[str, ...], dict[str, Interval]] = {}
    for f in paper.values[paper.values["role"] == "value"].itertuples():
        key = (f.table, f.dataset, f.base, f.variant)
        rows.setdefault(key, {})[f.our_metric] = Interval(f.low, f.high)
    return iter(rows.items())


def position(dataset: str, base: str, variant: str, metric: str = "") -> str:
    """The position of a row or of a value in words: its names that are not empty."""
    return ", ".join(part for part in (dataset, base, variant, metric) if part)


def check_identities(paper: Paper) -> Iterator[Finding]:
    """nDCG@1 is P@1 and PSnDCG@1 is PSP@1, in one table or across two."""
    values = paper.values[paper.values["role"] == "value"]
    for first, second in (("P@1", "nDCG@1"), ("PSP@1", "PSnDCG@1")):
        key = ["dataset", "base", "variant"]
        pairs = values[values["our_metric"] == first].merge(
            values[values["our_metric"] == second], on=key, suffixes=("", "_2")
        )
        for _, pair in pairs.iterrows():
            same = Interval(pair["low"], pair["high"]).overlaps(
                Interval(pair["low_2"], pair["high_2"])
            )
            tables = sorted({pair["table"], pair["table_2"]})
            yield Finding(
                paper.id,
                ", ".join(tables),
                position(pair["dataset"], pair["base"], pair["variant"]),
                f"{first} = {second}",
                OK if same else IMPOSSIBLE,
                f"{pair['value']} and {pair['value_2']}",
                "equal by definition",
                ""
                if same
                else f"{first} (Table {pair['table']}) and {second} (Table "
                f"{pair['table_2']}) are one quantity, printed as two",
            )


def discount_sum(k: int) -> float:
    """The ideal DCG of k places."""
    return sum(1 / math.log2(j + 2) for j in range(k))


def dcg_range(row: Mapping[str, Interval], k: int) -> Interval | None:
    """What P@1, P@3 (and P@5) leave open for the mean DCG@k, in units of one hit.

    Between two printed cut-offs the number of hits is known but not their ranks: at best they
    come first, at worst last, and no rank can hold more than one.
    """
    cuts = [c for c in (1, 3, 5) if c <= k]
    if any(f"P@{c}" not in row for c in cuts):
        return None
    low = high = 0.0
    for end in ("low", "high"):
        done, start, total = 0.0, 0, 0.0
        for cut in cuts:
            hits = max(getattr(row[f"P@{cut}"], end) / 100 * cut - done, 0.0)
            ranks = list(range(start, cut))
            for rank in reversed(ranks) if end == "low" else ranks:
                put = min(hits, 1.0)
                total += put / math.log2(rank + 2)
                hits -= put
            done, start = getattr(row[f"P@{cut}"], end) / 100 * cut, cut
        if end == "low":
            low = total
        else:
            high = total
    return Interval(min(low, high), max(low, high))


def check_ndcg(paper: Paper) -> Iterator[Finding]:
    """nDCG@k cannot be below DCG@k over k full places, whatever a row's number of labels.

    Under a fixed normaliser it cannot be above it either: rows that are prove the other one.
    """
    above: dict[str, list[int]] = {}
    rows = dict(rows_of(paper))
    for (table, dataset, base, variant), row in rows.items():
        for k in (3, 5):
            dcg = dcg_range(row, k)
            if dcg is None or f"nDCG@{k}" not in row:
                continue
            floor = 100 * dcg.low / discount_sum(k)
            ceiling = 100 * dcg.high / discount_sum(k)
            value = row[f"nDCG@{k}"]
            fails = value.high < floor - intervals.SLACK
            above.setdefault(table, []).append(int(value.low > ceiling))
            yield Finding(
                paper.id,
                table,
                position(dataset, base, variant, f"nDCG@{k}"),
                NDCG_CHECK,
                IMPOSSIBLE if fails else OK,
                f"{value.middle:g}",
                f"at least {floor:.2f}",
                f"P@1 = {row['P@1'].middle:g} and P@{k} = {row[f'P@{k}'].middle:g} force more"
                + _pasted_from(rows, (table, dataset, base, variant), f"nDCG@{k}")
                if fails
                else "",
            )
    for table, counts in above.items():
        fixed = sum(counts) == 0
        yield Finding(
            paper.id,
            table,
            "all rows",
            "normaliser of nDCG",
            NOTE,
            f"{sum(counts)} of {len(counts)} cells above the ceiling of k full places",
            "k places, always" if fixed else "min(k, number of labels) places",
            "no cell leaves the range of a normaliser over k places"
            if fixed
            else "only a normaliser over a row's own number of labels allows these cells",
        )


def _pasted_from(
    rows: Mapping[tuple[str, ...], Mapping[str, Interval]], key: tuple[str, ...], metric: str
) -> str:
    """Names the dataset of the same table where the same method has the very same value."""
    table, dataset, base, variant = key
    same = [
        other[1]
        for other, row in rows.items()
        if (other[0], other[2], other[3]) == (table, base, variant)
        and other[1] != dataset
        and row.get(metric) == rows[key][metric]
    ]
    return f"; the value is that of {', '.join(same)}, pasted" if same else ""


def check_hits(paper: Paper) -> Iterator[Finding]:
    """k P@k, the number of hits, cannot fall as k grows."""
    for (table, dataset, base, variant), row in rows_of(paper):
        for j, k in ((1, 3), (3, 5)):
            if f"P@{j}" in row and f"P@{k}" in row:
                few, many = row[f"P@{j}"].scaled(j), row[f"P@{k}"].scaled(k)
                yield Finding(
                    paper.id,
                    table,
                    position(dataset, base, variant),
                    f"hits at {k} are no fewer than at {j}",
                    IMPOSSIBLE if many.below(few) else OK,
                    f"{row[f'P@{j}'].middle:g} and {row[f'P@{k}'].middle:g}",
                    f"{few.middle:g} and {many.middle:g} per 100 points",
                )


def check_same_run(paper: Paper) -> Iterator[Finding]:
    """A value printed in two tables of one paper is one value."""
    key = ["our_dataset", "our_base", "our_variant", "our_metric", "model"]
    groups: dict[tuple[str, ...], list[Any]] = {}
    for entry in with_implied(paper).itertuples():
        groups.setdefault(tuple(getattr(entry, k) for k in key), []).append(entry)
    for group in groups.values():
        for a, b in itertools.combinations(group, 2):
            if (a.table, a.base, a.variant) == (b.table, b.base, b.variant):
                continue
            same = Interval(a.low, a.high).overlaps(Interval(b.low, b.high))
            yield Finding(
                paper.id,
                ", ".join(sorted({a.table, b.table})),
                position(a.dataset, a.base, a.variant, a.metric),
                "one run, one value",
                OK if same else DISAGREES,
                f"{a.value} and {b.value}",
                "equal",
                ""
                if same
                else f"Table {a.table} prints {a.value}, Table {b.table} {b.value} "
                "for the same run",
            )


def with_implied(paper: Paper) -> pd.DataFrame:
    """Printed values, and those that a printed difference to another row implies."""
    entries = paper.values
    implied = entries[entries["role"] == "delta"].copy()
    for index, entry in implied.iterrows():
        base = value_at(paper, [*entry[ROW[:3]], entry["over"]], entry["metric"])
        total = base + Interval(entry["low"], entry["high"])
        implied.loc[index, ["low", "high"]] = total.low, total.high
        implied.loc[index, "value"] = f"{total.middle:.2f} (by its difference)"
    return pd.concat([entries[entries["role"] == "value"], implied])


def check_repeats(paper: Paper) -> Iterator[Finding]:
    """Two metrics of one method cannot well agree to the digit on two datasets."""
    values = paper.values[paper.values["role"] == "value"]
    for (table, base, variant), group in values.groupby(["table", "base", "variant"], sort=False):
        by_dataset = {
            d: dict(zip(g["metric"], g["value"], strict=True))
            for d, g in group.groupby("dataset", sort=False)
        }
        for one, other in itertools.combinations(by_dataset, 2):
            first, second = by_dataset[one], by_dataset[other]
            same = [m for m in first if m in second and float(first[m]) == float(second[m])]
            yield Finding(
                paper.id,
                str(table),
                position(f"{one} and {other}", str(base), str(variant)),
                "values repeated across datasets",
                ODD if len(same) > 1 else OK,
                ", ".join(f"{m} {first[m]}" for m in same),
                "different datasets, different values",
                f"the same {' and '.join(same)} on both datasets: one is a copy"
                if len(same) > 1
                else "",
            )


def check_all(paper: Paper) -> Iterable[Finding]:
    """Every check that needs this paper alone and no knowledge of propensities or datasets."""
    checks = (
        check_identities,
        check_ndcg,
        check_hits,
        check_same_run,
        check_repeats,
    )
    return itertools.chain.from_iterable(check(paper) for check in checks)


def value_at(paper: Paper, row: list[str], metric: str) -> Interval:
    """What is printed in a row, (table, dataset, base, variant), under a metric."""
    return claims.printed_value(paper.one([*row, metric]))
