"""A verdict for every published value and every claim.

Tolerance of a value: the largest of the printed rounding, the half-width of our interval and the
paper's declared band. The sign comes first: a change over the base whose printed sign our interval
excludes is contradicted, however near the amount. A claim that fails is undecided where the
interval of the difference of its two sides holds zero, contradicted otherwise. The verdicts are
those of :mod:`benchmarks.papers.verdicts`. ``p`` is of no change over the base; ``p_holm`` is
corrected over all the tests of the printed table.
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
from benchmarks.papers import claims, dataset_counts
from benchmarks.papers.measurements import (
    Instances,
    Measured,
    Measurements,
    MissingError,
    average,
)
from benchmarks.papers.printed import Interval, printed, relative_change
from benchmarks.papers.spec import Paper, load_paper
from benchmarks.papers.verdicts import (
    CONTRADICTED,
    HOLDS,
    MEASURED,
    MISSING,
    NOT_APPLICABLE,
    NOT_RUN,
    OUTCOMES,
    OUTSIDE,
    REPRODUCED,
    SAME_DIRECTION,
    UNDECIDED,
)
from benchmarks.records.cell import INSTANCE, PLAIN, Cell, Setup
from benchmarks.records.files import cell_file

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
    """One row for each published value of a paper, then one for each claim.

    ``cells`` is ``results/cells.csv``; ``instances(cell)`` gives a saved evaluation or None;
    ``runs`` (``results/runs.csv``) tells whether a pair ran on equal terms; ``facts(dataset)``
    gives a prepared dataset's ``meta.json`` or None.
    """
    paper = load_paper(paper) if isinstance(paper, str) else paper
    ran = cells[list(Setup._fields)].drop_duplicates().itertuples(index=False, name=None)
    paper = paper.as_run({Setup(*key) for key in ran})
    ours = Measurements(cells, instances, runs, paper.missing, resamples)
    rows = [_value_row(paper, entry, ours, facts) for _, entry in paper.values.iterrows()]
    rows += [_claim_row(paper, claim, ours) for claim in paper.claims]
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    for _, table in frame[frame["kind"] == "value"].groupby("table"):
        frame.loc[table.index, "p_holm"] = holm(table["p"].to_numpy(dtype=float))
    empty = frame["verdict"].isna() | (frame["verdict"] == "")
    if empty.any():
        raise AssertionError(f"{paper.id}: {empty.sum()} values without a verdict")
    return frame


def tally(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How many values and claims of each paper have which outcome, with the denominators."""
    rows = []
    for paper, frame in frames.items():
        for kind, part in frame.groupby("kind", sort=False):
            counts = {o: int((part["outcome"] == o).sum()) for o in OUTCOMES}
            measured = sum(counts[o] for o in MEASURED)
            good = f"{kind}s hold" if kind == "claim" else f"{kind}s reproduced"
            rows.append(
                {
                    "paper": paper,
                    "kind": kind,
                    "printed": len(part),
                    "measured": measured,
                    **counts,
                    "in words": f"{counts[REPRODUCED] + counts[HOLDS]} of {measured} measured "
                    f"{good}, {measured} of {len(part)} measured",
                }
            )
    return pd.DataFrame(rows)


def saved_instances(results: str | Path) -> Instances:
    """Evaluations saved under ``results/runs``."""

    def get(cell: Cell) -> Evaluation | None:
        path = cell.file(INSTANCE, results)
        return Evaluation.load(cell_file(path.parent, INSTANCE)) if path.exists() else None

    return get


def prepared_facts(results: str | Path) -> Facts:
    """What ``meta.json`` says of the datasets prepared under ``results/data``."""

    def get(dataset: str) -> Mapping[str, Any] | None:
        folder = Path(results) / "data" / dataset
        meta = read_meta(folder) if (folder / "meta.json").exists() else {"unavailable": "not here"}
        return None if "unavailable" in meta else meta

    return get


def our_value(paper: Paper, entry: pd.Series, ours: Measurements) -> Measured:
    """What we measured for a published value; raises with the reason where there is nothing."""
    role = entry["role"]
    setup = _setup(entry)
    metric, convention = entry["our_metric"], entry["convention"]
    if role == "outside":
        raise MissingError(NOT_APPLICABLE, entry["reason"])
    if role == "value":
        return ours.measured(setup, metric, convention)
    if role == "delta":
        return ours.change(_plain(paper, entry), setup, metric, convention, relative=False)
    if role == "mean":
        terms = [paper.one([*_row(entry), name]) for name in entry["terms"]]
        return average([our_value(paper, term, ours) for term in terms])
    if role == "mean_change":
        if entry["variant"] == entry["over"]:
            raise MissingError(NOT_APPLICABLE, "the change of a row over itself")
        return ours.mean_change(_plain(paper, entry), setup, entry["terms"][0], convention)
    if role == "difference":
        for name in entry["terms"]:
            our_value(paper, paper.one([*_row(entry), name]), ours)
    raise MissingError(NOT_APPLICABLE, f"a {role} that cells do not measure")


def _value_row(paper: Paper, entry: pd.Series, ours: Measurements, facts: Facts) -> dict[str, Any]:
    mapped = ["our_dataset", "our_base", "our_variant", "our_metric", "convention"]
    row: dict[str, Any] = {
        "kind": "value",
        **entry[["paper", "table", "dataset", "base", "variant", "metric"]],
        "printed": entry["value"],
        "printed_low": entry["low"],
        "printed_high": entry["high"],
        **entry[[*mapped, "model", "source"]],
    }
    print_ = Interval(entry["low"], entry["high"])
    try:
        if entry["role"] == "statistic":
            return row | _statistic(entry, print_, facts)
        value = our_value(paper, entry, ours)
    except MissingError as missing:
        return row | _verdict(missing.outcome, missing.reason)
    row |= _ours(value)
    row["p"] = value.p
    is_change = entry["role"] in ("delta", "mean", "mean_change")
    tolerance, source = _tolerance(
        print_, value, paper.band["change" if entry["role"] == "mean_change" else "points"]
    )
    row |= {"tolerance": tolerance, "tolerance_from": source}
    note = "the published value is an ensemble" if entry["model"] == "ensemble" else ""
    published: Interval | None = print_
    change: Measured | None = value
    if not is_change:
        published, change = _changes(paper, entry, ours)
        if published is not None:
            row["change_printed"] = published.middle
        if change is not None:
            row |= {
                "change_ours": change.value,
                "change_low": change.low,
                "change_high": change.high,
                "p": change.p,
            }
    outcome = _direction(published, change)
    if abs(value.value - print_.middle) <= tolerance:
        if outcome != CONTRADICTED:
            return row | _verdict(REPRODUCED, note)
        note = "; ".join(
            filter(None, ("within tolerance, but the change has the other sign", note))
        )
    return row | _verdict(outcome, note)


def _direction(published: Interval | None, change: Measured | None) -> str:
    """The verdict by the signs of the two changes alone."""
    if published is None or change is None or published.low <= 0 <= published.high:
        return OUTSIDE
    if np.sign(change.value) == np.sign(published.middle):
        return SAME_DIRECTION
    return CONTRADICTED if _opposed(published, change) else OUTSIDE


def _opposed(published: Interval, ours: Interval | Measured) -> bool:
    """Whether both signs are certain and they differ (NaN: nothing is certain)."""
    return bool(published.high < 0 < ours.low or ours.high < 0 < published.low)


def _changes(
    paper: Paper, entry: pd.Series, ours: Measurements
) -> tuple[Interval | None, Measured | None]:
    """Relative change over the plain base, published and ours, where each is known."""
    mapped = paper.values if paper.mapped is None else paper.mapped
    own = mapped.loc[entry.name]
    if own["our_variant"] == PLAIN:
        return None, None
    same = paper.values[
        (mapped["table"] == own["table"])
        & (mapped["our_dataset"] == own["our_dataset"])
        & (mapped["our_base"] == own["our_base"])
        & (mapped["our_variant"] == PLAIN)
        & (mapped["our_metric"] == own["our_metric"])
        & (mapped["role"] == "value")
    ]
    if len(same) != 1:
        return None, None
    before = Interval(same["low"].iloc[0], same["high"].iloc[0])
    published = relative_change(Interval(entry["low"], entry["high"]), before)
    try:
        base, setup = _setup(same.iloc[0]), _setup(entry)
        change = ours.change(base, setup, entry["our_metric"], entry["convention"], relative=True)
    except MissingError:
        return published, None
    return published, change


def _claim_row(paper: Paper, claim: Mapping[str, Any], ours: Measurements) -> dict[str, Any]:
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
            outcome = claims.judge(
                paper, claim, _lookup(paper, ours), reading or None, _gain(paper, ours)
            )
        except MissingError as missing:
            outcomes.append((name, _verdict(missing.outcome, missing.reason)))
            continue
        outcomes.append((name, _claim_verdict(paper, claim, reading or None, outcome)))
    best_first = (HOLDS, UNDECIDED, CONTRADICTED, *MISSING)
    name, best = min(outcomes, key=lambda item: best_first.index(item[1]["outcome"]))
    if name and best["outcome"] in MEASURED:
        best = best | _verdict(best["outcome"], f"read as {name}; {best['reason']}".rstrip("; "))
    return row | best


def _claim_verdict(
    paper: Paper, claim: Mapping[str, Any], reading: str | None, outcome: claims.Outcome
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    ours, right = outcome.value, claim.get("right", "")
    if ours is not None:
        found = {"ours": ours.middle, "ours_low": ours.low, "ours_high": ours.high}
    numbers = f"{outcome.left} against {outcome.right}"
    if outcome.detail:
        numbers += f"; {outcome.detail}"
    holds = outcome.holds
    if (
        not holds
        and claim.get("op") in ("=", "about")
        and isinstance(right, str)
        and ours is not None
    ):
        said = printed(right)
        roles = claims.values_of(paper, claim, reading)["role"]
        relative = "change" in claim["left"] or (roles == "mean_change").all()
        band = paper.band["change" if relative else "points"]
        tolerance = max(said.half_width, ours.half_width, band)
        found |= {"tolerance": tolerance, "printed_low": said.low, "printed_high": said.high}
        holds = abs(ours.middle - said.middle) <= tolerance and not _opposed(said, ours)
        if not holds and np.sign(ours.middle) == np.sign(said.middle):
            numbers += "; the sign is the printed one, the amount is not"
    if holds:
        return found | _verdict(HOLDS, numbers)
    return found | _verdict(UNDECIDED if outcome.undecided else CONTRADICTED, numbers)


def _lookup(paper: Paper, ours: Measurements) -> claims.Lookup:
    return lambda entry: _interval(our_value(paper, entry, ours))


def _gain(paper: Paper, ours: Measurements) -> claims.Gain:
    """Differences in points, of the same documents and seeds where these are shared."""

    def get(first: pd.Series, second: pd.Series) -> Interval:
        shared = ["our_dataset", "our_metric", "convention", "role"]
        if first["role"] == "value" and first[shared].equals(second[shared]):
            how = (first["our_metric"], first["convention"])
            return _interval(ours.change(_setup(second), _setup(first), *how, relative=False))
        return _interval(our_value(paper, first, ours)) - _interval(our_value(paper, second, ours))

    return get


def _interval(value: Measured) -> Interval:
    if np.isnan(value.low):
        return Interval(value.value, value.value)
    return Interval(min(value.low, value.value), max(value.high, value.value))


def _statistic(entry: pd.Series, print_: Interval, facts: Facts) -> dict[str, Any]:
    """Counts of a dataset, against what our preparation counted."""
    meta = facts(entry["our_dataset"])
    if meta is None:
        return _verdict(NOT_RUN, f"{entry['our_dataset']} is not prepared here")
    value = meta.get(entry["our_metric"])
    verdict, remark = dataset_counts.judge(entry["value"], value)
    if value is None:
        return _verdict(verdict, f"{entry['our_metric']} is not counted in our preparation")
    found = {"ours": float(value), "tolerance": print_.half_width, "tolerance_from": "rounding"}
    return found | _verdict(
        verdict, "; ".join(filter(None, ("counted in our preparation", remark)))
    )


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


def _setup(entry: pd.Series) -> Setup:
    return Setup(entry["our_dataset"], entry["our_base"], entry["our_variant"])


def _plain(paper: Paper, entry: pd.Series) -> Setup:
    """What a change refers to."""
    over = paper.select([*_row(entry)[:3], entry["over"], "*"])
    return _setup(entry)._replace(variant=over["our_variant"].iloc[0])


def _row(entry: pd.Series) -> list[str]:
    return [str(entry[column]) for column in ("table", "dataset", "base", "variant")]
