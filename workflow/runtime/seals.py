"""Products of a run that are what was written: tables, figures and pages, each with a seal.

The seal of ``cells.csv`` is ``.cells.csv.sha256`` beside it, in the form that ``sha256sum --check``
reads. A job checks the seals of what it reads; the start of a run checks them all, and what is not
as written is removed and made again. Files without a seal are taken as they are. (The files of a
cell are bound by records of their own, see :mod:`benchmarks.records.files`.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common.atomic import write_text
from benchmarks.common.digests import DamagedError, file_digest
from workflow.runtime.logs import logged

SUFFIX = ".sha256"
UNSEALED = ("runs", "data", "downloads", "logs")
"""Folders of results that hold no products."""


@contextmanager
def sealed_job(snakemake: Any) -> Iterator[None]:
    """Around a script that makes products: checks its inputs, keeps its log, seals its outputs."""
    with logged(snakemake.log[0]):
        for path in snakemake.input:
            check(Path(path))
        yield
        for path in snakemake.output:
            seal(Path(path))


def seal(path: Path) -> None:
    """Write down what is in a product."""
    write_text(_seal_of(path), f"{file_digest(path)}  {path.name}\n")


def check(path: Path) -> None:
    """Raise :class:`DamagedError` if a product is not what its seal says."""
    if not _is_sealed(path):
        command = f"Make it again: the same snakemake command with --forcerun {path}"
        raise DamagedError(path, "its content is not what the run wrote", command)


def remove_damaged(folders: Iterable[Path]) -> list[Path]:
    """Remove the products below folders that are not what was written; returns their paths."""
    damaged = [path for folder in folders for path in _sealed(folder) if not _is_sealed(path)]
    for path in damaged:
        path.unlink()
        _seal_of(path).unlink()
    return damaged


def _sealed(folder: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(folder):
        names[:] = [name for name in names if name not in UNSEALED and not name.startswith(".")]
        for name in files:
            product = Path(parent, name.removeprefix(".").removesuffix(SUFFIX))
            if name == _seal_of(product).name and product.is_file():
                yield product


def _is_sealed(path: Path) -> bool:
    stored = _seal_of(path)
    if not stored.is_file():
        return True
    return stored.read_bytes().split()[:1] == [file_digest(path).encode()]


def _seal_of(path: Path) -> Path:
    return path.with_name(f".{path.name}{SUFFIX}")
