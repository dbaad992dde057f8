"""Memory that a program no longer needs."""

from __future__ import annotations

import ctypes


def return_freed() -> None:
    """Give the pages of freed arrays back to the system, where the C library can (glibc).

    It keeps those of arrays up to 32 MB for later ones; where thousands were joined into a few
    large arrays, that is as much again as these take.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
