"""What is looked at before anything runs, also by ``-n``: missing files, misplaced words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data.cards import Card, local_files

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
