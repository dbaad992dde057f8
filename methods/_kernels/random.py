"""A random generator that compiled loops can carry: SplitMix64 in a one-element array.

Every stream is seeded from named axes (run, tree, node), so that no draw depends on which thread
works on what.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True)
def next_uint64(state):  # type: ignore[no-untyped-def]
    """The next 64 random bits; ``state`` is uint64[1]."""
    state[0] += _STEP
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def below(state, n):  # type: ignore[no-untyped-def]
    """A random integer in 0..n-1 (the bias of the remainder is below n / 2^64)."""
    return np.int64(next_uint64(state) % np.uint64(n))


@njit(cache=True)
def uniform(state):  # type: ignore[no-untyped-def]
    """A random number in [0, 1)."""
    return np.float64(next_uint64(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def shuffle(state, values, n):  # type: ignore[no-untyped-def]
    """Permute the first n values in place (Fisher and Yates)."""
    for i in range(n - 1):
        j = i + below(state, n - i)
        kept = values[i]
        values[i] = values[j]
        values[j] = kept


def stream(*axes: int) -> np.ndarray:
    """The state of the generator that belongs to (seed, tree, node, ...), uint64[1]."""
    return np.random.SeedSequence([int(axis) for axis in axes]).generate_state(1, np.uint64)
