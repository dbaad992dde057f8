"""The answer: a sentence per base and variant, the headline figure, and every method's metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.records.cell import PLAIN, Setup
from benchmarks.records.summary import NOTHING, Estimate, Summary
from benchmarks.render.views.numbers import bracket, plain, signed

TAIL = "tail"
FAMILIES = ("PSP", "PSnDCG", "P", "nDCG", "R", "Cov")
HIDDEN = ("R", "Cov")
"""Families of metrics whose columns are closed at first."""

Ids = Callable[[Setup], str]

KINDS = {
    "gain": "PS rises, vanilla does not fall",
    "trade": "PS rises, vanilla falls",
    "loss": "PS falls",
    "cost": "no clear change of PS, vanilla falls",
    "unclear": "no clear change of PS, nor a fall of vanilla",
}
"""Verdicts on a variant, by the intervals of its two mean changes."""


def cutoffs(summary: Summary) -> list[int]:
    """The k of the run's metrics."""
    return sorted({int(k) for k in summary.cells["k"].dropna().unique()})


def sentences(summary: Summary, ids: Ids) -> list[dict[str, Any]]:
    """What each variant does to each base, over the run's datasets, the largest gain first."""
    found: dict[tuple[str, str], list[Setup]] = {}
    for setup in summary.variants():
        found.setdefault((setup.base, setup.variant), []).append(setup)
    ks = cutoffs(summary)
    metric = f"P@{ks[-1]}" if ks else "P@5"
    rows = []
    for (base, variant), setups in found.items():
        ps, vanilla = (
            mean_of([summary.change(s, summary.headline(kind)) for s in setups])
            for kind in ("PS", "vanilla")
        )
        seeds = [len(summary.seeds[setup]) for setup in setups]
        rows.append(
            {
                "base": base,
                "variant": variant,
                "kind": kind_of(ps, vanilla),
                "ps": ps,
                "vanilla": vanilla,
                "ps_text": f"{signed(ps.value)} %",
                "ps_interval": bracket(ps),
                "vanilla_text": f"{signed(vanilla.value)} %",
                "vanilla_interval": bracket(vanilla),
                "tail": tail_change(summary, setups, metric),
                "datasets": [setup.dataset for setup in setups],
                "seeds": min(seeds),
                "setup": ids(setups[0]),
            }
        )
    return sorted(rows, key=lambda row: -np.nan_to_num(row["ps"].value, nan=-math.inf))


def kind_of(ps: Estimate, vanilla: Estimate) -> str:
    """A key of :data:`KINDS`."""
    if ps.sign > 0:
        return "trade" if vanilla.sign < 0 else "gain"
    if ps.sign < 0:
        return "loss"
    return "cost" if vanilla.sign < 0 else "unclear"


def mean_of(parts: Sequence[Estimate]) -> Estimate:
    """The mean over datasets, which are as given and whose test documents are independent."""
    known = [part for part in parts if part.known]
    if not known:
        return NOTHING
    value = float(np.mean([part.value for part in known]))
    below = float(np.sqrt(np.sum([(p.value - p.low) ** 2 for p in known]))) / len(known)
    above = float(np.sqrt(np.sum([(p.high - p.value) ** 2 for p in known]))) / len(known)
    return Estimate(value, value - below, value + above, min(p.seeds for p in known))


def tail_change(summary: Summary, setups: Sequence[Setup], metric: str) -> dict[str, Any] | None:
    """The tail's part of a metric before and after, and the most it could be."""
    pairs = [
        (summary.bin(setup._replace(variant=PLAIN), metric, TAIL), summary.bin(setup, metric, TAIL))
        for setup in setups
    ]
    known = [(before, after) for before, after in pairs if before and after]
    if not known:
        return None
    change = mean_of([after.difference for _, after in known])
    return {
        "metric": metric,
        "before": plain(float(np.mean([before.part.value for before, _ in known]))),
        "after": plain(float(np.mean([after.part.value for _, after in known]))),
        "bound": plain(float(np.mean([after.bound for _, after in known]))),
        "change": change,
        "interval": "" if change.low == change.high == 0 else bracket(change, 2),
    }


def headline_points(summary: Summary, ids: Ids) -> list[dict[str, Any]]:
    """A point per setup: change of the vanilla and the PS metrics with both intervals.

    ``front`` marks the Pareto front of its dataset: no other point, the plain bases at zero
    included, is better in one of the two and no worse in the other.
    """
    points: list[dict[str, Any]] = []
    for setup in summary.variants():
        x, y = (summary.change(setup, summary.headline(k)) for k in ("vanilla", "PS"))
        if x.known and y.known:
            point: dict[str, Any] = {"setup": ids(setup), **setup._asdict()}
            point |= {"x": x.value, "x0": x.low, "x1": x.high, "seeds": y.seeds}
            points.append(point | {"y": y.value, "y0": y.low, "y1": y.high})
    for point in points:
        rivals = [p for p in points if p["dataset"] == point["dataset"]] + [{"x": 0.0, "y": 0.0}]
        point["front"] = not any(
            r["x"] >= point["x"]
            and r["y"] >= point["y"]
            and (r["x"], r["y"]) != (point["x"], point["y"])
            for r in rivals
        )
    return points


def columns(summary: Summary) -> list[dict[str, Any]]:
    """The metric columns of the methods' table, those of :data:`HIDDEN` closed."""
    names = {
        m
        for by_convention in summary.values.values()
        for row in by_convention.values()
        for m in row
    }
    found = []
    for family in FAMILIES:
        for k in cutoffs(summary):
            # nDCG@1 is P@1, and PSnDCG@1 is PSP@1: told once.
            name = f"{family}@{k}"
            if name in names and not (k == 1 and "nDCG" in family):
                found.append({"name": name, "hidden": family in HIDDEN})
    others = sorted(name for name in names if "@" not in name)
    return found + [{"name": name, "hidden": True} for name in others]


def method_rows(
    summary: Summary,
    ids: Ids,
    convention: str,
    printed_at: Mapping[Setup, Sequence[Any]],
    bounds: Collection[str] = (),
) -> list[dict[str, Any]]:
    """A row per setup with every metric; ``best`` of the variants of its base, controls apart.

    ``printed_at`` are the links (target, paper, table) to the printed values of a setup;
    ``bounds`` the bases that only bound the others.
    """
    names = [column["name"] for column in columns(summary)]
    kinds = {kind: summary.headline(kind) for kind in ("PS", "vanilla")}
    rows: list[dict[str, Any]] = []
    for setup in summary.setups:
        status, reason = summary.status[setup]
        own = summary.values.get(setup, {}).get(convention, {})
        rows.append(
            {
                "id": ids(setup),
                "setup": setup,
                "status": status,
                "reason": reason,
                "seeds": len(summary.seeds[setup]),
                "control": setup.base in bounds,
                "changes": {k: _number(summary.change(setup, m)) for k, m in kinds.items()},
                "metrics": {name: _metric(summary, setup, name, own) for name in names},
                "printed": printed_at.get(setup, ()),
            }
        )
    for row in rows:
        rivals = [r for r in rows if r["setup"][:2] == row["setup"][:2]]
        for name, cell in row["metrics"].items():
            best = max((r["metrics"][name]["text"] for r in rivals), default="", key=_as_number)
            cell["best"] = len(rivals) > 1 and cell["text"] == best and cell["value"] is not None
    return rows


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -math.inf


def _metric(summary: Summary, setup: Setup, name: str, own: Mapping[str, float]) -> dict[str, Any]:
    estimate = summary.value(setup, name)
    value = own.get(name, math.nan)
    moved = summary.difference(setup, name)
    return {
        "value": None if math.isnan(value) else value,
        "text": plain(value),
        "interval": bracket(estimate, 2, sign=False) if estimate.known else "",
        "sign": moved.sign,
        "moved": f"{signed(moved.value, 2)} {bracket(moved, 2)}" if moved.known else "",
    }


def _number(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value if estimate.known else None,
        "text": signed(estimate.value),
        "interval": bracket(estimate),
        "sign": estimate.sign,
    }
