"""Checks on the run itself: each a severity, what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.evaluation.conventions import CONVENTIONS
from benchmarks.records.cell import KEY, PLAIN, Setup
from benchmarks.records.summary import METHOD, Summary
from benchmarks.render.views.numbers import bracket, signed

NEAR = 0.8
"""A cell that used more of its budget than this share is named."""

Ids = Callable[[Setup], str]


class Check(NamedTuple):
    """Something a reader should know before trusting the numbers."""

    severity: str  # failed, warning or note
    what: str
    about: str
    setup: str = ""


def checks(
    summary: Summary,
    runs: pd.DataFrame,
    ids: Ids,
    leave_out: Collection[str] = (),
    guess: str = "",
) -> list[Check]:
    """Everything found, the gravest first.

    ``leave_out`` are bases that are no methods; ``guess`` is the one of them that predicts without
    a look at the document.
    """
    order = ("failed", "warning", "note")
    found = [
        *_failed(runs, ids),
        *_undecided(summary, ids),
        *_missing_seeds(summary, ids),
        *_guesses(summary, ids, leave_out, guess),
        *_equal_rows(summary, ids, leave_out),
        *_conventions(summary),
        *_budgets(runs, ids),
        *_sources(runs),
    ]
    return sorted(found, key=lambda check: order.index(check.severity))


def _failed(runs: pd.DataFrame, ids: Ids) -> Iterator[Check]:
    for row in runs[runs["status"] != "ok"].to_dict("records"):
        setup = Setup(*(row[key] for key in METHOD))
        reason = "" if pd.isna(row["reason"]) else row["reason"]
        severity = "note" if row["status"] == "skipped" else "failed"
        yield Check(
            severity, f"{row['status']}: {_name(setup)}, seed {row['seed']}", reason, ids(setup)
        )


def _undecided(summary: Summary, ids: Ids) -> Iterator[Check]:
    metric = summary.headline("PS")
    for setup in summary.variants():
        change = summary.change(setup, metric)
        if change.known and change.sign == 0 and change.high - change.low > 2 * abs(change.value):
            if change.low == change.high == 0:
                continue
            yield Check(
                "note",
                f"wide interval: {_name(setup)}",
                f"PS change {signed(change.value)} % {bracket(change)}: wider than twice the "
                "change itself; more test documents or seeds would be needed to tell its sign",
                ids(setup),
            )


def _missing_seeds(summary: Summary, ids: Ids) -> Iterator[Check]:
    most: dict[tuple[str, str], int] = {}
    for setup in summary.setups:
        key = (setup.dataset, setup.base)
        most[key] = max(most.get(key, 0), len(summary.seeds[setup]))
    for setup in summary.setups:
        have, want = len(summary.seeds[setup]), most[setup.dataset, setup.base]
        if have < want:
            about = f"{have} of the {want} seeds that others of its base have"
            yield Check("warning", f"missing seeds: {_name(setup)}", about, ids(setup))


def _guesses(summary: Summary, ids: Ids, leave_out: Collection[str], guess: str) -> Iterator[Check]:
    """Setups that are not clearly better than the guess on their dataset, at the first cut-off."""
    cut_offs = summary.cells.loc[summary.cells["metric"] == "P", "k"]
    metric = f"P@{cut_offs.min()}"
    for setup in summary.setups:
        own = summary.value(setup, metric)
        guessed = summary.value(Setup(setup.dataset, guess, PLAIN), metric)
        if setup.base in leave_out or not (own.known and guessed.known) or own.low > guessed.high:
            continue
        yield Check(
            "warning",
            f"no better than {guess}: {_name(setup)}",
            f"{metric} {own.value:.1f} [{own.low:.1f}, {own.high:.1f}] beside "
            f"{guessed.value:.1f} [{guessed.low:.1f}, {guessed.high:.1f}]: it has learnt next to "
            "nothing from the documents, so read no finding into its row",
            ids(setup),
        )


def _equal_rows(summary: Summary, ids: Ids, leave_out: Collection[str]) -> Iterator[Check]:
    """Setups of a dataset with the same value in every metric and convention."""
    seen: dict[Any, Setup] = {}
    for setup in summary.setups:
        values = summary.values.get(setup)
        if not values or setup.base in leave_out:
            continue
        row = tuple(
            sorted((c, m, round(v, 9)) for c, own in values.items() for m, v in own.items())
        )
        first = seen.setdefault((setup.dataset, row), setup)
        if first != setup:
            yield Check(
                "warning",
                f"equal rows: {_name(first)} and {_name(setup)}",
                "every metric is the same to nine digits: one method under two names, or a "
                "variant that changes no ranking here",
                ids(setup),
            )


def _conventions(summary: Summary) -> Iterator[Check]:
    """Conventions under which a dataset has no value although others have."""
    scored: dict[str, set[str]] = {}
    for setup, own in summary.values.items():
        scored.setdefault(setup.dataset, set()).update(own)
    for dataset, names in scored.items():
        for name in CONVENTIONS:
            if name not in names:
                about = "it does not apply to these data; the logs of their evaluation say why"
                yield Check("note", f"convention {name} has no values on {dataset}", about)


def _budgets(runs: pd.DataFrame, ids: Ids) -> Iterator[Check]:
    for used, limit, unit in (
        ("wall_s", "budget_wall_s", "s"),
        ("peak_mb", "budget_memory_mb", "MB"),
    ):
        if not {used, limit} <= set(runs.columns):
            continue
        near = runs[(runs["status"] == "ok") & (runs[used] > NEAR * runs[limit])]
        for row in near.to_dict("records"):
            setup = Setup(*(row[key] for key in METHOD))
            about = f"{row[used]:,.0f} of {row[limit]:,.0f} {unit}"
            yield Check("note", f"close to its budget: {_name(setup)}", about, ids(setup))


def _sources(runs: pd.DataFrame) -> Iterator[Check]:
    commits = runs["commit"].dropna().unique() if "commit" in runs else []
    if len(commits) > 1:
        listed = ", ".join(str(commit)[:12] for commit in commits)
        about = f"{listed}; a cell is run again only when the code of its own method changes"
        yield Check("note", f"cells of {len(commits)} commits", about)
    dirty = runs[runs["dirty"].fillna(False).astype(bool)] if "dirty" in runs else runs[:0]
    if len(dirty):
        about = "their exact sources are in no commit; the code digest of each is in its passport"
        yield Check(
            "note", f"{len(dirty)} of {len(runs)} cells ran with uncommitted changes", about
        )
    cpus = runs["cpu"].dropna().unique() if "cpu" in runs else []
    if len(cpus) > 1:
        yield Check(
            "note", f"cells of {len(cpus)} machines", "times do not compare: " + ", ".join(cpus)
        )


def _name(setup: Setup) -> str:
    return f"{setup.base} {setup.variant} on {setup.dataset}"


def complete(runs: pd.DataFrame) -> str:
    """How many cells there are and how many are ok, in words."""
    return f"{int((runs['status'] == 'ok').sum())} of {len(runs[KEY])} cells are ok"
