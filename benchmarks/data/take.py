"""A part of a dataset: a stated number of documents of each split, drawn by a seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.data.cards import Taken
from benchmarks.data.errors import DataError
from benchmarks.data.split import Split


def taken(splits: Mapping[str, Split], wanted: Taken) -> dict[str, Split]:
    """Train and test with as many documents as wanted, in their old order.

    Words, features and label columns stay those of the whole, also where no document that was
    drawn has them. The draw of a split does not depend on the size of the other, and a smaller
    one is part of a larger.
    """
    found = {}
    for number, (name, size) in enumerate((("train", wanted.train), ("test", wanted.test))):
        whole = splits[name]
        if size > len(whole):
            raise DataError(f"{wanted.of} has {len(whole)} {name} documents, not {size}")
        drawn = np.random.default_rng([wanted.seed, number]).permutation(len(whole))[:size]
        found[name] = whole.take(np.sort(drawn))
    return found
