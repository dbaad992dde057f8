"""Files that users hand in, opened with care: regular, readable, of bounded size, in UTF-8."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import psutil

from benchmarks.data.errors import DataError, FormatError

LINE_LIMIT = 512 << 20
"""Bytes of one line; no document of any dataset has as many."""
EXPANSION_LIMIT = 250
"""How many times its size a gzip file may unpack to: text does not reach it, bombs do."""
EXPANSION_FREE = 64 << 20
"""Bytes that any gzip file may unpack to."""
_GZIP = b"\x1f\x8b"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


def text_limit() -> int:
    """Bytes of text read from one file, and of the arrays made of it: as many as the machine has
    memory, since what is read is held."""
    return int(psutil.virtual_memory().total)


def check_file(path: Path) -> None:
    """Raise :class:`DataError` unless there is a regular file that may be read."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise
    except OSError as error:  # links in a circle, a folder that may not be entered
        raise DataError(f"{path} cannot be reached ({error.strerror}); correct the card") from error
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{path} is a folder; name a file in the dataset's card")
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path} is a device or a pipe; copy its content to a file and name that")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} may not be read by this user; change its permissions (chmod u+r)")


def open_bytes(path: Path, limit: int | None = None) -> IO[bytes]:
    """A stream of a file's bytes, unpacked if it is gzipped, that stops at a limit.

    It raises :class:`FormatError` where the gzip stream is damaged, and beyond ``limit`` bytes
    (:func:`text_limit` by default).
    """
    check_file(path)
    with path.open("rb") as raw:
        zipped = raw.read(2) == _GZIP
    return _Bounded(path, zipped, text_limit() if limit is None else limit)  # type: ignore[return-value]


class _Bounded(io.RawIOBase):
    """The content of a file up to a limit, errors of gzip in words."""

    def __init__(self, path: Path, zipped: bool, limit: int) -> None:
        self.path = path
        self.stream: Any = gzip.GzipFile(path) if zipped else path.open("rb", buffering=0)
        self.limit = self.left = limit
        if zipped:
            expanded = max(EXPANSION_FREE, EXPANSION_LIMIT * path.stat().st_size)
            self.limit = self.left = min(limit, expanded)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = self.left + 1 if size < 0 else min(size, self.left + 1)
        try:
            found: bytes = self.stream.read(wanted)
        except _DAMAGED as error:
            raise FormatError(
                self.path,
                None,
                f"the gzip stream is cut or damaged ({error})",
                "Fetch the file again.",
            ) from error
        self.left -= len(found)
        if self.left < 0:
            raise FormatError(
                self.path,
                None,
                f"more than {self.limit:,} bytes of text: more than this machine has memory, or "
                "than a gzip file of text unpacks to",
                "Use a machine with more memory, or split the file.",
            )
        return found

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self.stream.close()
        super().close()


def text_lines(path: Path, limit: int | None = None) -> Iterator[str]:
    """The lines of a text file, plain or gzipped, with their ends."""
    raw = io.BufferedReader(open_bytes(path, limit), buffer_size=1 << 20)  # type: ignore[type-var]
    with io.TextIOWrapper(raw, encoding="utf-8") as stream:
        number = 0
        try:
            while line := stream.readline(LINE_LIMIT):
                number += 1
                if len(line) == LINE_LIMIT:
                    raise too_long(path, number)
                yield line
        except UnicodeDecodeError:
            _name_the_line(path)


def too_long(path: Path, line: int) -> FormatError:
    """The error for a line beyond the limit."""
    return FormatError(
        path, line, f"the line is longer than {LINE_LIMIT:,} bytes", "Fetch or write it again."
    )


def too_much(path: Path, line: int) -> FormatError:
    """The error for a file whose content does not fit into memory, though its text may."""
    return FormatError(
        path,
        line,
        f"what is read up to here takes more than {text_limit():,} bytes, all the memory there is",
        "Use a machine with more memory, or split the file.",
    )


def read_text(path: Path) -> str:
    """The whole of a text file."""
    return "".join(text_lines(path))


def read_json(path: Path) -> Any:
    """The one JSON document in a file."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, None, f"not JSON ({error})", "Write one JSON document.") from error


def _name_the_line(path: Path) -> NoReturn:
    """Find the line that is not UTF-8: the decoder reads ahead and knows only its own position."""
    with io.BufferedReader(open_bytes(path)) as raw:  # type: ignore[type-var]
        for number, line in enumerate(raw, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                problem = f"not UTF-8 (byte 0x{line[error.start]:02x} at column {error.start + 1})"
                remedy = "Convert the file, for example with iconv -t UTF-8."
                raise FormatError(path, number, problem, remedy) from error
    raise FormatError(path, None, "not UTF-8", "Convert the file.")
