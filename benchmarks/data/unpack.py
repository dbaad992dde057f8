"""Archives unpacked without trust: nothing outside the folder, no links out, a size limit."""

from __future__ import annotations

import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from benchmarks.data.errors import DataError

SIZE_LIMIT = 100 << 30
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_CHUNK = 1 << 20


class UnpackError(DataError):
    """An archive that is damaged or that means harm."""


def unpack(archive: str | Path, folder: str | Path, limit: int = SIZE_LIMIT) -> None:
    """Unpack zip, tar (plain, gz, xz, bz2) or gz into a folder; other files are copied there.

    ``limit`` bounds the bytes written. Raises :class:`UnpackError` and leaves what it wrote to
    the caller, who unpacks into a temporary folder.
    """
    archive, folder = Path(archive), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    budget = _Budget(archive, limit)
    try:
        if archive.stat().st_size == 0:
            raise EOFError("it is empty")
        if archive.name.endswith(".zip"):
            _unzip(archive, folder, budget)
        elif archive.name.endswith(_TAR):
            _untar(archive, folder, budget)
        elif archive.name.endswith(".gz"):
            with gzip.open(archive) as packed:
                budget.copy(packed, folder / archive.name.removesuffix(".gz"))
        else:
            with archive.open("rb") as plain:
                budget.copy(plain, folder / archive.name)
    except tarfile.FilterError as error:
        raise UnpackError(f"{archive}: refused, {error}") from error
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        lzma.LZMAError,
        zlib.error,
        gzip.BadGzipFile,
        EOFError,
    ) as error:
        raise UnpackError(
            f"{archive}: the archive is cut or damaged ({error}). Delete it and fetch it again."
        ) from error


class _Budget:
    """Bytes that may still be written."""

    def __init__(self, archive: Path, limit: int) -> None:
        self.archive = archive
        self.limit = limit
        self.left = limit

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise UnpackError(f"{self.archive}: unpacks to more than {self.limit:,} bytes")

    def copy(self, source: IO[bytes] | gzip.GzipFile, target: Path) -> None:
        with target.open("wb") as out:
            while chunk := source.read(_CHUNK):
                self.spend(len(chunk))
                out.write(chunk)


def _untar(archive: Path, folder: Path, budget: _Budget) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            budget.spend(member.size)
            tar.extract(member, folder, filter="data")


def _unzip(archive: Path, folder: Path, budget: _Budget) -> None:
    root = folder.resolve()
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            mode = entry.external_attr >> 16
            if stat.S_ISLNK(mode):
                raise UnpackError(f"{archive}: refused, {entry.filename!r} is a link")
            if entry.flag_bits & 1:
                raise UnpackError(f"{archive}: {entry.filename!r} is encrypted")
            target = (root / entry.filename).resolve()
            if target != root and root not in target.parents:
                raise UnpackError(f"{archive}: refused, {entry.filename!r} leads out of the folder")
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(entry) as source:
                budget.copy(source, target)
