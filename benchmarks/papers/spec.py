"""The papers as data: every printed value, mapped to a cell of ours, and the claims.

``papers/<id>/paper.yaml`` says what each table's rows and columns are; ``published/*.csv`` holds
the values as printed strings. :func:`load_paper` joins the two into one frame.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd

from benchmarks.common.schema import InvalidDocumentError, load_yaml, validate
from benchmarks.evaluation.conventions import get_convention
from benchmarks.papers.printed import printed
from benchmarks.papers.verdicts import NOT_APPLICABLE, NOT_RUN
from benchmarks.records.cell import PLAIN, Setup

FOLDER = Path(__file__).parent
SPEC = "paper.yaml"

Folders = Mapping[str, str | Path]
"""Papers of the user by id: the folder of each, which holds ``paper.yaml`` and ``published/``."""

_MISSING = {"unavailable": NOT_RUN, "not_built": NOT_RUN, "rivals": NOT_APPLICABLE}
"""Keys of a paper that say why a name can be in no run, and what a verdict calls that."""
POSITION = ("table", "dataset", "base", "variant", "metric")
"""What names a value within a paper, as printed."""


@dataclass(frozen=True)
class Paper:
    """A paper's values and claims.

    ``values`` has one row per printed value. As printed: ``table``, ``dataset``, ``base``,
    ``variant``, ``metric``, ``value`` (a string), ``low`` and ``high`` (its rounding), ``note``.
    Mapped: ``role`` (value, delta, mean, difference, mean_change, statistic, outside),
    ``our_dataset``, ``our_base``, ``our_variant``, ``our_metric``, ``convention``, ``model``
    (single, ensemble), ``source`` (own, copied, unstated), ``over`` (the printed variant a change
    refers to), ``terms`` (the columns a derived one comes from), ``reason`` (of ``outside``).
    ``missing`` has by name the outcome and the reason of what can be in no run: a dataset, a base
    or a variant.
    """

    id: str
    title: str
    short_title: str
    band: Mapping[str, float]
    missing: Mapping[str, tuple[str, str]]
    values: pd.DataFrame
    claims: Sequence[Mapping[str, Any]]
    spec: Mapping[str, Any]
    mapped: pd.DataFrame | None = None
    """``values`` before :meth:`as_run`."""

    def as_run(self, ran: Collection[Setup]) -> Paper:
        """This paper, its values mapped to the recipes of it that a run has cells of.

        A recipe (``recipes`` of paper.yaml) is a base or variant under a name of its own, with the
        settings that the paper states. Where a run has it, it is what stands for the paper's row.
        """
        columns = [f"our_{field}" for field in Setup._fields]
        values = self.values.copy()
        for key, rows in values.groupby([*columns, "table"], sort=False):
            own = dict(zip([*Setup._fields, "table"], key, strict=True))
            changed = dict(own)
            for recipe in self.spec["recipes"]:
                if all(own[field] in names for field, names in recipe["where"].items()):
                    changed |= recipe["set"]
            setup = Setup(*(changed[field] for field in Setup._fields))
            if setup in ran:
                values.loc[rows.index, columns] = list(setup)
        return replace(self, values=values, mapped=self.values)

    @cached_property
    def _row_at(self) -> dict[tuple[str, ...], int]:
        positions = self.values[list(POSITION)].itertuples(index=False, name=None)
        return {position: row for row, position in enumerate(positions)}

    def select(self, position: Sequence[str]) -> pd.DataFrame:
        """Values at [table, dataset, base, variant, metric]; ``*`` is any, ``a|b`` either."""
        keep = pd.Series(True, index=self.values.index)
        for column, wanted in zip(POSITION, position, strict=True):
            if wanted != "*":
                keep &= self.values[column].isin(wanted.split("|"))
        found = self.values[keep]
        if found.empty:
            raise KeyError(f"{self.id}: no value at {list(position)}")
        return found

    def one(self, position: Sequence[str]) -> pd.Series:
        """The one value at a position, as a row of ``values``."""
        if tuple(position) in self._row_at:
            return self.values.iloc[self._row_at[tuple(position)]]
        found = self.select(position)
        if len(found) > 1:
            raise KeyError(f"{self.id}: {len(found)} values at {list(position)}, not one")
        return found.iloc[0]


def paper_folders(extra: Folders | None = None) -> dict[str, Path]:
    """The folder of every paper by id: each one beside this module, and the user's ``extra``.

    Sorted by the ``order`` in paper.yaml, then by id; papers without an order come last.
    """
    folders = {path.parent.name: path.parent for path in FOLDER.glob(f"*/{SPEC}")}
    for name, folder in (extra or {}).items():
        if name in folders:
            raise InvalidDocumentError(f"paper {name!r} ({folder}) has the id of {folders[name]}")
        folders[name] = Path(folder).resolve()
    specs = {name: _read_spec(folder) for name, folder in folders.items()}
    for name, spec in specs.items():
        if spec["id"] != name:
            raise InvalidDocumentError(
                f"{folders[name] / SPEC}: the id is {spec['id']!r}, but the paper is named {name!r}"
            )
    ranked = sorted(folders, key=lambda name: (specs[name].get("order", math.inf), name))
    return {name: folders[name] for name in ranked}


def load_paper(name: str, extra: Folders | None = None) -> Paper:
    """One paper, checked; the same object every time."""
    folders = paper_folders(extra)
    if name not in folders:
        raise KeyError(f"no paper {name!r}; there are {', '.join(folders)}")
    return _load(folders[name])


def load_papers(extra: Folders | None = None) -> list[Paper]:
    """All papers, in the order of :func:`paper_folders`."""
    return [_load(folder) for folder in paper_folders(extra).values()]


def sources(name: str, extra: Folders | None = None) -> list[str]:
    """Paths of the files a paper is read from."""
    folder = paper_folders(extra)[name]
    return [str(folder / SPEC), *map(str, sorted((folder / "published").glob("*.csv")))]


@cache
def _read_spec(folder: Path) -> Mapping[str, Any]:
    path = folder / SPEC
    if not path.exists():
        raise InvalidDocumentError(f"{folder} holds no {SPEC}: write one, or mend the path")
    spec: Mapping[str, Any] = validate(load_yaml(path), FOLDER / "paper.schema.yaml", str(path))
    return spec


@cache
def _load(folder: Path) -> Paper:
    spec = _read_spec(folder)
    rows: list[dict[str, Any]] = []
    for table in spec["tables"]:
        rows += _table_rows(table, folder / "published" / table["file"])
    values = pd.DataFrame(rows)
    values.insert(0, "paper", spec["id"])
    repeated = values[values.duplicated(list(POSITION))]
    if len(repeated):
        raise ValueError(f"{folder}: printed twice: {repeated[list(POSITION)].iloc[0].tolist()}")
    return Paper(
        id=spec["id"],
        title=spec["title"],
        short_title=spec.get("short_title", spec["title"]),
        band=spec["band"],
        missing={
            name: (outcome, reason)
            for key, outcome in _MISSING.items()
            for name, reason in spec[key].items()
        },
        values=values,
        claims=spec["claims"],
        spec=spec,
    )


def read_published(path: Path) -> list[dict[str, str]]:
    """The rows of a published table, checked one by one."""
    rules = load_yaml(FOLDER / "published.schema.yaml")
    checker = jsonschema.Draft202012Validator(rules)
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for line, row in enumerate(rows, start=2):
        for fault in checker.iter_errors(row):
            key = ".".join(map(str, fault.path)) or "the row"
            raise ValueError(f"{path}, line {line}: {key}: {fault.message}")
    return rows


def _table_rows(table: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    rows = []
    for line, row in enumerate(read_published(path), start=2):
        if row["table"] != table["table"]:
            raise ValueError(f"{path}, line {line}: table {row['table']}, not {table['table']}")
        interval = printed(row["value"])
        mapped = {
            "our_dataset": _named(row["dataset"], table["datasets"], path, line, "dataset"),
            "our_base": table["bases"].get(row["base"], row["base"]),
            "our_variant": table["variants"].get(row["variant"], row["variant"]) or PLAIN,
            "our_metric": table["metrics"].get(row["metric"], row["metric"]),
            "convention": table["convention"],
            "model": table["model"],
            "source": table["source"],
            **_role(row, table),
        }
        for exception in table["exceptions"]:
            if all(row[key] in names for key, names in exception["where"].items()):
                for key, value in exception["set"].items():
                    ours = key in ("dataset", "base", "variant")
                    mapped[f"our_{key}" if ours else key] = value
        get_convention(mapped["convention"])
        rows.append({**row, "low": interval.low, "high": interval.high, **mapped})
    return rows


def _role(row: Mapping[str, str], table: Mapping[str, Any]) -> dict[str, Any]:
    """What kind of value it is, and what it is computed from."""
    metric, variant = row["metric"], row["variant"]
    out: dict[str, Any] = {"role": "value", "over": "", "terms": (), "reason": ""}
    if variant in table["deltas"]:
        delta = table["deltas"][variant]
        out |= {"role": "delta", "over": delta["over"], "our_variant": delta["variant"]}
    if table["role"] == "statistics":
        out |= {"role": "statistic"}
    if metric in table["outside"]:
        out |= {"role": "outside", "reason": table["outside"][metric]}
    if metric in table["derived"]:
        ((kind, details),) = table["derived"][metric].items()
        if kind == "mean_change":
            out |= {"role": kind, "over": details["over"], "terms": (details["kind"],)}
        else:
            out |= {"role": kind.removesuffix("_of"), "terms": tuple(details)}
    return out


def _named(name: str, names: Mapping[str, str], path: Path, line: int, what: str) -> str:
    if name not in names:
        raise ValueError(f"{path}, line {line}: {what} {name!r} is not named in paper.yaml")
    return names[name]
