"""Where a job's own words go, and how many of them are kept."""

from __future__ import annotations

import fcntl
import os
import select
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import TracebackType

LOG_BYTES = 16 * 2**20
"""A log never grows beyond it: its first half and its last quarter are kept."""
TAIL_BYTES = 2**16
TAIL_LINES = 20
LINE_LENGTH = 500
REASON_LENGTH = 2000
_CHUNK = 2**16


def bounded(text: str, length: int = REASON_LENGTH) -> str:
    """The text, or its first ``length`` characters and a word on how many there were."""
    return text if len(text) <= length else f"{text[:length]} ... ({len(text):,} characters)"


def tail(log: Path) -> list[str]:
    """The last lines of a log, each bounded.

    None if it is gone: a new run removes it before it waits for the job of a killed one.
    """
    try:
        stream = log.open("rb")
    except FileNotFoundError:
        return []
    with stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL_BYTES))
        lines = stream.read(TAIL_BYTES).decode("utf-8", errors="replace").splitlines()
    return [bounded(line, LINE_LENGTH) for line in lines[-TAIL_LINES:]]


class BoundedLog:
    """A log with one writer, in which the middle of a long text is left out.

    Every text is in the file as soon as it is written, so that a user can follow it.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b", buffering=0)

    def write(self, text: bytes) -> None:
        """Append; cut the middle out where the log would grow beyond the limit."""
        size = self._file.seek(0, os.SEEK_END)
        if size + len(text) <= LOG_BYTES:
            self._write(text)
            return
        head, most = LOG_BYTES // 2, LOG_BYTES // 4
        room = max(0, head - size)
        self._write(text[:room])
        self._file.seek(max(head, size - most))
        end = (self._file.read(most) + text[room:])[-most:]
        # Over what is there, and shortened only then: a kill in between loses nothing, and a
        # full disk is asked for no new space.
        self._file.seek(head)
        self._write(f"\n[left out here: this log was over {LOG_BYTES:,} bytes]\n".encode() + end)
        self._file.truncate()

    def close(self) -> None:
        self._file.close()

    def _write(self, text: bytes) -> None:
        while text:  # a file that is not buffered may take a part
            text = text[self._file.write(text) :]


class Recorder:
    """Writes to a log what other processes print, while they run.

    They print into a pipe, and only this process writes to the file. If they appended to the file
    themselves, what they wrote between the moment its end is read and the moment it is cut would
    be lost, and there is no order of these two steps without such a moment. With one writer there
    is nobody to append meanwhile.

    No end of the pipe is waited for: a process that was handed it, and is no descendant of the
    command, could hold it open. What processes that have ended wrote is in the pipe by then, and
    a pipe has a capacity; so much is read when recording ends, and no more.
    """

    def __init__(self, log: Path) -> None:
        self._log = BoundedLog(log)
        self._fault: OSError | None = None
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._record, name=f"log {log}", daemon=True)

    def __enter__(self) -> Recorder:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write down what was printed up to now, and close the log."""
        os.close(self._end)
        self._thread.join()
        for descriptor in (self.reader, self.writer, self._ended):
            os.close(descriptor)
        self._log.close()

    def _record(self) -> None:
        while self._ended not in select.select([self.reader, self._ended], [], [])[0]:
            self._take(_CHUNK)
        left = fcntl.fcntl(self.reader, fcntl.F_GETPIPE_SZ)
        while left > 0 and (taken := self._take(left)):
            left -= taken
        if self._fault is not None:
            self._keep(b"")

    def _take(self, most: int) -> int:
        """Move what is in the pipe to the log; how many bytes that was."""
        with suppress(BlockingIOError):
            text = os.read(self.reader, most)
            self._keep(text)
            return len(text)
        return 0

    def _keep(self, text: bytes) -> None:
        """Write, or on a full disk go on without: who prints must not have to wait for it."""
        if self._fault is not None:
            note = f"\n[left out here: the log could not be written ({self._fault.strerror})]\n"
            text = note.encode() + text
        try:
            self._log.write(text)
            self._fault = None
        except OSError as error:
            self._fault = error


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
