"""The verdicts of a run for the report: a matrix, a section per paper, the audit's findings.

Only what the run can say something about is laid out; the rest is counted, with its reasons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.papers.audit.within import position
from benchmarks.papers.spec import Paper
from benchmarks.papers.verdicts import (
    HOLDS,
    MEASURED,
    NOTE,
    OF_PRINT,
    OK,
    REPRODUCED,
)
from benchmarks.records.cell import Setup
from benchmarks.render.views.numbers import plain, signed

SHOWN = 4
"""Reasons for values that were not measured, listed in each table."""

Ids = Callable[[Setup], str | None]


def findings_of(audit: pd.DataFrame) -> list[dict[str, Any]]:
    """What the audit found, the gravest first, each with the id of its place on the page."""
    found = audit[audit["verdict"] != OK].fillna("")
    order = {verdict: place for place, verdict in enumerate(OF_PRINT)}
    rows = sorted(found.to_dict("records"), key=lambda row: order[row["verdict"]])
    return [
        {**row, "id": f"finding-{n}", "kind": slug(row["verdict"])} for n, row in enumerate(rows)
    ]


def paper_view(
    paper: Paper, frame: pd.DataFrame, findings: Sequence[Mapping[str, Any]], ids: Ids
) -> dict[str, Any]:
    """One paper: its tables with measured values, its claims, and how much was measured at all.

    ``frame`` are its verdicts (``compare/<paper>.csv``); ``ids`` gives the id of a setup of this
    run, None for others.
    """
    frame = frame.astype({"table": str})
    values, claims = (frame[frame["kind"] == kind] for kind in ("value", "claim"))
    abouts = {str(table["table"]): table["about"] for table in paper.spec["tables"]}
    notes: dict[tuple[str, str], str] = {}
    for finding in findings:
        if finding["paper"] == paper.id:
            notes.setdefault((str(finding["table"]), finding["where"]), finding["id"])
    tables = [
        _table(paper, str(number), abouts[str(number)], part, notes, ids)
        for number, part in values.groupby("table", sort=False)
    ]
    measured = [table for table in tables if table["measured"]]
    judged = claims[claims["outcome"].isin(MEASURED)]
    return {
        "id": paper.id,
        "title": paper.title,
        "short": paper.short_title,
        "venue": f"{paper.spec['venue']}, {paper.spec['year']}",
        "tables": tables,
        "open": measured,
        "measured": sum(table["measured"] for table in tables) + len(judged),
        "printed": len(frame),
        "claims": [_claim(row) for row in judged.to_dict("records")],
        "n_claims": len(claims),
        "claims_hold": int((judged["outcome"] == HOLDS).sum()),
        "unjudged": _reasons(claims[~claims["outcome"].isin(MEASURED)]),
        "findings": [f for f in findings if f["paper"] == paper.id and f["verdict"] != NOTE],
        "datasets": sorted(set(paper.values["our_dataset"])),
    }


def _table(
    paper: Paper,
    number: str,
    about: str,
    part: pd.DataFrame,
    notes: Mapping[tuple[str, str], str],
    ids: Ids,
) -> dict[str, Any]:
    counts = Counter(part["outcome"])
    measured = sum(counts[outcome] for outcome in MEASURED)
    rows = []
    for (dataset, base, variant), group in part.fillna({"base": "", "variant": ""}).groupby(
        ["dataset", "base", "variant"], sort=False
    ):
        if not group["outcome"].isin(MEASURED).any():
            continue
        first = group.iloc[0]
        setup = Setup(first["our_dataset"], first["our_base"], first["our_variant"])
        rows.append(
            {
                "names": [dataset, base, variant],
                "id": slug(f"{paper.id}-{number}-{dataset}-{base}-{variant}"),
                "setup": ids(setup),
                "ours": setup,
                "note": notes.get((number, position(dataset, base, variant))),
                "cells": {
                    row["metric"]: _cell(
                        row, notes.get((number, position(dataset, base, variant, row["metric"])))
                    )
                    for row in group.to_dict("records")
                },
            }
        )
    shown = set(part.loc[part["outcome"].isin(MEASURED), "metric"])
    return {
        "number": number,
        "about": about,
        "rows": rows,
        "metrics": [metric for metric in dict.fromkeys(part["metric"]) if metric in shown],
        "conventions": sorted(set(part["convention"].dropna())),
        "measured": measured,
        "reproduced": counts[REPRODUCED],
        "counts": [(outcome, counts[outcome]) for outcome in MEASURED if counts[outcome]],
        "total": len(part),
        "reasons": _reasons(part[~part["outcome"].isin(MEASURED)]),
        "id": slug(f"{paper.id}-table-{number}"),
    }


def _reasons(missing: pd.DataFrame) -> list[tuple[str, int]]:
    """Why values were not measured, the most frequent reasons first, the rest as one."""
    counts = Counter(missing["verdict"])
    listed = counts.most_common(SHOWN)
    rest = sum(counts.values()) - sum(n for _, n in listed)
    return listed + ([("for other reasons", rest)] if rest else [])


def _cell(row: Mapping[str, Any], finding: str | None) -> dict[str, Any]:
    known = row["outcome"] in MEASURED and not pd.isna(row["ours"])
    interval = ""
    if known and not pd.isna(row["ours_low"]):
        interval = f"[{plain(row['ours_low'])},\N{NO-BREAK SPACE}{plain(row['ours_high'])}]"
    seeds = 0 if pd.isna(row["seeds"]) else int(row["seeds"])
    detail = row["verdict"]
    if known and seeds:
        counted = "1 seed" if seeds == 1 else f"{seeds} seeds"
        detail += "; " + ", ".join(filter(None, (f"ours {plain(row['ours'])}", interval, counted)))
    if known and not pd.isna(row["tolerance"]):
        detail += f"; tolerance {row['tolerance']:.2f} ({row['tolerance_from']})"
    if not pd.isna(row["change_ours"]):
        detail += f"; change over the base {signed(row['change_ours'])} %"
        if not pd.isna(row["change_printed"]):
            detail += f", printed {signed(row['change_printed'])} %"
    return {
        "printed": row["printed"],
        "ours": plain(row["ours"]) if known else "",
        "value": row["ours"] if known else None,
        "metric": row["our_metric"],
        "switch": known and row["our_metric"] == row["metric"],
        "interval": interval,
        "seeds": seeds,
        "outcome": row["outcome"] if known else "",
        "kind": slug(row["outcome"]),
        "detail": detail,
        "finding": finding,
    }


def _claim(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "where": row["table"],
        "says": row["printed"],
        "outcome": row["outcome"],
        "kind": slug(row["outcome"]),
        "why": "" if pd.isna(row["reason"]) else row["reason"],
    }


class Link(NamedTuple):
    """Where a setup is printed: the row's place on the page, the paper's short name, the table."""

    target: str
    paper: str
    table: str


def printed_at(views: Sequence[Mapping[str, Any]]) -> dict[Setup, list[Link]]:
    """Where each setup of the run is printed."""
    found: dict[Setup, list[Link]] = {}
    for view in views:
        for table in view["open"]:
            for row in table["rows"]:
                link = Link(row["id"], view["short"], str(table["number"]))
                found.setdefault(row["ours"], []).append(link)
    return found


def slug(text: str) -> str:
    """The text as a word of letters, digits and dashes, for ids and classes of the page."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
