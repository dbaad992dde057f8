"""Datasets by name: ``load`` for those with a card, ``generate`` for the embedded ones."""

from benchmarks.data.split import Inputs, Split, Tokens
from benchmarks.data.synthetic import NAMES, generate

__all__ = ["Inputs", "Split", "Tokens", "load"]


def load(name: str) -> tuple[Split, Split]:
    """Train and test of a dataset."""
    if name in NAMES:
        return generate(name)
    raise ValueError(f"no dataset {name!r}; there are {', '.join(NAMES)}")
