"""Where a job's own words go."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path


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
