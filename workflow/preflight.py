"""Files are looked at before anything runs: what is missing is told at once, by ``-n`` too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.data.cards import Card, local_files

EMPTY = 0


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
