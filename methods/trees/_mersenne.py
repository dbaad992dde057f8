"""The Mersenne Twister (Matsumoto and Nishimura, 1998) for compiled loops.

FastXML's authors draw from it, seeded by the number of the tree. Drawing the same numbers in the
same order grows the same trees, so that ours can be checked against theirs one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_WORDS = 624
_AHEAD = 397
_TWIST = 0x9908B0DF
_HIGH_BIT = 0x80000000
_LOW_BITS = 0x7FFFFFFF


def mersenne(seed: int) -> np.ndarray:
    """The state that belongs to a seed: 624 words, then the place of the next one."""
    words = np.random.RandomState(seed % 2**32).get_state(legacy=False)["state"]["key"]
    return np.append(words, np.uint32(_WORDS))


@njit(cache=True, nogil=True)
def next_uint32(state):  # type: ignore[no-untyped-def]
    """The next 32 random bits."""
    if state[_WORDS] == _WORDS:
        _renew(state)
    y = np.int64(state[state[_WORDS]])
    state[_WORDS] += np.uint32(1)
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return np.uint32(y ^ (y >> 18))


@njit(cache=True, nogil=True)
def _renew(state):  # type: ignore[no-untyped-def]
    for i in range(_WORDS):
        y = (np.int64(state[i]) & _HIGH_BIT) | (np.int64(state[(i + 1) % _WORDS]) & _LOW_BITS)
        new = np.int64(state[(i + _AHEAD) % _WORDS]) ^ (y >> 1)
        state[i] = new ^ _TWIST if y & 1 else new
    state[_WORDS] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def shuffle(state, values, n):  # type: ignore[no-untyped-def]
    """Permute the first n values in place; the last draw has one outcome, but is drawn."""
    for i in range(n):
        j = i + np.int64(next_uint32(state) % np.uint32(n - i))
        values[i], values[j] = values[j], values[i]
