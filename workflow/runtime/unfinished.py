"""Unfinished work of a fit that was stopped, and the time it has taken so far."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.atomic import write_json
from benchmarks.common.digests import read_object

MADE_FOR, WORK, SPENT = "made_for.json", "work", "spent.json"
NOTED_EVERY_S = 10.0
Seconds = dict[str, float]
"""``wall_s`` and ``cpu_s``."""
NOTHING: Seconds = {"wall_s": 0.0, "cpu_s": 0.0}


def work_folder(checkpoint: Path, identity: Mapping[str, Any]) -> Path:
    """Where a fit finds and leaves unfinished work.

    Work that other settings, code or data left is removed: going on from it would give a result
    that neither of the two describes.
    """
    of = json.loads(json.dumps(identity))
    work = checkpoint / WORK
    note = checkpoint / MADE_FOR
    if not note.exists() or read_object(note) != of:
        shutil.rmtree(work, ignore_errors=True)
        (checkpoint / SPENT).unlink(missing_ok=True)
        write_json(note, of)
    work.mkdir(exist_ok=True)
    return work


class Spent:
    """The time of a fit over all processes that worked on it, noted beside its work as it goes."""

    def __init__(self, work: Path) -> None:
        self.path = work.parent / SPENT
        resumed = self.path.exists() and any(work.iterdir())
        found = read_object(self.path) if resumed else None
        self.before: Seconds = NOTHING if found is None else found
        self.noted = time.monotonic()

    def total(self, own: Seconds) -> Seconds:
        """With the time of this process."""
        return {unit: self.before[unit] + own[unit] for unit in NOTHING}

    def note(self, own: Seconds) -> None:
        """Write the time down, unless that was done a moment ago."""
        if time.monotonic() - self.noted >= NOTED_EVERY_S:
            write_json(self.path, self.total(own))
            self.noted = time.monotonic()
