"""Files and folders that are either whole or not there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing pandas takes longer than most who write a file live
    import pandas as pd


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """A temporary path beside ``target`` that becomes it when the block ends without an error.

    The data are on disk before the name appears, so that a crash or a full disk leaves either
    the old file or the new one, never a part of one.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: str | Path) -> Iterator[Path]:
    """A temporary folder beside ``target`` that replaces it if the block ends without an error."""
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if target.exists():
            shutil.rmtree(target)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(target: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: str | Path, document: Any) -> None:
    """Write a JSON file whole or not at all, keys in the given order."""
    write_text(target, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def write_csv(target: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame without its index, whole or not at all."""
    with atomic_path(target) as temporary:
        frame.to_csv(temporary, index=False)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
