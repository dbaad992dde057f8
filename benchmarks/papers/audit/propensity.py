"""Checks of printed propensity-scored metrics against one another and against P."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from benchmarks.evaluation.conventions import get_convention
from benchmarks.papers.audit.within import Finding, position, rows_of
from benchmarks.papers.printed import Interval
from benchmarks.papers.spec import Paper
from benchmarks.papers.verdicts import NOTE, ODD, OK

FAR = 0.05
"""How far PSnDCG@3 may lie from its usual position between PSP@1 and PSP@3 on a dataset."""

SHIFT = 2.0
"""By how many points a normaliser in each row may lift PSnDCG above the span of PSP."""

STEEP = 1.25
"""By which factor a PSP@1 / P@1 may exceed that of every other method on a dataset."""


def check_ps_span(paper: Paper) -> Iterator[Finding]:
    """PSnDCG@k is a weighted mean of PSP@1 .. PSP@k, if both are ratios of sums.

    (Sum the discounted gains by parts: the weights are the falls of the discount times the
    ideals.) PSP@2 and PSP@4 are not printed, and a normaliser in each row shifts the weights, so
    a value outside the span of the printed PSP is odd rather than impossible.
    """
    for (table, dataset, base, variant), row in rows_of(paper):
        for k in (3, 5):
            span = [row[f"PSP@{j}"] for j in (1, 3, 5) if j <= k and f"PSP@{j}" in row]
            value = row.get(f"PSnDCG@{k}")
            if value is None or len(span) < 2:
                continue
            low, high = min(s.low for s in span), max(s.high for s in span)
            verdict, message = OK, ""
            if not value.overlaps(Interval(low, high)):
                off = value.middle - high if value.middle > high else value.middle - low
                verdict, message = ODD, f"{off:+.2f} points outside the printed PSP@1..{k}"
                if not _plain_sums(paper, (table, dataset, base, variant)) and 0 < off < SHIFT:
                    verdict = NOTE
                    message += "; its normaliser in each row can do that"
            yield Finding(
                paper.id,
                table,
                position(dataset, base, variant, f"PSnDCG@{k}"),
                "PSnDCG within the span of PSP",
                verdict,
                f"{value.middle:g}",
                f"between {low:.4g} and {high:.4g}",
                message,
            )


def check_ps_position(papers: Sequence[Paper]) -> Iterator[Finding]:
    """Where PSnDCG@3 lies between PSP@1 and PSP@3 is nearly a constant of the dataset."""
    rows = [
        (paper.id, key, row, _share(row))
        for paper in papers
        for key, row in rows_of(paper)
        if all(m in row for m in ("PSP@1", "PSP@3", "PSnDCG@3")) and _plain_sums(paper, key)
    ]
    for dataset, group in _grouped(rows, lambda r: r[1][1]):
        usual = [share for _, _, _, share in group if share is not None]
        if len(usual) < 5:
            continue
        middle = statistics.median(usual)
        for paper_id, (table, _, base, variant), row, share in group:
            if share is None:
                continue
            far = abs(share - middle) > FAR
            one, three, mixed = (row[m].middle for m in ("PSP@1", "PSP@3", "PSnDCG@3"))
            yield Finding(
                paper_id,
                table,
                position(dataset, base, variant, "PSP@3"),
                "PSP@3 in line with PSP@1 and PSnDCG@3",
                ODD if far else OK,
                f"{three:g}",
                f"{one + (mixed - one) / middle:.2f}",
                f"PSnDCG@3 lies {share:.2f} of the way from PSP@1 to PSP@3, on this dataset "
                f"usually {middle:.2f}"
                if far
                else "",
            )


def check_ps_level(papers: Sequence[Paper]) -> Iterator[Finding]:
    """A PSP@1 out of proportion to P@1 hints at propensities of another kind."""
    for paper in papers:
        joined: dict[tuple[str, str, str], dict[str, Interval]] = {}
        for (_, dataset, base, variant), row in rows_of(paper):
            joined.setdefault((dataset, base, variant), {}).update(row)
        ratios = [
            (key, row["PSP@1"].middle / row["P@1"].middle)
            for key, row in joined.items()
            if "PSP@1" in row and "P@1" in row
        ]
        for dataset, group in _grouped(ratios, lambda r: r[0][0]):
            if len(group) < 4:
                continue
            for (_, base, variant), ratio in group:
                others = max(r for (_, b, v), r in group if (b, v) != (base, variant))
                high = ratio > STEEP * others
                yield Finding(
                    paper.id,
                    "",
                    position(dataset, base, variant),
                    "PSP@1 in proportion to P@1",
                    ODD if high else OK,
                    f"PSP@1 / P@1 = {ratio:.2f}",
                    f"{others:.2f} at most elsewhere",
                    "propensities of another kind (from the test set?) would explain it"
                    if high
                    else "",
                )


def _share(row: dict[str, Interval]) -> float | None:
    """How far PSnDCG@3 is on the way from PSP@1 to PSP@3; None where the way is short."""
    one, three, mixed = (row[m].middle for m in ("PSP@1", "PSP@3", "PSnDCG@3"))
    return (mixed - one) / (three - one) if abs(three - one) > 3 else None


def _plain_sums(paper: Paper, key: tuple[str, ...]) -> bool:
    table, dataset, base, variant = key
    found = paper.select([table, dataset, base, variant, "*"])
    chosen = get_convention(found["convention"].iloc[0])
    return not (chosen.row_normalised_psndcg or chosen.reranked)


def _grouped(items: Iterable[Any], key: Callable[[Any], str]) -> Iterable[tuple[str, list[Any]]]:
    """Items by key, in order of first appearance."""
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.items()
