"""How much memory a tree of processes holds, pages that several share counted once.

What counts is anonymous and shared memory, and what of them was swapped out: a page that n
processes share counts 1/n for each (the proportional set size), so forks cost only what they
change. Pages of files do not count, as the system can drop them at any time; files on a memory
file system (``/dev/shm``) are shared memory and do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import psutil

DUTY = 50
"""The proportional size is read at most one part in so many of the time: the kernel walks every
page for it, and the process that is measured waits meanwhile where it maps memory."""
_RESIDENT = ("RssAnon:", "RssShmem:", "VmSwap:")
_PROPORTIONAL = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")


class Meter:
    """Measures a tree again and again, at a bounded cost."""

    def __init__(self) -> None:
        self._not_before = 0.0
        self._last = 0.0

    def used_mb(self, processes: Sequence[psutil.Process]) -> float:
        """Megabytes that the processes hold together; between two exact looks, the last one.

        One process alone shares with nobody, and its resident size is exact and cheap.
        """
        resident = [kb for kb in (_kilobytes(p, "status", _RESIDENT) for p in processes) if kb]
        total = sum(resident) / 1024
        if len(resident) < 2:
            return total
        now = time.monotonic()
        if now < self._not_before:
            return min(self._last, total)
        self._last = sum(proportional_kb(process) for process in processes) / 1024
        self._not_before = now + DUTY * (time.monotonic() - now)
        return self._last


def proportional_kb(process: psutil.Process) -> int:
    """A process's share of what it holds; its resident size where the kernel does not say."""
    found = _kilobytes(process, "smaps_rollup", _PROPORTIONAL)
    return found if found is not None else _kilobytes(process, "status", _RESIDENT) or 0


def _kilobytes(process: psutil.Process, file: str, fields: Sequence[str]) -> int | None:
    """The sum of some lines of a file of ``/proc``; None where it has not the first of them."""
    try:
        text = Path(f"/proc/{process.pid}/{file}").read_text(encoding="utf-8", errors="replace")
    except OSError:  # ended meanwhile, or another user's
        return None
    found = [line.split() for line in text.splitlines() if line.startswith(tuple(fields))]
    if fields[0] not in [words[0] for words in found]:
        return None
    return sum(int(words[1]) for words in found)
