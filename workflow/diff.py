"""What differs between two runs: ``python -m workflow.diff A/cells.csv B/cells.csv``.

Values are compared cell by cell. The interval of a value is read from ``low`` and ``high`` in the
file itself, or from ``intervals.csv`` beside it; those of either run will do. ``tolerances.csv``
beside the first file says by how many points the values of a cell may differ between machines, and
why: such a move is told apart from others. Exit code 0: nothing moved beyond its interval and no
cell is gone; 1: something did, or with ``--exact`` anything moved beyond its tolerance; 2: a file
cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.records.cell import KEY
from benchmarks.records.cells import metric_names, read_cells
from benchmarks.records.intervals import read_intervals

EQUAL = 1e-6
"""Percentage points below which two values are one: what the digits of a reference lose."""

AT = [*KEY, "convention", "bin", "name"]
BEYOND, WITHIN, UNKNOWN, SAME = "beyond its interval", "within its interval", "no interval", "equal"
TOLERATED = "within its tolerance between machines"
NEW, GONE, STATUS = "new", "gone", "status"
GRAVE = (BEYOND, GONE, STATUS)
MOVED = (*GRAVE, WITHIN, UNKNOWN)
"""What is wrong between two runs of the same code, whatever the machine."""
ORDER = (STATUS, GONE, NEW, BEYOND, UNKNOWN, WITHIN, TOLERATED, SAME)
TOLERANCES = "tolerances.csv"
NAMED = [*KEY[:3], "metric"]
ANY = "*"


def read_values(path: str | Path) -> pd.DataFrame:
    """The values of a ``cells.csv`` with ``low`` and ``high`` where these are known."""
    path = Path(path)
    cells = read_cells(path)
    missing = [column for column in (*KEY, "status", "metric", "k", "value") if column not in cells]
    if missing:
        raise ValueError(f"{path} is no cells.csv: it has no column {', '.join(missing)}")
    cells["name"] = metric_names(cells)
    for column, common in (("convention", DEFAULT), ("bin", "all")):
        cells[column] = cells[column].fillna(common) if column in cells else common
    beside = path.with_name("intervals.csv")
    if "low" not in cells and beside.exists():
        known = read_intervals(beside).rename(columns={"metric": "name"})
        known = known.assign(convention=DEFAULT, bin="all")
        cells = cells.merge(known[[*AT, "low", "high"]], on=AT, how="left")
    return cells.reindex(columns=[*AT, "status", "reason", "value", "low", "high"])


def read_tolerances(path: str | Path) -> pd.DataFrame:
    """Rows ``dataset, base, variant, metric, points, cause``; ``*`` stands for every name.

    ``metric`` is a family such as ``P``; where a row names one, it is of that family alone.
    """
    path = Path(path)
    columns = [*NAMED, "points", "cause"]
    if not path.exists():
        return pd.DataFrame(columns=columns)
    found = pd.read_csv(path, dtype={"points": float, "cause": str})
    if list(found.columns) != columns or found.isna().any(axis=None):
        raise ValueError(f"{path} should have {', '.join(columns)} in every row")
    return found


def compare_runs(
    before: pd.DataFrame, after: pd.DataFrame, tolerances: pd.DataFrame | None = None
) -> pd.DataFrame:
    """One row per value of either run: before, after, difference, low, high, and ``what``.

    The interval is that of ``before`` moved to the value it belongs to, or of ``after`` where the
    first has none. A cell that ran in one of the two only is one row, by its status.
    ``tolerances`` are those of :func:`read_tolerances`; the largest that names a cell counts.
    """
    joined = before.merge(after, on=AT, how="outer", suffixes=("_a", "_b"), indicator=True)
    status = pd.merge(*(_statuses(f) for f in (before, after)), on=KEY, how="outer")
    status = status.rename(columns={"status_x": "before", "status_y": "after"})
    moved = status[status["before"].fillna("") != status["after"].fillna("")]
    changed = moved[moved["before"].notna() & moved["after"].notna()].assign(what=STATUS)
    one_sided = [
        moved[moved["before"].isna()].assign(what=NEW),
        moved[moved["after"].isna()].assign(what=GONE),
    ]
    cells = pd.concat([changed, *one_sided]).reindex(columns=[*KEY, "before", "after", "what"])
    both = joined[(joined["_merge"] == "both") & (joined["name"] != "")].copy()
    both["difference"] = both["value_b"] - both["value_a"]
    both["low"] = (both["low_a"] - both["value_a"]).fillna(both["low_b"] - both["value_b"])
    both["high"] = (both["high_a"] - both["value_a"]).fillna(both["high_b"] - both["value_b"])
    gap = both["difference"]
    both["what"] = UNKNOWN
    known = both["low"].notna()
    inside = known & (gap >= both["low"] - EQUAL) & (gap <= both["high"] + EQUAL)
    both.loc[known, "what"] = BEYOND
    both.loc[inside, "what"] = WITHIN
    if tolerances is not None:
        both.loc[gap.abs() <= _points(both, tolerances) + EQUAL, "what"] = TOLERATED
    both.loc[gap.abs() <= EQUAL, "what"] = SAME
    both = both[gap.notna()].rename(columns={"value_a": "before", "value_b": "after"})
    columns = [*AT, "before", "after", "difference", "low", "high", "what"]
    # A value of one run only, in a cell that both have: a metric or a convention came or went.
    alone = joined[(joined["_merge"] != "both") & (joined["name"] != "")]
    have_both = status[status["before"].notna() & status["after"].notna()][KEY]
    alone = alone.merge(have_both, on=KEY).rename(columns={"value_a": "before", "value_b": "after"})
    alone["what"] = alone["_merge"].map({"left_only": GONE, "right_only": NEW}).astype(object)
    # A reference that keeps no value of a convention or bin says nothing of it.
    kept = set(zip(before["convention"], before["bin"], strict=True))
    pairs = zip(alone["convention"], alone["bin"], strict=True)
    is_kept = pd.Series([pair in kept for pair in pairs], index=alone.index, dtype=bool)
    alone = alone[(alone["what"] == GONE) | is_kept]
    parts = [part.reindex(columns=columns) for part in (cells, both, alone) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def describe(found: pd.DataFrame, most: int = 20) -> str:
    """The differences in words, the gravest first, ``most`` rows of each kind."""
    lines = [", ".join(f"{n} {what}" for what, n in _counts(found).items()) or "nothing to compare"]
    for what in ORDER:
        rows = found[found["what"] == what]
        if what == SAME or rows.empty:
            continue
        if "difference" in rows:
            rows = rows.sort_values("difference", key=abs, ascending=False, kind="stable")
        lines.append(f"{what}:")
        lines += [f"  {_line(row)}" for row in rows.head(most).to_dict("records")]
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m workflow.diff", description=__doc__)
    parser.add_argument("before", help="cells.csv of a run, or a committed reference")
    parser.add_argument("after", nargs="?", help="cells.csv of the run to compare with it")
    parser.add_argument(
        "--write",
        metavar="FILE",
        help="write the values of the first run, over all labels under the default convention and "
        "with their intervals, as a small reference to compare later runs with",
    )
    parser.add_argument("--most", type=int, default=20, help="rows to print of each kind")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        help="points by which a value without an interval may move (default: any move is told)",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="for two runs of the same code: a move within an interval is a fault too, unless "
        f"{TOLERANCES} beside the first file allows it between machines",
    )
    given = parser.parse_args(argv)
    try:
        before = read_values(given.before)
        if given.write:
            write_csv(given.write, reference(before))
        if given.after is None:
            return 0
        tolerances = read_tolerances(Path(given.before).with_name(TOLERANCES))
        found = compare_runs(before, read_values(given.after), tolerances)
    except (OSError, ValueError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    small = (found["what"] == UNKNOWN) & (found["difference"].abs() <= given.tolerance)
    found.loc[small, "what"] = WITHIN
    print(describe(found, given.most))
    return int(found["what"].isin(MOVED if given.exact else GRAVE).any())


def reference(values: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`read_values` that a reference keeps, as a ``cells.csv`` has them."""
    whole = (values["bin"] == "all") & (values["convention"] == DEFAULT)
    kept = values[whole | (values["name"] == "")].copy()
    names = kept["name"].str.partition("@")
    kept["metric"], kept["k"] = names[0], names[2]
    numbers = ["value", "low", "high"]
    kept[numbers] = kept[numbers].astype(float).round(6)
    return kept[[*KEY, "status", "reason", "metric", "k", "convention", "bin", *numbers]]


def _points(frame: pd.DataFrame, tolerances: pd.DataFrame) -> pd.Series:
    """The tolerance of each row, 0 where none is recorded."""
    points = pd.Series(0.0, index=frame.index)
    names = frame.assign(metric=frame["name"].str.partition("@")[0])
    for row in tolerances.to_dict("records"):
        named = pd.Series(True, index=frame.index)
        for key in NAMED:
            if row[key] != ANY:
                named &= names[key] == row[key]
        points[named] = points[named].clip(lower=row["points"])
    return points


def _statuses(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[*KEY, "status"]].drop_duplicates(KEY)


def _counts(found: pd.DataFrame) -> dict[str, int]:
    counts = found["what"].value_counts()
    return {what: int(counts[what]) for what in ORDER if what in counts}


def _line(row: dict[str, object]) -> str:
    where = " / ".join(str(row[key]) for key in KEY[:3]) + f" / seed {row['seed']}"
    if isinstance(row["name"], str):
        where += f", {row['name']}"
        extra = [str(row["convention"])] if row["convention"] != DEFAULT else []
        extra += [str(row["bin"])] if row["bin"] != "all" else []
        where += f" ({', '.join(extra)})" if extra else ""
    before, after = (_text(row[side]) for side in ("before", "after"))
    line = f"{where}: {before} -> {after}"
    if row["low"] == row["low"]:
        line += f", allowed {float(str(row['low'])):+.2f} to {float(str(row['high'])):+.2f}"
    return line


def _text(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.2f}"
    return str(value)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
