"""What makes our forests the authors' own: their random numbers and their order of ties."""

from __future__ import annotations

import numpy as np
import pytest

from methods.trees._introsort import sort_descending
from methods.trees._mersenne import mersenne, next_uint32, shuffle


@pytest.mark.parametrize("seed", [0, 49, 2**32 - 1])
def test_mersenne_twister_draws_what_numpy_draws(seed: int) -> None:
    state = mersenne(seed)
    drawn = [next_uint32(state) for _ in range(1500)]
    expected = np.random.RandomState(seed).randint(0, 2**32, 1500, dtype=np.uint32)
    np.testing.assert_array_equal(drawn, expected)


def test_mersenne_twister_keeps_the_standards_promise() -> None:
    # ISO C++ [rand.predef]: the 10000th draw of a default mt19937, whose seed is 5489.
    state = mersenne(5489)
    for _ in range(9999):
        next_uint32(state)
    assert next_uint32(state) == 4123659995


def test_shuffle_permutes_the_first_and_leaves_the_rest() -> None:
    values = np.arange(30)
    shuffle(mersenne(3), values, 20)
    assert sorted(values[:20]) == list(range(20))
    assert values[20:].tolist() == list(range(20, 30))
    assert values[:20].tolist() != list(range(20))


# What g++'s std::sort makes of keys i * i % 7, i < 40, compared by > alone.
STD_SORT = [
    30, 16, 33, 12, 19, 9, 37, 23, 5, 2, 26, 39, 31, 24, 25, 18, 17, 32, 11, 10, 38, 4, 3, 34,
    36, 29, 20, 27, 22, 15, 13, 8, 6, 1, 28, 21, 0, 14, 35, 7,
]  # fmt: skip


def test_equals_stand_where_std_sort_leaves_them() -> None:
    keys = (np.arange(40) ** 2 % 7).astype(np.float32)
    names = np.arange(40)
    sort_descending(keys, names)
    assert names.tolist() == STD_SORT


@pytest.mark.parametrize("n", [0, 1, 2, 16, 17, 100, 3000])
@pytest.mark.parametrize("kinds", [1, 3, 10_000])
def test_sorts_whatever_comes(n: int, kinds: int) -> None:
    rng = np.random.default_rng(n + kinds)
    before = rng.integers(0, kinds, n).astype(np.float32)
    for values in (before, np.sort(before), np.sort(before)[::-1]):
        keys, names = values.copy(), np.arange(n)
        sort_descending(keys, names)
        np.testing.assert_array_equal(keys, np.sort(values)[::-1])
        np.testing.assert_array_equal(values[names], keys)
        assert sorted(names) == list(range(n))


def test_sorts_what_resists_quicksort() -> None:
    # A pipe organ drives the median of three to the edge again and again.
    half = np.arange(2000, dtype=np.float32)
    values = np.concatenate([half, half[::-1]])
    keys, names = values.copy(), np.arange(4000)
    sort_descending(keys, names)
    np.testing.assert_array_equal(keys, np.sort(values)[::-1])
    np.testing.assert_array_equal(values[names], keys)
