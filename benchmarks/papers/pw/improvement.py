"""PW Table 3 for any run: metrics of every method, and its mean change against its plain base."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.evaluation.statistics import (
    SUMMARY_NAMES,
    Kind,
    mean_relative_change,
    over_seeds,
)
from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import KEY, wide
from benchmarks.render.table import Table, with_interval


def relative_improvement(
    cells: pd.DataFrame, ks: Sequence[int] = (1, 3, 5), intervals: pd.DataFrame | None = None
) -> Table:
    """One row per method, seeds averaged.

    The change is PW eq. 30, which counts @1 twice, over propensity-scored and over vanilla
    metrics; with ``intervals`` (see :mod:`benchmarks.records.intervals`) its 95% interval over
    test documents follows.
    """
    names = _columns(ks)
    means = wide(cells).reindex(columns=names)
    order = _grouped(cells[KEY[:3]].drop_duplicates().itertuples(index=False, name=None))
    reasons = _failed(cells)
    rows: list[dict[str, object]] = []
    texts: dict[tuple[int, str], str] = {}
    for key in order:
        row: dict[str, object] = dict(zip(KEY[:3], key, strict=True))
        found = dict(means.loc[key]) if key in means.index else dict.fromkeys(names, math.nan)
        row.update(found)
        plain = (*key[:2], PLAIN)
        for kind in SUMMARY_NAMES:
            change = _change(means, plain, found, kind) if key != plain else math.nan
            row[kind] = change
            if intervals is not None:
                low, high = _interval(intervals, key, SUMMARY_NAMES[kind])
                row |= {f"{kind} low": low, f"{kind} high": high}
                if not math.isnan(low):
                    texts[len(rows), kind] = with_interval(change, low, high)
        if key in reasons:
            texts[len(rows), names[0]] = reasons[key]
        rows.append(row)
    frame = pd.DataFrame(rows, columns=[*KEY[:3], *names, "PS", "vanilla", *_bounds(intervals)])
    return Table(
        caption="Every method, and its mean relative change (%) against its plain base",
        frame=frame,
        key_columns=KEY[:3],
        formats={"PS": "+.2f", "vanilla": "+.2f"},
        texts=texts,
        bold=_best(frame, names),
        notes=[
            "PS and vanilla: mean relative change over six propensity-scored and six vanilla "
            "metrics (PW eq. 30, @1 counted twice). Bold: best of its base's variants. "
            f"Convention {DEFAULT}; in percent."
            + ("" if intervals is None else " In brackets: 95% interval over documents and seeds.")
        ],
        hidden=_bounds(intervals),
    )


def _grouped(keys: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Datasets, and the bases on each, together, in the order of their first appearance."""
    keys = list(keys)
    datasets = list(dict.fromkeys(key[0] for key in keys))
    bases = list(dict.fromkeys(key[1] for key in keys))
    return sorted(keys, key=lambda key: (datasets.index(key[0]), bases.index(key[1])))


def _bounds(intervals: pd.DataFrame | None) -> list[str]:
    kinds = SUMMARY_NAMES if intervals is not None else ()
    return [f"{kind} {end}" for kind in kinds for end in ("low", "high")]


def _interval(intervals: pd.DataFrame, key: Sequence[str], metric: str) -> tuple[float, float]:
    """Bounds of a change over test documents and seeds; NaN where there is none."""
    rows = intervals[intervals["metric"] == metric]
    for column, value in zip(KEY[:3], key, strict=True):
        rows = rows[rows[column] == value]
    rows = rows[rows["change"].notna()]
    if rows.empty:
        return float("nan"), float("nan")
    return over_seeds(rows["change"], rows["change_low"].mean(), rows["change_high"].mean())


def _columns(ks: Sequence[int]) -> list[str]:
    # nDCG@1 is P@1 and PSnDCG@1 is PSP@1: printed once, as in the paper.
    later = [k for k in ks if k != 1]
    return (
        [f"PSP@{k}" for k in ks]
        + [f"PSnDCG@{k}" for k in later]
        + [f"P@{k}" for k in ks]
        + [f"nDCG@{k}" for k in later]
    )


def _change(
    means: pd.DataFrame, plain: tuple[str, str, str], found: Mapping[str, float], kind: Kind
) -> float:
    if plain not in means.index:
        return math.nan
    try:
        return mean_relative_change(dict(means.loc[plain]), found, kind)
    except (KeyError, ZeroDivisionError):
        # Other cut-offs than 1, 3, 5, or a base at zero: eq. 30 has no value.
        return math.nan


def _failed(cells: pd.DataFrame) -> dict[tuple[str, ...], str]:
    bad = cells[cells["status"] != "ok"]
    return {
        tuple(row[:3]): f"{row[3]}: {row[4]}"
        for row in bad[[*KEY[:3], "status", "reason"]].itertuples(index=False, name=None)
    }


def _best(frame: pd.DataFrame, names: Sequence[str]) -> frozenset[tuple[int, str]]:
    marked = set()
    for _, group in frame.groupby(KEY[:2], sort=False):
        if len(group) > 1:
            for name in names:
                printed = group[name].round(2)
                marked |= {(int(i), name) for i in printed.index[printed == printed.max()]}
    return frozenset(marked)
