"""Archives unpacked without trust: regular files only, inside the folder, up to a size limit.

Links, devices and pipes are refused, and every path is worked out here from the member's name.
tarfile's own ``data`` filter is not relied on: chains of links lead it out of the folder on
Python releases in use (CVE-2025-4517). A folder in which no link was ever made cannot be left.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO

from benchmarks.data.errors import DataError

SIZE_LIMIT = 100 << 30
FILE_LIMIT = 5_000_000
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_CHUNK = 1 << 20
_HEADER_LIMIT = 1 << 20
"""Bytes of a header that tarfile holds in memory: a long name, or a list of properties."""
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class UnpackError(DataError):
    """An archive that is damaged or that means harm."""


def unpack(
    archive: str | Path,
    folder: str | Path,
    limit: int = SIZE_LIMIT,
    members: Collection[str] | None = None,
) -> None:
    """Unpack zip, wheel, tar (plain, gz, xz, bz2) or gz into a folder; others are copied there.

    ``limit`` bounds the bytes written; of a zip or tar only ``members`` are written, if given,
    and each must be there. Raises :class:`UnpackError` and leaves what it wrote to the caller,
    who unpacks into a temporary folder.
    """
    archive, folder = Path(archive), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    target = _Target(archive, folder, limit, members)
    try:
        if archive.stat().st_size == 0:
            raise EOFError("it is empty")
        if archive.name.endswith((".zip", ".whl")):
            _unzip(archive, target)
        elif archive.name.endswith(_TAR):
            _untar(archive, target)
        elif archive.name.endswith(".gz"):
            with gzip.open(archive) as packed:
                target.write(archive.name.removesuffix(".gz"), packed)
        else:
            with archive.open("rb") as plain:
                target.write(archive.name, plain)
    except UnpackError:
        raise
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        lzma.LZMAError,
        zlib.error,
        EOFError,
        NotImplementedError,
        OSError,
        # tarfile's and zipfile's on some nonsense in headers:
        ValueError,
        IndexError,
        OverflowError,
        RecursionError,
    ) as error:
        # A number is the disk's fault, unless it is of a position that no file can have.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise UnpackError(
            f"{archive}: the archive is cut or damaged ({error}). Delete it and fetch it again."
        ) from error
    if target.missing:
        raise UnpackError(f"{archive}: has no member {', '.join(sorted(target.missing))}")


class _Target:
    """The folder that is written to, the bytes and files that may still be written."""

    def __init__(
        self, archive: Path, folder: Path, limit: int, members: Collection[str] | None
    ) -> None:
        self.archive = archive
        self.root = folder.resolve()
        self.limit = limit
        self.left = limit
        self.files_left = FILE_LIMIT
        self.members = members
        self.missing = set(members or ())

    def wants(self, name: str) -> bool:
        """Whether a member is to be written at all."""
        return self.members is None or name in self.members

    def refuse(self, name: str, why: str) -> UnpackError:
        return UnpackError(f"{self.archive}: refused, {name!r} {why}")

    def reserve(self, size: int) -> None:
        """Stop before a member is written that would not fit."""
        self.files_left -= 1
        if self.files_left < 0:
            raise UnpackError(f"{self.archive}: holds more than {FILE_LIMIT:,} files")
        if size > self.left:
            raise UnpackError(f"{self.archive}: unpacks to more than {self.limit:,} bytes")

    def path(self, name: str) -> Path:
        """Where a member goes, from its name alone; the folder itself for ``.``."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts:
            raise self.refuse(name, "leads out of the folder")
        if not name.isprintable() or "\\" in name:
            raise self.refuse(name, "has characters that a file name should not have")
        if len(name.encode()) > 1000 or any(len(part.encode()) > 255 for part in parts):
            raise self.refuse(name[:60] + "...", "has too long a name")
        return self.root.joinpath(*parts)

    def write(self, name: str, source: IO[bytes] | gzip.GzipFile) -> None:
        path = self.path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            out = path.open("xb")  # never over, or through, what is there
        except (FileExistsError, NotADirectoryError) as error:
            raise self.refuse(name, "is in the way of another member") from error
        with out:
            while chunk := source.read(_CHUNK):
                self.left -= len(chunk)
                if self.left < 0:
                    raise UnpackError(f"{self.archive}: unpacks to more than {self.limit:,} bytes")
                out.write(chunk)
        self.missing.discard(name)


class _Member(tarfile.TarInfo):
    """A member whose headers are small; tarfile reads each into memory, however long it is."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        # The place that tarfile leaves to subclasses: before anything is made of a header.
        if self.size < 0 or (self.type in _HEADERS and self.size > _HEADER_LIMIT):
            raise ValueError(f"a header or member of {self.size:,} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


def _untar(archive: Path, target: _Target) -> None:
    with tarfile.open(archive, tarinfo=_Member) as tar:
        for member in tar:
            if not target.wants(member.name):
                continue
            if member.isdir():
                target.path(member.name)
                continue
            if not member.isreg():
                kind = "a link" if member.issym() or member.islnk() else "no regular file"
                raise target.refuse(member.name, f"is {kind}")
            target.reserve(member.size)
            content = tar.extractfile(member)
            assert content is not None  # only for what is no regular file
            with content:
                target.write(member.name, content)


def _unzip(archive: Path, target: _Target) -> None:
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            if not target.wants(entry.filename):
                continue
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                what = "a link" if kind == stat.S_IFLNK else "no regular file"
                raise target.refuse(entry.filename, f"is {what}")
            if entry.flag_bits & 1:
                raise UnpackError(f"{archive}: {entry.filename!r} is encrypted")
            if entry.is_dir():
                target.path(entry.filename)
                continue
            target.reserve(entry.file_size)
            with packed.open(entry) as source:
                target.write(entry.filename, source)
