"""Freed memory goes back to the system."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.memory import return_freed


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_pages_of_small_arrays_are_returned():
    return_freed()
    before = resident_mb()
    kept = [np.ones(10_000) for _ in range(4000)]  # 80 kB each: of the heap, not mapped alone
    assert resident_mb() > before + 250
    last = kept.pop()  # at the end of the heap: without it the heap would shrink by itself
    kept.clear()
    return_freed()
    assert resident_mb() < before + 50
    assert last.sum() == 10_000
