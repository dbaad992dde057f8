"""Files from a mirror or the web: resumed, retried, checked before anyone sees them.

A download grows as ``.NAME.part`` in the cache and gets its name only once its size and
checksum are right. Where a card knows no checksum, the one of the first file that led to a
whole dataset is kept in ``checksums.json`` and holds from then on.

Google Drive is asked through the same code; only its confirmation page is read by gdown, which
follows Google's changes to that page. gdown's own downloader is not used, as it would be a
second way to resume, retry and check.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
from gdown.download import get_url_from_gdrive_confirmation
from gdown.exceptions import FileURLRetrievalError
from tqdm import tqdm

from benchmarks.common.atomic import write_json
from benchmarks.common.digests import read_object
from benchmarks.common.locks import exclusive
from benchmarks.data import package_index
from benchmarks.data.cards import RemoteFile
from benchmarks.data.errors import UnavailableError
from benchmarks.data.web import (
    Patience,
    Place,
    SourceError,
    TryAgainError,
    patiently,
    refuse_errors,
)

LOCK_FILE = "checksums.json"
GDRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"
CHUNK = 1 << 20
SIZE_LIMIT = 200 << 30
"""Bytes of a download whose card does not know its size: no dataset is larger."""


@dataclass(frozen=True)
class Fetched:
    """A file whose size and checksum are those of its card, as far as the card knows them."""

    path: Path
    sha256: str
    origin: str


def fetch(
    file: RemoteFile,
    cache: str | Path,
    mirror: str | None = None,
    patience: Patience | None = None,
) -> Fetched:
    """The file, from the cache, the mirror, or its origins in order of preference.

    ``mirror`` is a folder or a web address that holds files under their own names. Raises
    :class:`UnavailableError` that says what to get, from where, and where to put it.
    """
    cache = Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    patience = patience or Patience()
    failures: list[str] = []
    with exclusive(cache / f".{file.name}.lock"):
        kept = cache / file.name
        if kept.exists():
            try:
                return Fetched(kept, _check(kept, file, cache), str(kept))
            except SourceError as error:
                failures.append(f"{kept}: {error}")
        for place in _places(file, mirror, patience, failures):
            try:
                if not _is_web(place.address):
                    path = Path(place.address)
                    if not path.exists():
                        failures.append(f"{path}: there is no such file")
                        continue
                    return Fetched(path, _check(path, file, cache), place.address)
                part = _download(place, file, cache, patience)
                try:
                    sha256 = _check(part, file, cache)
                except SourceError:
                    part.unlink()
                    raise
                part.replace(kept)
                return Fetched(kept, sha256, place.shown)
            except SourceError as error:
                failures.append(f"{place.shown}: {error}")
    raise UnavailableError(_advice(file, cache, mirror, failures))


def record(file: RemoteFile, fetched: Fetched, cache: str | Path) -> None:
    """Keep the checksum of a file that proved right and whose card knows none."""
    if file.checksum_known:
        return
    path = Path(cache) / LOCK_FILE
    with exclusive(Path(cache) / f".{LOCK_FILE}.lock"):
        known = _recorded(Path(cache))
        known[file.name] = {
            "sha256": fetched.sha256,
            "size": fetched.path.stat().st_size,
            "origin": fetched.origin,
        }
        write_json(path, dict(sorted(known.items())))


def git_blob(path: str | Path) -> str:
    """The id git gives a file's content."""
    digest = hashlib.sha1(b"blob %d\0" % Path(path).stat().st_size)
    _feed(path, digest)
    return digest.hexdigest()


def _places(
    file: RemoteFile, mirror: str | None, patience: Patience, failures: list[str]
) -> Iterator[Place]:
    """Where the file may be, the mirror first; a package index is asked only when it is reached."""
    if mirror:
        if _is_web(mirror):
            yield Place(f"{mirror.rstrip('/')}/{quote(file.name)}")
        else:
            yield Place(str(Path(mirror) / file.name))
    for origin in file.origins:
        if origin.startswith(package_index.PREFIX):
            yield from package_index.places(origin, file.name, patience, failures)
        else:
            yield Place(origin)


def _is_web(origin: str) -> bool:
    return origin.startswith(("http://", "https://", "gdrive:"))


def _check(path: Path, file: RemoteFile, cache: Path) -> str:
    """The sha256 of a file that has the size and checksum it must have."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise SourceError(f"has {size:,} bytes instead of {file.size:,}")
    digests = {"sha256": hashlib.sha256()}
    if file.md5:
        digests["md5"] = hashlib.md5(usedforsecurity=False)
    if file.git_blob:
        digests["git_blob"] = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    _feed(path, *digests.values())
    for kind, digest in digests.items():
        wanted = getattr(file, kind)
        if wanted and digest.hexdigest() != wanted:
            raise SourceError(f"its {kind} is {digest.hexdigest()} instead of {wanted}")
    sha256 = digests["sha256"].hexdigest()
    if not file.checksum_known:
        known = _recorded(cache).get(file.name)
        if known is not None and known["sha256"] != sha256:
            raise SourceError(
                f"differs from the file first used (sha256 {known['sha256']} in "
                f"{cache / LOCK_FILE}; delete that entry if the change is meant)"
            )
        with path.open("rb") as stream:
            start = stream.read(512)
        if _is_page(start, file.name):
            raise SourceError("is a web page, not the file")
    return sha256


def _feed(path: str | Path, *digests: hashlib._Hash) -> None:
    with Path(path).open("rb") as stream:
        while chunk := stream.read(CHUNK):
            for digest in digests:
                digest.update(chunk)


def _recorded(cache: Path) -> dict[str, dict[str, object]]:
    """Checksums by file name; what is damaged counts as not recorded, so it is written afresh."""
    path = cache / LOCK_FILE
    entries = (read_object(path) or {}) if path.exists() else {}
    return {
        name: entry
        for name, entry in entries.items()
        if isinstance(entry, dict) and isinstance(entry.get("sha256"), str)
    }


def _is_page(start: bytes, name: str) -> bool:
    head = start.lstrip().lower()
    return head.startswith((b"<!doctype html", b"<html")) and not name.endswith((".html", ".htm"))


@dataclass(frozen=True)
class _Download:
    """One download; ``notes`` say from where, and of which version, the part is."""

    file: RemoteFile
    url: str
    shown: str
    on_drive: bool
    part: Path
    notes: Path
    deadline: float
    """The time, by the monotonic clock, at which it is given up."""

    def validator(self) -> str | None:
        """The server's tag of the version that the part belongs to."""
        value = (read_object(self.notes) or {}).get("validator")
        return value if isinstance(value, str) else None

    def note(self, validator: str | None) -> None:
        write_json(self.notes, {"url": self.shown, "validator": validator})

    def begin(self) -> None:
        """Start over unless the part was begun from this very address."""
        notes = read_object(self.notes) if self.notes.exists() else None
        if notes is None or notes.get("url") != self.shown:  # none, damaged, or of another place
            self.part.unlink(missing_ok=True)
            self.note(None)


def _download(place: Place, file: RemoteFile, cache: Path, patience: Patience) -> Path:
    """The whole file as a part of the cache, after as many attempts as patience allows."""
    origin = place.address
    on_drive = origin.startswith("gdrive:")
    url = GDRIVE.format(origin.removeprefix("gdrive:")) if on_drive else origin
    part = cache / f".{file.name}.part"
    notes, deadline = cache / f".{file.name}.part.json", time.monotonic() + patience.total_s
    job = _Download(file, url, place.shown, on_drive, part, notes, deadline)
    job.begin()
    try:
        patiently(lambda client: _transfer(client, job), patience, place.options)
    except SourceError:
        if not part.exists():
            job.notes.unlink(missing_ok=True)
        raise
    job.notes.unlink()
    return part


def _transfer(client: httpx.Client, job: _Download) -> None:
    """One request; picks up where the part ends if the server can."""
    have = job.part.stat().st_size if job.part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    validator = job.validator()
    # Without a validator only a checksum can tell that both parts are of one file.
    if have and (validator or job.file.checksum_known):
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator
    with client.stream("GET", job.url, headers=headers) as response:
        if response.status_code == 416:
            job.part.unlink(missing_ok=True)
            raise TryAgainError("the server has less than was already downloaded")
        refuse_errors(response, part_asked="Range" in headers)
        if _is_web_page(response, job.file):
            if not job.on_drive:
                raise SourceError("a web page came instead of the file")
            response.read()
            _confirm(client, response.text, job)
            return
        resumed = response.status_code == 206
        if resumed and not response.headers.get("content-range", "").startswith(f"bytes {have}-"):
            job.part.unlink()
            raise TryAgainError("the server resumed at the wrong place")
        validator = response.headers.get("etag") or response.headers.get("last-modified")
        # A weak tag does not promise the same bytes.
        job.note(None if validator and validator.startswith("W/") else validator)
        _save(response, job, have if resumed else 0)


def _is_web_page(response: httpx.Response, file: RemoteFile) -> bool:
    page = "text/html" in response.headers.get("content-type", "")
    return page and not file.name.endswith((".html", ".htm"))


def _confirm(client: httpx.Client, page: str, job: _Download) -> None:
    """Answer Google Drive's question about files too large for its virus scan."""
    try:
        url = get_url_from_gdrive_confirmation(page)
    except FileURLRetrievalError as error:
        raise SourceError(f"Google Drive does not give the file: {error}") from error
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
        refuse_errors(response)
        if _is_web_page(response, job.file):
            raise SourceError("Google Drive asked again instead of sending the file")
        _save(response, job, 0)


def _save(response: httpx.Response, job: _Download, have: int) -> None:
    length = response.headers.get("content-length")
    total = have + int(length) if length and length.isdigit() else None
    size = job.file.size
    if size is not None and total is not None and total != size:
        raise SourceError(f"the server offers {total:,} bytes instead of {size:,}")
    with (
        job.part.open("ab" if have else "wb") as out,
        # disable=None: no bar where stderr is no terminal.
        tqdm(
            total=total, initial=have, unit="B", unit_scale=True, desc=job.file.name, disable=None
        ) as bar,
    ):
        # Raw: what came before a cut is kept, and no .gz is unpacked on the way.
        for chunk in response.iter_raw():
            have += len(chunk)
            if size is not None and have > size:
                raise SourceError(f"the server sends more than the {size:,} bytes expected")
            if have > SIZE_LIMIT:
                job.part.unlink()
                raise SourceError(f"the server sends more than {SIZE_LIMIT:,} bytes")
            if time.monotonic() > job.deadline:
                raise SourceError(f"not finished in the time allowed, after {have:,} bytes")
            out.write(chunk)
            bar.update(len(chunk))
    if total is not None and have != total:
        raise TryAgainError(f"the connection closed after {have:,} of {total:,} bytes")


def _advice(file: RemoteFile, cache: Path, mirror: str | None, failures: list[str]) -> str:
    tried = "".join(f"\n  tried {failure}" for failure in failures)
    web = [_for_a_person(origin) for origin in file.origins]
    where = f" from {' or '.join(web)}" if web else " from a mirror that has it"
    place = f"put it at {cache / file.name}"
    if mirror is None:
        place += ", or set TAILTABLES_MIRROR (or mirror: in the config) to a folder or address "
        place += f"that holds {file.name}"
    return f"{file.name} is unavailable.{tried}\n  Get it{where} and {place}."


def _for_a_person(origin: str) -> str:
    """The address to open in a browser."""
    if origin.startswith("gdrive:"):
        return f"https://drive.google.com/uc?id={origin.removeprefix('gdrive:')}"
    return package_index.project_page(origin) if origin.startswith("pypi:") else origin
