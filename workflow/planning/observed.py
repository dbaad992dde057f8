"""Earlier runs as a law sees them: amounts of work beside the seconds and megabytes they took."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.records.cell import Cell
from benchmarks.records.cells import RUN_FACTS, cpu_of_work, read_runs
from methods.cost import Cost, Term, law
from methods.interface import Method
from methods.registry import (
    VARIANTS,
    MisfitError,
    Recipe,
    assemble,
    base_recipe,
    variant_recipes,
)

Facts = Callable[[str], Mapping[str, Any] | None]
"""What is known of a dataset by its name; None where that is nothing."""

Definitions = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""``bases`` and ``variants`` of a configuration's ``define``."""

NO_DEFINITIONS: Definitions = {"bases": {}, "variants": {}}

DOCUMENT_SECONDS, UNKNOWN_MB = 1e-3, 500.0
"""Of a method without a law of its own: linear in documents."""


@dataclass(frozen=True)
class Work:
    """What a cell has to do: the base's law, and who changed it."""

    law: str
    """The class of the base: its constants are shared by all who have it."""
    variants: tuple[str, ...]
    """The classes of its variants, innermost first."""
    device: str
    cost: Cost
    family: str = ""
    """The package of the base, ``trees``: what it imports, and what its terms are made of."""


@dataclass(frozen=True)
class Observed:
    """A cell that ran to its end."""

    cell: Cell
    work: Work
    recipe: str
    seconds: float
    """CPU seconds without compiling, which is done once per version of the code."""
    megabytes: float
    here: bool
    """Whether this machine's own results have it."""


def work_of(recipes: Iterable[Recipe], meta: Mapping[str, Any], device: str = "cpu") -> Work | None:
    """The work of a base and its variants on such data; None for a pair that does not fit."""
    base, *variants = recipes
    try:
        method: Method = assemble(base, variants)
    except MisfitError:
        return None
    names = tuple(_class(recipe) for recipe in variants)
    cost = law(method.cost, meta)
    if cost is None:
        documents = meta["n_train"] + meta.get("n_test", 0)
        cost = Cost({"document": Term(documents, DOCUMENT_SECONDS)}, UNKNOWN_MB)
    return Work(_class(base), names, device.partition(":")[0], cost, _family(base))


def work_again(
    recipes: Callable[[], Iterable[Recipe]], meta: Mapping[str, Any], device: str
) -> tuple[Work | None, str]:
    """The work of an earlier run or, where it cannot be built any more, None and why.

    Its class may be gone or take other parameters by now, and importing it runs a user's code.
    """
    try:
        work = work_of(recipes(), meta, device)
    except Exception as error:
        return None, f"cannot be built any more: {type(error).__name__}: {error}"
    return work, "" if work is not None else "a pair that does not fit any more"


def recipe_text(recipes: Iterable[Recipe]) -> str:
    """Classes and parameters as one string, equal for equal recipes."""
    parts = [{"class": recipe.target, "params": dict(recipe.params)} for recipe in recipes]
    return json.dumps(parts, sort_keys=True)


def from_parts(parts: Iterable[Mapping[str, Any]]) -> list[Recipe]:
    """Recipes as ``run.json`` has them."""
    return [Recipe(part["class"], part["params"]) for part in parts]


def observed(
    runs: pd.DataFrame, facts: Facts, definitions: Definitions = NO_DEFINITIONS, here: bool = False
) -> tuple[list[Observed], list[str]]:
    """The runs that a law can learn from, and in words what was left out.

    A run's recipe and the size of its data are in its own row or, where an older file has no such
    columns, found by their names: ``definitions`` and ``facts``.
    """
    found, left_out = [], []
    for row in runs.to_dict("records"):
        cell = Cell(row["dataset"], row["base"], row["variant"], int(row["seed"]))
        if row["status"] != "ok" or _is_mean(row):
            continue
        own = {key: row[key] for key in RUN_FACTS if key in row and not pd.isna(row[key])}
        meta = own if "n_train" in own else facts(cell.dataset)
        if meta is None:
            left_out.append(f"{cell}: nothing is known of the size of {cell.dataset}")
            continue
        device = row.get("device")
        named = partial(_recipes, row, definitions)
        work, why = work_again(named, meta, device if isinstance(device, str) else "cpu")
        seconds = cpu_of_work(row)
        if work is None or not seconds > 0:
            left_out.append(f"{cell}: {why or 'no CPU seconds'}")
            continue
        peak = float(row["peak_mb"])
        found.append(Observed(cell, work, recipe_text(named()), seconds, peak, here))
    return found, left_out


def read_observed(
    path: str | Path, facts: Facts, definitions: Definitions = NO_DEFINITIONS, here: bool = False
) -> tuple[list[Observed], list[str]]:
    """:func:`observed` of a ``runs.csv``; nothing where there is no such file."""
    return observed(read_runs(path), facts, definitions, here) if Path(path).exists() else ([], [])


def _recipes(row: Mapping[str, Any], definitions: Definitions) -> list[Recipe]:
    if isinstance(row.get("recipe"), str):
        return from_parts(json.loads(row["recipe"]))
    variants = variant_recipes(row["variant"], definitions["variants"])
    return [base_recipe(row["base"], definitions["bases"]).under(variants), *variants]


def _is_mean(row: Mapping[str, Any]) -> bool:
    """Whether it is an ensemble, whose record adds up what its members, rows of their own, took."""
    return str(row["variant"]).partition("+")[0] == "ensemble" or VARIANTS["ensemble"] in str(
        row.get("recipe")
    )


def _class(recipe: Recipe) -> str:
    return recipe.target.partition(":")[2]


def _family(recipe: Recipe) -> str:
    """``methods.trees.parabel:Bonsai`` is of ``trees``; a user's module is a family of its own."""
    module = recipe.target.partition(":")[0]
    package, *rest = module.split(".")
    return rest[0] if package == "methods" and rest else module
