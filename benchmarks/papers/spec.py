"""The papers as data: every printed figure, mapped to a cell of ours, and the claims.

``papers/<id>/paper.yaml`` says what each table's rows and columns are; ``published/*.csv`` holds
the figures as printed strings. :func:`load_paper` joins the two into one frame.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd

from benchmarks.common.schema import load_yaml, validate
from benchmarks.evaluation.conventions import get_convention
from benchmarks.papers.printed import printed

FOLDER = Path(__file__).parent
SCHEMAS = FOLDER
PAPERS = ("pw", "ranknet_taug", "tailmix", "glas", "httn")

PRINTED_METRICS = {
    **{f"PSN@{k}": f"PSnDCG@{k}" for k in (1, 3, 5)},
    "F1(micro)": "batchF1",  # HTTN's F1 is a mean of batches (its released evaluation)
}
"""Printed names of metrics that are not ours."""

PLACE = ("table", "dataset", "base", "variant", "metric")
"""What names a figure within a paper, as printed."""


@dataclass(frozen=True)
class Paper:
    """A paper's figures and claims.

    ``figures`` has one row a printed figure. As printed: ``table``, ``dataset``, ``base``,
    ``variant``, ``metric``, ``value`` (a string), ``low`` and ``high`` (its rounding), ``note``.
    Mapped: ``role`` (value, delta, mean, difference, mean_change, statistic, outside),
    ``our_dataset``, ``our_base``, ``our_variant``, ``our_metric``, ``convention``, ``model``
    (single, ensemble), ``source`` (own, copied, unstated), ``over`` (the printed variant a change
    refers to), ``terms`` (the columns a derived one comes from), ``reason`` (of ``outside``).
    """

    id: str
    title: str
    band: Mapping[str, float]
    unavailable: Mapping[str, str]
    figures: pd.DataFrame
    claims: Sequence[Mapping[str, Any]]
    spec: Mapping[str, Any]

    @cached_property
    def _by_place(self) -> dict[tuple[str, ...], int]:
        places = self.figures[list(PLACE)].itertuples(index=False, name=None)
        return {place: position for position, place in enumerate(places)}

    def select(self, place: Sequence[str]) -> pd.DataFrame:
        """Figures at [table, dataset, base, variant, metric]; ``*`` is any, ``a|b`` either."""
        keep = pd.Series(True, index=self.figures.index)
        for column, wanted in zip(PLACE, place, strict=True):
            if wanted != "*":
                keep &= self.figures[column].isin(wanted.split("|"))
        found = self.figures[keep]
        if found.empty:
            raise KeyError(f"{self.id}: no figure at {list(place)}")
        return found

    def one(self, place: Sequence[str]) -> pd.Series:
        """The one figure at a place."""
        if tuple(place) in self._by_place:
            return self.figures.iloc[self._by_place[tuple(place)]]
        found = self.select(place)
        if len(found) > 1:
            raise KeyError(f"{self.id}: {len(found)} figures at {list(place)}, not one")
        return found.iloc[0]


@cache
def load_paper(name: str) -> Paper:
    """Read and check one paper."""
    path = FOLDER / name / "paper.yaml"
    if not path.exists():
        raise KeyError(f"no paper {name!r}; there are {', '.join(PAPERS)}")
    spec = validate(load_yaml(path), SCHEMAS / "paper.schema.yaml", str(path))
    rows: list[dict[str, Any]] = []
    for table in spec["tables"]:
        rows += _table_rows(table, FOLDER / name / "published" / table["file"])
    figures = pd.DataFrame(rows)
    figures.insert(0, "paper", spec["id"])
    repeated = figures[figures.duplicated(list(PLACE))]
    if len(repeated):
        raise ValueError(f"{path}: printed twice: {repeated[list(PLACE)].iloc[0].tolist()}")
    return Paper(
        id=spec["id"],
        title=spec["title"],
        band=spec["band"],
        unavailable=spec["unavailable"],
        figures=figures,
        claims=spec["claims"],
        spec=spec,
    )


def load_papers(names: Sequence[str] = PAPERS) -> list[Paper]:
    """All papers, in a fixed order."""
    return [load_paper(name) for name in names]


def sources(name: str) -> list[str]:
    """The files a paper is read from."""
    folder = FOLDER / name
    return [str(folder / "paper.yaml"), *map(str, sorted((folder / "published").glob("*.csv")))]


def conventions_used() -> list[str]:
    """Conventions under which some published table can be compared."""
    return sorted({c for paper in load_papers() for c in paper.figures["convention"]})


def read_published(path: Path) -> list[dict[str, str]]:
    """The rows of a published table, checked one by one."""
    rules = load_yaml(SCHEMAS / "published.schema.yaml")
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
            "our_variant": table["variants"].get(row["variant"], row["variant"]) or "plain",
            "our_metric": table["metrics"].get(
                row["metric"], PRINTED_METRICS.get(row["metric"], row["metric"])
            ),
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
    """What kind of figure it is, and what it is computed from."""
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
