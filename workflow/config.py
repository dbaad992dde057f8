"""From a configuration to the cells of a run, checked before any job starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.schema import InvalidDocumentError, validate
from benchmarks.records.cell import Cell
from methods.interface import Variant
from methods.registry import (
    PLAIN,
    MisfitError,
    Recipe,
    UnknownNameError,
    assemble,
    base_recipe,
    canonical,
    variant_recipes,
)
from workflow.ensembles import with_members

SCHEMA = Path(__file__).parent / "schemas" / "config.schema.yaml"
DEFAULT_BUDGET = {"wall_s": 3600.0, "memory_mb": 8000.0, "threads": 1, "device": "cpu"}


@dataclass(frozen=True)
class Job:
    """How a cell is to be run."""

    cell: Cell
    base: Recipe
    variants: tuple[Recipe, ...]
    budget: Mapping[str, Any]
    shards: int = 1
    members: tuple[Cell, ...] = ()
    """The cells that an ensemble is the mean of."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The classes whose code decides the cell's result, as ``module:Class``."""
        return tuple(recipe.target for recipe in (self.base, *self.variants))

    def recipe(self) -> dict[str, Any]:
        """What is run, as plain data: goes into the rule's params and the record."""
        parts = (self.base, *self.variants)
        return {
            "parts": [{"class": part.target, "params": dict(part.params)} for part in parts],
            "seed": derive_seed(self.cell),
        }


def derive_seed(cell: Cell) -> int:
    """The seed a method is given, hashed from named axes.

    A new dataset or method moves nobody else's randomness. The variant is left out on purpose:
    a base and its variants draw the same numbers, so that their difference is the variant's.
    """
    axes = f"dataset={cell.dataset};base={cell.base};seed={cell.seed}"
    return int.from_bytes(hashlib.sha256(axes.encode()).digest()[:4], "little") & 0x7FFFFFFF


def check(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The configuration with its defaults, or an error that names each key that is wrong."""
    checked: dict[str, Any] = validate(dict(config), SCHEMA, source)
    checked["budget"] = {**DEFAULT_BUDGET, **checked["budget"]}
    most = max(checked["ks"])
    if checked["top_k"] < most:
        raise InvalidDocumentError(
            f"{source} is not valid:\n  top_k: {checked['top_k']} labels kept per document are too "
            f"few for the metrics at {most}; raise it to {most} or lower ks"
        )
    return checked


def plan(config: Mapping[str, Any], source: str, datasets: Iterable[str]) -> list[Job]:
    """The jobs of a checked configuration, in order, each cell once.

    ``datasets`` are the names that can be asked for. All faults are reported together.
    """
    known = list(datasets)
    jobs: dict[Cell, Job] = {}
    faults = _redefined(config["define"])
    for number, block in enumerate(config["cells"]):
        where = f"cells[{number}]"
        faults += [
            f"{where}.datasets: unknown dataset {name!r}; known are {', '.join(sorted(known))}"
            for name in block["datasets"]
            if name not in known
        ]
        bases = _look_up(
            base_recipe, block["bases"], config["define"]["bases"], f"{where}.bases", faults
        )
        variants = _look_up(
            variant_recipes,
            block["variants"],
            config["define"]["variants"],
            f"{where}.variants",
            faults,
        )
        budget = {**config["budget"], **block.get("budget", {})}
        own = config["define"]["variants"]
        variants = {canonical(name, own): tuple(found) for name, found in variants.items()}
        for dataset in block["datasets"]:
            for base, recipe in bases.items():
                for variant, changes in variants.items():
                    for seed in block.get("seeds", config["seeds"]):
                        cell = Cell(dataset, base, variant, seed)
                        job = Job(cell, recipe.under(changes), changes, budget, block["shards"])
                        jobs.setdefault(cell, job)
    if faults:
        raise InvalidDocumentError("\n".join([f"{source} is not valid:", *_indent(faults)]))
    return list(with_members(jobs).values())


def check_pairs(jobs: Iterable[Job], source: str, misfits: str) -> None:
    """Build every method of the run once: a wrong parameter or pair is found before any job."""
    seen: set[tuple[str, str]] = set()
    faults: list[str] = []
    for job in jobs:
        pair = (job.cell.base, job.cell.variant)
        if pair in seen:
            continue
        seen.add(pair)
        try:
            method = assemble(job.base, job.variants)
            if job.shards > 1 and not method.shardable:
                faults.append(
                    f"cells: {job.cell.base} with variant {job.cell.variant} cannot be fitted in "
                    f"{job.shards} shards; take 'shards' out of its block"
                )
        except MisfitError as misfit:
            if misfits == "error":
                faults.append(
                    f"cells: variant {job.cell.variant!r} with base {job.cell.base!r}: {misfit}; "
                    "take the pair out of its block, or set 'misfits: cell' to have it recorded"
                )
        except UnknownNameError as unknown:
            faults.append(f"cells: {' / '.join(p for p in pair if p != PLAIN)}: {unknown}")
    if faults:
        raise InvalidDocumentError("\n".join([f"{source} is not valid:", *_indent(faults)]))


def with_own_definitions(config: Mapping[str, Any], documents: Iterable[Any]) -> dict[str, Any]:
    """The configuration, in which each definition of the given documents stands as it is there.

    Snakemake merges a run's file into the default configuration key by key, so that a base of the
    same name in both would silently have the parameters of both. What has another shape than a
    configuration is left for :func:`check` to answer.
    """
    define = config.get("define")
    if not isinstance(define, Mapping):
        return dict(config)
    own: dict[str, Any] = dict(define)
    for document in documents:
        given = document.get("define") if isinstance(document, Mapping) else None
        for kind, entries in given.items() if isinstance(given, Mapping) else ():
            if isinstance(entries, Mapping) and isinstance(own.get(kind), Mapping):
                own[kind] = {**own[kind], **entries}
    return {**config, "define": own}


def swept(jobs: Iterable[Job], settings: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Settings of the run's variants that have all of them, e.g. how much Taug augments.

    Only variants of one part, and of the class that most of these share, are of one sweep.
    """
    names = tuple(settings)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for job in jobs:
        if len(job.variants) == 1 and job.cell.variant not in found:
            variant = job.variants[0].build(Variant)  # type: ignore[type-abstract]
            if all(hasattr(variant, name) for name in names):
                values = {name: getattr(variant, name) for name in names}
                found[job.cell.variant] = (job.variants[0].target, values)
    targets = [target for target, _ in found.values()]
    if not targets:
        return {}
    common = max(targets, key=targets.count)
    return {variant: values for variant, (target, values) in found.items() if target == common}


def _redefined(define: Mapping[str, Any]) -> list[str]:
    """A fault for each definition whose name has a meaning without it: its cells would be
    taken for those of the built-in method or of the composition."""
    faults = []
    kinds: dict[str, Callable[..., Any]] = {"bases": base_recipe, "variants": variant_recipes}
    for kind, find in kinds.items():
        for name in define[kind]:
            others = {other: entry for other, entry in define[kind].items() if other != name}
            with suppress(UnknownNameError):
                find(name, others)
                faults.append(f"define.{kind}.{name}: this name has a meaning; choose another")
    return faults


def _look_up(
    find: Any, names: Iterable[str], definitions: Any, where: str, faults: list[str]
) -> dict[str, Any]:
    found = {}
    for name in names:
        try:
            found[name] = find(name, definitions)
        except UnknownNameError as unknown:
            faults.append(f"{where}: {unknown}")
    return found


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
