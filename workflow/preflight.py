"""What is looked at before anything runs, also by ``-n``: missing files, misplaced words."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data.cards import Card, local_files
from benchmarks.data.prepare import DATA_FOLDER, configured_mirror
from methods.registry import MisfitError, assemble
from workflow.resources import needed

if TYPE_CHECKING:
    from workflow.config import Job

EMPTY = 0
SWALLOWED = "target_after_configfile"
"""The key of the files beside the Snakefile that are named as its targets."""


def check_targets(config: Mapping[str, Any], configfiles: Sequence[str]) -> None:
    """An error that says what to type, if ``--configfile`` took a target for a configuration."""
    if SWALLOWED in config:
        files = [name for name in configfiles if name.endswith((".yaml", ".yml", ".json"))]
        target = config[SWALLOWED]
        options = f" --configfile {' '.join(files)}" if files else ""
        raise InvalidDocumentError(
            f"{target} was read as a configuration, since --configfile takes every word that "
            f"follows it. Put the target first: snakemake --cores 1 {target}{options}"
        )


def missing_files(datasets: Iterable[str], cards: Mapping[str, Card]) -> list[str]:
    """A line for each local file of the run's datasets that is not there or holds nothing.

    A run goes on without such a dataset: its cells are skipped and say so.
    """
    lines = []
    for name in datasets:
        card = cards.get(name)
        for source in card.sources if card is not None else ():
            for path in local_files(source) if not source.files else ():
                if not path.is_file():
                    lines.append(f"{name}: there is no file {path}; its cells will be skipped")
                elif path.stat().st_size == EMPTY:
                    lines.append(f"{name}: {path} is empty; its cells will be skipped")
    return lines


def missing_here(
    jobs: Iterable[Job], cards: Mapping[str, Card], mirror: str | None = None
) -> list[str]:
    """What the run needs and this machine has not: a line each, with how many cells wait for it.

    Nothing is fetched to find out. A file that is neither prepared nor in a mirror's folder may
    still come from where its card says.
    """
    waiting: Counter[str] = Counter()
    packages: Counter[str] = Counter()
    for job in jobs:
        for name in (*_read(job.cell.dataset, cards), *needed(job)):
            waiting[name] += 1
        try:
            package = assemble(job.base, job.variants).package
        except MisfitError:
            continue
        if package and importlib.util.find_spec(package) is None:
            packages[package] += 1
    lines = []
    for name, cells in waiting.items():
        why = _lacking(cards[name], configured_mirror(mirror)) if name in cards else ""
        if why:
            lines.append(f"{name} ({cells} cells): {why}")
    return [*lines, *(f"package {name} ({cells} cells)" for name, cells in packages.items())]


def _read(name: str, cards: Mapping[str, Card]) -> list[str]:
    """A dataset and what it is made of, as far as that has still to be made."""
    of = cards[name].made_of if name in cards else None
    if of is None or _is_prepared(name):
        return [name]
    return [name, *_read(of, cards)]


def _is_prepared(name: str) -> bool:
    return (DATA_FOLDER / name / "meta.json").exists()


def _lacking(card: Card, mirror: str | None) -> str:
    """Why a dataset or resource is not here yet; empty where it is."""
    if _is_prepared(card.name):
        return ""
    if card.unavailable:
        return card.unavailable
    if card.encoder is not None:
        folder = card.encoder.path()
        return "" if folder is not None and folder.exists() else card.encoder.install
    if card.embedding is not None or not any(source.files for source in card.sources):
        return ""  # made from another dataset, see _read, or the user's own: see missing_files
    if mirror and mirror.startswith(("http://", "https://")):
        return f"not prepared; {mirror} is asked first"
    held = mirror and any(
        all(Path(mirror, file.name).exists() for file in source.files) for source in card.sources
    )
    if held:
        return ""
    files = [file for source in card.sources for file in source.files if file.origins]
    if not files:
        return "not prepared, in no mirror, and its card knows no address to fetch it from"
    return f"not prepared, in no mirror; would be fetched from {' or '.join(files[0].origins)}"
