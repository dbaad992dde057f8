"""A verdict for every published figure and every claim.

``reproduced``: within tolerance, the largest of the printed rounding, the half-width of our
interval and the paper's declared band. ``same direction``: outside it, but the change over the
base has the published sign. ``contradicted``: our change has the other sign and its interval
excludes zero. ``outside tolerance``: anything else that was measured. ``failed``, ``not run`` and
``not applicable`` say why. ``p`` is of no change over the base; ``p_holm`` is corrected over all
the tests of the printed table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data.prepared import read_meta
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import RESAMPLES, holm
from benchmarks.papers import claims
from benchmarks.papers.printed import Interval, printed, relative_change
from benchmarks.papers.spec import Paper, load_paper
from benchmarks.records.lookup import (
    NOT_APPLICABLE,
    NOT_RUN,
    Cell,
    Instances,
    Measured,
    MissingError,
    Ours,
    average,
)

REPRODUCED = "reproduced"
SAME_DIRECTION = "same direction"
OUTSIDE = "outside tolerance"
CONTRADICTED = "contradicted"
MEASURED = (REPRODUCED, SAME_DIRECTION, OUTSIDE, CONTRADICTED)
OUTCOMES = (*MEASURED, "failed", NOT_RUN, NOT_APPLICABLE)

PLAIN = "plain"
Facts = Callable[[str], Mapping[str, Any] | None]

COLUMNS = [
    *("kind", "paper", "table", "dataset", "base", "variant", "metric"),
    *("printed", "printed_low", "printed_high"),
    *("our_dataset", "our_base", "our_variant", "our_metric", "convention", "model", "source"),
    *("ours", "ours_low", "ours_high", "seeds", "seed_sd"),
    *("change_printed", "change_ours", "change_low", "change_high", "p", "p_holm"),
    *("tolerance", "tolerance_from", "outcome", "verdict", "reason", "runs"),
]


def compare(
    paper: Paper | str,
    cells: pd.DataFrame,
    instances: Instances,
    *,
    runs: pd.DataFrame | None = None,
    facts: Facts = lambda dataset: None,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """One row for each published figure of a paper, then one for each claim.

    ``cells`` is ``results/cells.csv``; ``instances(dataset, base, variant, seed)`` gives a cell's
    saved evaluation or None; ``runs`` (``results/runs.csv``) tells whether a pair ran on equal
    terms; ``facts(dataset)`` gives a prepared dataset's ``meta.json`` or None.
    """
    paper = load_paper(paper) if isinstance(paper, str) else paper
    ours = Ours(cells, instances, runs, paper.unavailable, resamples)
    rows = [_figure_row(paper, figure, ours, facts) for _, figure in paper.figures.iterrows()]
    rows += [_claim_row(paper, claim, ours) for claim in paper.claims]
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    for _, table in frame[frame["kind"] == "figure"].groupby("table"):
        frame.loc[table.index, "p_holm"] = holm(table["p"].to_numpy(dtype=float))
    empty = frame["verdict"].isna() | (frame["verdict"] == "")
    if empty.any():
        raise AssertionError(f"{paper.id}: {empty.sum()} figures without a verdict")
    return frame


def tally(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How many figures and claims of each paper have which outcome, with the denominators."""
    rows = []
    for paper, frame in frames.items():
        for kind, part in frame.groupby("kind", sort=False):
            counts = {o: int((part["outcome"] == o).sum()) for o in OUTCOMES}
            measured = sum(counts[o] for o in MEASURED)
            rows.append(
                {
                    "paper": paper,
                    "kind": kind,
                    "printed": len(part),
                    "measured": measured,
                    **counts,
                    "in words": f"{counts[REPRODUCED]} of {measured} measured {kind}s reproduced, "
                    f"{measured} of {len(part)} measured",
                }
            )
    return pd.DataFrame(rows)


def saved_instances(results: str | Path) -> Instances:
    """Evaluations saved under ``results/runs``."""

    def get(dataset: str, base: str, variant: str, seed: int) -> Evaluation | None:
        path = Path(results) / "runs" / dataset / base / variant / f"seed{seed}" / "instance.npz"
        return Evaluation.load(path) if path.exists() else None

    return get


def prepared_facts(results: str | Path) -> Facts:
    """What ``meta.json`` says of the datasets prepared under ``results/data``."""

    def get(dataset: str) -> Mapping[str, Any] | None:
        folder = Path(results) / "data" / dataset
        meta = read_meta(folder) if (folder / "meta.json").exists() else {"unavailable": "not here"}
        return None if "unavailable" in meta else meta

    return get


def our_value(paper: Paper, figure: pd.Series, ours: Ours) -> Measured:
    """What we measured for a published figure; raises with the reason where there is nothing."""
    role = figure["role"]
    cell: Cell = (figure["our_dataset"], figure["our_base"], figure["our_variant"])
    metric, convention = figure["our_metric"], figure["convention"]
    if role == "outside":
        raise MissingError(NOT_APPLICABLE, figure["reason"])
    if role == "value":
        return ours.measured(cell, metric, convention)
    if role == "delta":
        return ours.change(_plain(paper, figure), cell, metric, convention, relative=False)
    if role == "mean":
        terms = [paper.one([*_row(figure), name]) for name in figure["terms"]]
        return average([our_value(paper, term, ours) for term in terms])
    if role == "mean_change":
        if figure["variant"] == figure["over"]:
            raise MissingError(NOT_APPLICABLE, "the change of a row over itself")
        return ours.mean_change(_plain(paper, figure), cell, figure["terms"][0], convention)
    if role == "difference":
        for name in figure["terms"]:
            our_value(paper, paper.one([*_row(figure), name]), ours)
    raise MissingError(NOT_APPLICABLE, f"a {role} that cells do not measure")


def _figure_row(paper: Paper, figure: pd.Series, ours: Ours, facts: Facts) -> dict[str, Any]:
    mapped = ["our_dataset", "our_base", "our_variant", "our_metric", "convention"]
    row: dict[str, Any] = {
        "kind": "figure",
        **figure[["paper", "table", "dataset", "base", "variant", "metric"]],
        "printed": figure["value"],
        "printed_low": figure["low"],
        "printed_high": figure["high"],
        **figure[[*mapped, "model", "source"]],
    }
    print_ = Interval(figure["low"], figure["high"])
    try:
        if figure["role"] == "statistic":
            return row | _statistic(figure, print_, facts)
        value = our_value(paper, figure, ours)
    except MissingError as missing:
        return row | _verdict(missing.outcome, missing.reason)
    row |= _ours(value)
    row["p"] = value.p
    is_change = figure["role"] in ("delta", "mean", "mean_change")
    tolerance, source = _tolerance(
        print_, value, paper.band["change" if figure["role"] == "mean_change" else "points"]
    )
    row |= {"tolerance": tolerance, "tolerance_from": source}
    note = "the published figure is an ensemble" if figure["model"] == "ensemble" else ""
    published: Interval | None = print_
    change: Measured | None = value
    if not is_change:
        published, change = _changes(paper, figure, ours)
        if published is not None:
            row["change_printed"] = published.middle
        if change is not None:
            row |= {
                "change_ours": change.value,
                "change_low": change.low,
                "change_high": change.high,
                "p": change.p,
            }
    if abs(value.value - print_.middle) <= tolerance:
        return row | _verdict(REPRODUCED, note)
    return row | _verdict(_direction(published, change), note)


def _direction(published: Interval | None, change: Measured | None) -> str:
    """The verdict on a value outside tolerance, from the signs of the two changes."""
    if published is None or change is None or published.low <= 0 <= published.high:
        return OUTSIDE
    if np.sign(change.value) == np.sign(published.middle):
        return SAME_DIRECTION
    certain = not np.isnan(change.low) and not change.low <= 0 <= change.high
    return CONTRADICTED if certain else OUTSIDE


def _changes(
    paper: Paper, figure: pd.Series, ours: Ours
) -> tuple[Interval | None, Measured | None]:
    """Relative change over the plain base, published and ours, where each can be had."""
    if figure["our_variant"] == PLAIN:
        return None, None
    same = paper.figures[
        (paper.figures["table"] == figure["table"])
        & (paper.figures["our_dataset"] == figure["our_dataset"])
        & (paper.figures["our_base"] == figure["our_base"])
        & (paper.figures["our_variant"] == PLAIN)
        & (paper.figures["our_metric"] == figure["our_metric"])
        & (paper.figures["role"] == "value")
    ]
    if len(same) != 1:
        return None, None
    base = Interval(same["low"].iloc[0], same["high"].iloc[0])
    published = relative_change(Interval(figure["low"], figure["high"]), base)
    cell: Cell = (figure["our_dataset"], figure["our_base"], figure["our_variant"])
    try:
        change = ours.change(
            (*cell[:2], PLAIN), cell, figure["our_metric"], figure["convention"], relative=True
        )
    except MissingError:
        return published, None
    return published, change


def _claim_row(paper: Paper, claim: Mapping[str, Any], ours: Ours) -> dict[str, Any]:
    right = claim.get("right", "")
    row: dict[str, Any] = {
        "kind": "claim",
        "paper": paper.id,
        "table": claim["where"],
        "metric": claim["id"],
        "printed": claim["says"],
    }
    readings: Mapping[str, str] = claim.get("readings") or {"": ""}
    outcomes: list[tuple[str, dict[str, Any]]] = []
    for name, reading in readings.items():
        try:
            outcome = claims.judge(paper, claim, _lookup(paper, ours), reading or None)
        except MissingError as missing:
            outcomes.append((name, _verdict(missing.outcome, missing.reason)))
            continue
        outcomes.append((name, _claim_verdict(paper, claim, right, outcome)))
    ranked = sorted(outcomes, key=lambda item: OUTCOMES.index(item[1]["outcome"]))
    name, best = ranked[0]
    if name and best["outcome"] in MEASURED:
        best = best | _verdict(best["outcome"], f"read as {name}; {best['reason']}".rstrip("; "))
    return row | best


def _claim_verdict(
    paper: Paper, claim: Mapping[str, Any], right: Any, outcome: claims.Outcome
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if outcome.value is not None:
        found = {
            "ours": outcome.value.middle,
            "ours_low": outcome.value.low,
            "ours_high": outcome.value.high,
        }
    numbers = f"{outcome.left} against {outcome.right}"
    if outcome.detail:
        numbers += f"; {outcome.detail}"
    if outcome.holds:
        return found | _verdict(REPRODUCED, numbers)
    if claim.get("op") in ("=", "about") and isinstance(right, str) and outcome.value is not None:
        said = printed(right)
        relative = "change" in claim["left"] or "summary" in str(claim["left"])
        band = paper.band["change" if relative else "points"]
        tolerance = max(said.half_width, outcome.value.half_width, band)
        found |= {"tolerance": tolerance, "printed_low": said.low, "printed_high": said.high}
        if abs(outcome.value.middle - said.middle) <= tolerance:
            return found | _verdict(REPRODUCED, numbers)
        if np.sign(outcome.value.middle) == np.sign(said.middle):
            return found | _verdict(SAME_DIRECTION, numbers)
        certain = outcome.value.low > 0 or outcome.value.high < 0
        return found | _verdict(CONTRADICTED if certain else OUTSIDE, numbers)
    return found | _verdict(CONTRADICTED, numbers)


def _lookup(paper: Paper, ours: Ours) -> claims.Lookup:
    def get(figure: pd.Series) -> Interval:
        value = our_value(paper, figure, ours)
        if np.isnan(value.low):
            return Interval(value.value, value.value)
        return Interval(min(value.low, value.value), max(value.high, value.value))

    return get


def _statistic(figure: pd.Series, print_: Interval, facts: Facts) -> dict[str, Any]:
    """Counts of a dataset, against what our preparation counted."""
    meta = facts(figure["our_dataset"])
    if meta is None:
        return _verdict(NOT_RUN, f"{figure['our_dataset']} is not prepared here")
    value = meta.get(figure["our_metric"])
    if value is None:
        return _verdict(NOT_APPLICABLE, f"{figure['our_metric']} is not counted in our preparation")
    close = print_.low <= float(value) <= print_.high
    found = {
        "ours": float(value),
        "tolerance": print_.half_width,
        "tolerance_from": "rounding",
    }
    return found | _verdict(REPRODUCED if close else OUTSIDE, "counted in our preparation")


def _tolerance(print_: Interval, value: Measured, band: float) -> tuple[float, str]:
    choices = {"rounding": print_.half_width, "interval": value.half_width, "band": band}
    name = max(choices, key=lambda key: choices[key])
    return choices[name], name


def _ours(value: Measured) -> dict[str, Any]:
    return {
        "ours": value.value,
        "ours_low": value.low,
        "ours_high": value.high,
        "seeds": len(value.seeds),
        "seed_sd": value.seed_sd,
        "runs": " ".join(value.runs),
    }


def _verdict(outcome: str, reason: str) -> dict[str, Any]:
    said = outcome if outcome in MEASURED else f"{outcome}: {reason}"
    return {"outcome": outcome, "verdict": said, "reason": reason}


def _plain(paper: Paper, figure: pd.Series) -> Cell:
    """The cell a change refers to."""
    over = paper.select([*_row(figure)[:3], figure["over"], "*"])
    return (figure["our_dataset"], figure["our_base"], over["our_variant"].iloc[0])


def _row(figure: pd.Series) -> list[str]:
    return [str(figure[column]) for column in ("table", "dataset", "base", "variant")]
