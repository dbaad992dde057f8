"""The validation split that the harness holds out of a training split for a method."""

from __future__ import annotations

import numpy as np

from benchmarks.data.split import Split


def hold_out(train: Split, n: int, seed: int) -> tuple[Split, Split]:
    """``train`` without n documents drawn by the seed, and those n; both in their old order."""
    if not 0 < n < len(train):
        raise ValueError(f"cannot hold out {n} of {len(train)} training documents")
    # A stream of its own: what a method draws from the seed itself must not repeat the choice.
    drawn = np.random.default_rng([seed, len(train), n]).permutation(len(train))
    return train.take(np.sort(drawn[n:])), train.take(np.sort(drawn[:n]))
