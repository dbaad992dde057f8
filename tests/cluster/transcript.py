"""What happened in a test, in the order it happened, for a reader."""

from __future__ import annotations

import time
from pathlib import Path

HEADER = """\
# A run on a SLURM cluster, with faults

Written by `make cluster-test TRANSCRIPT=results/reference/cluster.md`, which starts a cluster of
one node on loopback ([tests/cluster](../../tests/cluster/test_faults.py)). Times are seconds since
the start of a test; the machine's own paths and names are replaced.
"""


class Transcript:
    """Lines of prose and what programs said, with names of this machine replaced.

    With a ``path`` each line is in the file at once, whatever happens next.
    """

    def __init__(self, names: dict[str, str], path: Path | None) -> None:
        self.names = names
        self.path = path
        self.started = time.monotonic()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(HEADER, encoding="utf-8")

    def begins(self, title: str) -> None:
        """A new section."""
        self.started = time.monotonic()
        self._add(f"## {title[0].upper()}{title[1:]}")

    def says(self, text: str) -> None:
        """A line of prose."""
        self._add(f"{time.monotonic() - self.started:.0f} s: {self._plain(text)}")

    def shows(self, command: str, answer: str) -> None:
        """A command and its answer."""
        lines = [f"$ {command}", *answer.rstrip().splitlines()]
        text = "\n".join(line.rstrip() for line in lines)
        self._add(f"```text\n{self._plain(text)}\n```")

    def _add(self, text: str) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"\n{text}\n")

    def _plain(self, text: str) -> str:
        # Longer names first: one may be part of another.
        for name in sorted(self.names, key=len, reverse=True):
            text = text.replace(name, self.names[name])
        return text
