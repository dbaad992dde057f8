"""Where a job's own words go, and how many of them are kept."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

LOG_BYTES = 16 * 2**20
"""A log that grew beyond it keeps its first half and its last quarter."""
TAIL_BYTES = 2**16
TAIL_LINES = 20
LINE_LENGTH = 500
REASON_LENGTH = 2000


def bounded(text: str, length: int = REASON_LENGTH) -> str:
    """The text, or its first ``length`` characters and a word on how many there were."""
    return text if len(text) <= length else f"{text[:length]} ... ({len(text):,} characters)"


def tail(log: Path) -> list[str]:
    """The last lines of a log, each bounded; none if it is gone (see :func:`shorten`)."""
    if not log.exists():
        return []
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = stream.read(TAIL_BYTES).decode("utf-8", errors="replace").splitlines()
    return [bounded(line, LINE_LENGTH) for line in lines[-TAIL_LINES:]]


def shorten(log: Path) -> None:
    """Cut the middle out of a log over the limit, even if another process still appends to it.

    A log may be gone: a new run removes it before it waits for the job of a killed one.
    """
    size = log.stat().st_size if log.exists() else 0
    if size > LOG_BYTES:
        with log.open("rb") as stream:
            stream.seek(size - LOG_BYTES // 4)
            end = stream.read()[-LOG_BYTES // 4 :]
            # What is appended meanwhile would be cut off: read on until nothing comes.
            while more := stream.read():
                end = (end + more)[-LOG_BYTES // 4 :]
        os.truncate(log, LOG_BYTES // 2)
        with log.open("ab") as stream:
            stream.write(
                f"\n[left out here: this log was over {LOG_BYTES:,} bytes]\n".encode() + end
            )


@contextmanager
def logged(path: str | Path) -> Iterator[None]:
    """Send what is printed, and the trace of an error, to a rule's log file."""
    with Path(path).open("w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            yield
        except BaseException as error:
            traceback.print_exc()
            print(f"{type(error).__name__}: {error} (see {path})", file=sys.__stderr__)
            raise
