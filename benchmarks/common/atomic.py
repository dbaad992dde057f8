"""Files and folders that are either whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        prefix=f".{target.name}.{_owner()}-", suffix=f".tmp{target.suffix}", dir=target.parent
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
    with temporary_folder(target.parent, target.name) as temporary:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if target.exists():
            shutil.rmtree(target)
        temporary.replace(target)


@contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """A new folder below ``parent``, gone after the block or, after a kill, by :func:`sweep`."""
    parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{name}.{_owner()}-"
    temporary = Path(tempfile.mkdtemp(prefix=prefix, suffix=".tmp", dir=parent))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sweep(folder: str | Path) -> list[Path]:
    """Remove the temporary files that dead processes left below a folder; returns their paths.

    Of processes on other machines nothing is known here: theirs go after two days.
    """
    swept = []
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            owner = _TEMPORARY.fullmatch(name)
            path = Path(parent, name)
            if owner is None or not _is_left(path, owner[1], int(owner[2])):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
                folders.remove(name)
            else:
                path.unlink(missing_ok=True)
            swept.append(path)
    return swept


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


_TEMPORARY = re.compile(r"\..+\.([0-9a-f]{6})-(\d+)-[a-z0-9_]{8}\.tmp(?:\.\w+)?")
_FOREIGN_S = 2 * 24 * 3600


def _owner() -> str:
    return f"{_machine()}-{os.getpid()}"


def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def _is_left(path: Path, machine: str, pid: int) -> bool:
    """Whether the process that made a temporary file has ended."""
    import psutil

    try:
        made = path.lstat().st_mtime
    except OSError:
        return False  # it is gone
    if machine != _machine():
        return time.time() - made > _FOREIGN_S
    with suppress(psutil.NoSuchProcess):
        # A number is given again: a process that began after the file was made is another one.
        return bool(psutil.Process(pid).create_time() > made + 1)
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
