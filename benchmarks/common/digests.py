"""Files that are what was written, or a named error: digests of files, folders and documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DIGEST = "digest"
"""The key under which a document holds the digest of the rest of it."""

Inventory = dict[str, dict[str, Any]]
"""Size in bytes and sha256 of files, by their path below a folder."""


class DamagedError(ValueError):
    """A file that is not what was written; the message names it and how to make it again."""

    def __init__(self, path: str | Path, problem: str, remedy: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {problem}. {remedy}")


def file_digest(path: str | Path) -> str:
    """The sha256 of a file's content, as hexadecimal text."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def inventory(folder: str | Path) -> Inventory:
    """Every file below a folder."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {
            "size": path.stat().st_size,
            "sha256": file_digest(path),
        }
        for path in paths
    }


def signed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a digest of all its other entries."""
    rest = {key: value for key, value in document.items() if key != DIGEST}
    return {**rest, DIGEST: _document_digest(rest)}


def is_intact(document: Mapping[str, Any]) -> bool:
    """Whether a document read back is the one that was :func:`signed`, entry for entry."""
    rest = {key: value for key, value in document.items() if key != DIGEST}
    return document.get(DIGEST) == _document_digest(rest)


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None where there is no such object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # no UTF-8, no JSON, or nested without end
        return None
    return found if isinstance(found, dict) else None


def _document_digest(document: Mapping[str, Any]) -> str:
    # Through text and back, as a reader will see it: tuples are lists, keys are text.
    plain = json.loads(json.dumps(document))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
