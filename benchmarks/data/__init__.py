"""Datasets: fetched, checked, parsed, held open.

>>> from benchmarks.data import load, read_xc
>>> train, test = load("demo-bow")
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.data.split import Split

__all__ = ["load", "names", "read_xc"]


def read_xc(path: str | Path, **options: Any) -> Split:
    """Read a file of the XC repository's format: see :func:`benchmarks.data.xc.read_xc`."""
    # Imported when called: the compiler behind the parser takes a second few jobs need to pay.
    from benchmarks.data import xc

    return xc.read_xc(path, **options)


def load(
    name: str,
    root: str | Path = "results/data",
    mirror: str | None = None,
    cards: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Split, Split]:
    """Train and test of a dataset by name.

    A synthetic corpus is generated; any other is opened from ``root``, and fetched and prepared
    there first if need be. ``mirror`` is a folder or web address asked before the dataset's own
    sources (default: ``TAILTABLES_MIRROR``); ``cards`` are the user's own cards by name.
    """
    from benchmarks.data import synthetic

    if name in synthetic.NAMES and name not in (cards or {}):
        return synthetic.generate(name)
    from benchmarks.data.prepare import ensure
    from benchmarks.data.prepared import open_prepared

    folder = ensure(name, root, mirror, cards)
    try:
        return open_prepared(folder)
    except KeyError as error:
        raise ValueError(f"{name} holds no train and test; it is not a dataset") from error


def names(cards: Mapping[str, Mapping[str, Any]] | None = None) -> list[str]:
    """Every dataset :func:`load` or a run may ask for: synthetic corpora, cards, the user's."""
    from benchmarks.data import synthetic
    from benchmarks.data.cards import all_cards

    described = [name for name, card in all_cards(cards).items() if card.kind == "dataset"]
    return [*synthetic.NAMES, *described]
