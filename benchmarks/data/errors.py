"""What can be wrong with data, said so that a user can act on it."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """The data, or what was said about them, are not as they must be."""


class FormatError(DataError):
    """A file that does not follow its format: where, what, and what to do."""

    def __init__(self, path: str | Path, line: int | None, problem: str, remedy: str) -> None:
        self.path = Path(path)
        self.line = line
        place = f"{path}" if line is None else f"{path}, line {line}"
        said = f"{place}: {problem}. {remedy}"
        # What is quoted may hold halves of surrogate pairs, which no terminal or file takes.
        super().__init__(said.encode("utf-8", "backslashreplace").decode())


class UnknownNameError(DataError, LookupError):
    """A dataset that no card describes."""


class UnavailableError(DataError):
    """No source of a dataset can be reached: what to get, from where, where to put it."""
