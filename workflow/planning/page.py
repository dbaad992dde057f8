"""The plan as files and words: ``plan.csv``, a page, and what the terminal shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_csv, write_text
from benchmarks.render.page import render_page
from benchmarks.render.table import Table, to_html, to_markdown
from benchmarks.render.views.numbers import seconds
from workflow.planning.estimate import SCALED
from workflow.planning.laws import by_family, spread_of
from workflow.planning.plan import BASES_OF_PRICE, Plan

HOURS = {
    "cores": ".0f",
    "gpus": ".0f",
    "core_hours": ",.1f",
    "gpu_hours": ",.1f",
    "hours": ",.1f",
    "largest_gb": ".1f",
    "disk_gb": ".1f",
}
NO_REASON = "this configuration leaves it out"
FAR = 10
"""Times the work of a run, beyond which a price scaled from it is said to be far out."""
LONGEST = 15
"""How many cells the page lists as the longest."""


def write_plan(plan: Plan, csv: str | Path, page: str | Path, missing: Sequence[str]) -> None:
    """Write the rows and the page; ``missing`` says what this machine lacks for the run."""
    write_csv(csv, plan.frame)
    tables = [to_html(table) for table in tables_of(plan)]
    rows = plan.frame.to_dict("records")
    shown = [{**row, "price": seconds(row["seconds"])} for row in rows]
    text = render_page(
        "plan", plan=plan, words=in_words(plan), tables=tables, rows=shown, missing=missing
    )
    write_text(page, text)


def tables_of(plan: Plan) -> list[Table]:
    """Totals by paper and dataset, how long it takes on more cores, the longest cells, printed
    values without a cell, what a budget leaves out."""
    longest = plan.frame.sort_values("seconds", ascending=False).head(LONGEST)
    hours = longest["seconds"] / 3600
    names = ["dataset", "base", "variant", "seed", "basis"]
    longest = longest[names].astype({"seed": str}).assign(hours=hours)
    found = [
        Table(
            "By paper; a cell that several papers print counts for each",
            _without_idle(plan.totals("papers")).rename(columns={"papers": "paper"}),
            ["paper"],
            HOURS,
        ),
        Table("By dataset", _without_idle(plan.totals("dataset")), ["dataset"], HOURS),
        Table("All of it, on more and more cores", plan.spans, [], HOURS),
        Table("The longest cells", longest, names, HOURS),
    ]
    without = Counter((v.paper, v.reason or NO_REASON) for v in plan.covered if not v.setups)
    if without:
        reasons = [
            {"paper": paper, "why": why, "printed_values": count}
            for (paper, why), count in without.items()
        ]
        caption = "Printed values without a cell"
        found.append(Table(caption, pd.DataFrame(reasons), ["paper", "why"], HOURS))
    if plan.machine.hours is not None:
        left = plan.frame[~plan.frame["within_hours"]]
        rows = [
            {
                "dataset": dataset,
                "base": base,
                "cells": len(own),
                "printed_values": int(own["printed_values"].sum()),
                "hours": own["seconds"].sum() / 3600,
            }
            for (dataset, base), own in left.groupby(["dataset", "base"], sort=False)
        ]
        columns = ["dataset", "base", "cells", "printed_values", "hours"]
        frame = pd.DataFrame(rows, columns=columns)
        caption = f"What {plan.machine.hours:g} hours leave out"
        found.append(Table(caption, frame, ["dataset", "base"], HOURS))
    return found


def in_words(plan: Plan) -> list[str]:
    """The plan in a few sentences."""
    frame, machine = plan.frame, plan.machine
    values, with_cell = len(plan.covered), sum(bool(value.setups) for value in plan.covered)
    explained = sum(value.explained for value in plan.covered)
    by_basis = frame["basis"].value_counts()
    lines = [
        f"{len(frame):,} cells ({len(plan.tasks):,} jobs): "
        + ", ".join(f"{count} {basis}" for basis, count in by_basis.items()),
        f"{with_cell:,} of the papers' {values:,} printed values have a cell in this run; "
        f"{explained - with_cell:,} have none for a stated reason, {values - explained:,} because "
        "this configuration leaves them out.",
        f"{_hours(frame[frame['device'] == 'cpu'])} hours of a core"
        f"{_on_cards(frame)}; the longest chain of jobs takes "
        f"{seconds(plan.critical.seconds)}: {' -> '.join(plan.critical.names)}",
        f"Cores {machine.cores}, graphics cards {machine.gpus}: "
        f"{plan.spans['hours'].iloc[0]:,.1f} hours.",
        error_in_words(plan),
    ]
    scaled = [each.times for each in plan.estimates if each.basis == SCALED]
    far = [times for times in scaled if times > FAR]
    if far:
        lines.append(
            f"{len(far)} of the {len(scaled)} scaled cells have more than {FAR} times the work of "
            f"the run they are scaled from (up to {max(far):,.0f} times): that far the error was "
            "not measured."
        )
    over = frame[frame["over_budget"] != ""]
    if len(over):
        lines.append(f"{len(over)} cells would overrun their own budget (column over_budget).")
    if machine.hours is not None:
        out = frame[~frame["within_hours"]]
        kept = int(frame.loc[frame["within_hours"], "printed_values"].sum())
        lines.append(
            f"{machine.hours:g} hours of this machine leave out {len(out)} cells; those that stay "
            f"have {kept} printed values (a value of two cells counts twice)."
        )
    return lines


def error_in_words(plan: Plan) -> str:
    """How far off such plans are, as measured on the runs at hand."""
    if not plan.runs:
        return "No earlier run is at hand: every price is a guess."
    known = [miss for miss in plan.misses if miss.known]
    lines = []
    all_runs, some = "of all {} runs", "of the {} whose base was run on other data, too"
    for misses, what in ((plan.misses, all_runs), (known, some)):
        median, most, _ = spread_of(miss.factor for miss in misses)
        if not math.isnan(median):
            whose = what.format(len(misses))
            lines.append(f"{whose}, median {median:.2f} and 90 % within {most:.2f}")
    beyond = [
        f"{family} {most:.1f}"
        for family, misses in by_family(plan.misses).items()
        if (most := spread_of(miss.factor for miss in misses)[1]) > 3.0
    ]
    if beyond:
        lines.append(f"families with 90 % not within 3: {', '.join(beyond)}")
    return "Error of the laws on data they had not seen, as a factor: " + "; ".join(lines) + "."


def as_text(plan: Plan, missing: Sequence[str]) -> str:
    """What the terminal shows."""
    parts = ["\n".join(in_words(plan)), *(to_markdown(table) for table in tables_of(plan))]
    if missing:
        parts.append("\n".join(["Missing on this machine:", *(f"  {line}" for line in missing)]))
    return "\n\n".join(part.rstrip() for part in parts)


def _without_idle(totals: pd.DataFrame) -> pd.DataFrame:
    """Without the bases of prices that no cell has."""
    idle = [basis for basis in BASES_OF_PRICE if not totals[basis].any()]
    return totals.drop(columns=idle)


def _hours(frame: pd.DataFrame) -> str:
    return f"{frame['seconds'].sum() / 3600:,.1f}"


def _on_cards(frame: pd.DataFrame) -> str:
    own = frame[frame["device"] != "cpu"]
    return f" and {_hours(own)} of a graphics card" if len(own) else ""
