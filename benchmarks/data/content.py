"""What every reader of a format returns, and the helpers they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data.cards import Part
from benchmarks.data.errors import DataError
from benchmarks.data.split import Tokens
from benchmarks.data.streams import text_lines


@dataclass(frozen=True)
class Parts:
    """What the files say of one split, before any features are made from texts."""

    labels: sparse.csr_matrix
    bow: sparse.csr_matrix | None = None
    texts: list[str] | None = None
    tokens: Tokens | None = None


@dataclass(frozen=True)
class Content:
    """All splits of a source, and the name of each label where known."""

    splits: dict[str, Parts]
    label_names: list[str] | None = None


def find(root: Path, pattern: str) -> Path:
    """The one file or folder that a card's path or pattern means."""
    if Path(pattern).is_absolute():
        matches = [Path(pattern)] if Path(pattern).exists() else []
    elif "*" in pattern:
        # Archives made on a Mac carry shadow files under __MACOSX.
        matches = [p for p in root.glob(pattern) if "__MACOSX" not in p.parts]
    else:
        matches = [root / pattern] if (root / pattern).exists() else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        found = ", ".join(str(p.relative_to(root)) for p in sorted(matches))
        raise DataError(f"{pattern!r} means more than one file: {found}")
    there = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())[:20]
    listing = f" Found are: {', '.join(there)}" if "*" in pattern or not root.samefile(".") else ""
    raise DataError(f"there is no file {pattern!r} in {root}; correct the card.{listing}")


def lines(path: Path) -> list[str]:
    """All lines, without their ends."""
    return [line.rstrip("\r\n") for line in text_lines(path)]


def matrix(rows: Sequence[Sequence[int]], width: int) -> sparse.csr_matrix:
    """Ones in the given columns of each row."""
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in rows], dtype=np.int64)])
    indices = np.fromiter((v for own in rows for v in own), np.int64, count=int(indptr[-1]))
    ones = np.ones(len(indices), np.float32)
    matrix = sparse.csr_matrix((ones, indices, indptr), shape=(len(rows), width))
    matrix.sort_indices()
    return matrix


def bow(matrix: sparse.csr_matrix | None) -> sparse.csr_matrix:
    """The bag of words, for formats that always have one."""
    assert matrix is not None
    return matrix


def one_path(name: str, part: Part) -> str:
    """The path of a format that has one file per split."""
    if not isinstance(part, str):
        raise DataError(f"{name}: this format needs one path, not {part!r}")
    return part


def some_paths(name: str, part: Part) -> list[str]:
    """The paths of a format that has one or more files per split, read one after another."""
    return part if isinstance(part, list) else [one_path(name, part)]
