"""Files of a package index (``pypi:PROJECT==VERSION``), found as pip would find them.

``pip download`` and ``pip install --dry-run --report`` are not used: for a source archive both
prepare its metadata, which runs the archive's own ``setup.py`` or build backend. A dataset is
data, and nothing in it is ever run. So pip is asked only where its settings are, the pages of the
simple index are read here, and the file is fetched and checked against the card's checksum like
any other.

Kept are ``index-url``, ``extra-index-url``, ``find-links``, ``no-index``, ``cert``, ``proxy`` and
``trusted-host``, user names and passwords in addresses, and ``.netrc``.
"""

from __future__ import annotations

import configparser
import importlib.util
import json
import netrc
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import httpx

from benchmarks.data.web import Patience, Place, SourceError, patiently, refuse_errors

PREFIX = "pypi:"
DEFAULT_INDEX = "https://pypi.org/simple"
_OPTIONS = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "cert",
    "proxy",
    "trusted-host",
)
_PAGE_LIMIT = 64 << 20


def project_page(origin: str) -> str:
    """Where a person finds the files of ``pypi:PROJECT==VERSION``."""
    project, _, version = origin.removeprefix(PREFIX).partition("==")
    return f"https://pypi.org/project/{project}/{version}/#files"


def places(origin: str, name: str, patience: Patience, failures: list[str]) -> Iterator[Place]:
    """Where the user's package indexes have the file ``name``, in pip's order of preference.

    What could not be asked, or has no such file, is added to ``failures``.
    """
    project = origin.removeprefix(PREFIX).partition("==")[0]
    try:
        settings = Settings.of_pip()
    except SourceError as error:
        failures.append(f"{origin}: {error}")
        return
    pages = [
        *settings.find_links,
        *(f"{i.rstrip('/')}/{_folded(project)}/" for i in settings.indexes),
    ]
    if not pages:
        failures.append(f"{origin}: pip is set to use no index and has no find-links")
    for page in pages:
        place = Place(page)
        try:
            place = settings.place(page)
            found = [settings.place(link) for link in _listed(place, name, patience)]
        except (SourceError, ValueError) as error:  # ValueError: an address that is none
            failures.append(f"{place.shown}: {error}")
            continue
        if not found:
            failures.append(f"{place.shown}: has no file {name}")
        yield from found


@dataclass(frozen=True)
class Settings:
    """What pip is told about package indexes."""

    indexes: tuple[str, ...]
    find_links: tuple[str, ...]
    certificates: ssl.SSLContext | None = None
    proxy: str | None = None
    trusted: tuple[str, ...] = ()

    @classmethod
    def of_pip(cls) -> Settings:
        """The settings that ``pip download`` would use here."""
        known = _pip_settings()
        indexes = [known.get("index-url", DEFAULT_INDEX), *known.get("extra-index-url", "").split()]
        if known.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t"):
            indexes = []
        return cls(
            tuple(indexes),
            tuple(known.get("find-links", "").split()),
            _certificates(known.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE")),
            known.get("proxy"),
            tuple(known.get("trusted-host", "").split()),
        )

    def place(self, address: str) -> Place:
        """An address with what is needed to ask it; a local one as a path."""
        parts = urlsplit(address)
        if parts.scheme == "file":
            return Place(url2pathname(parts.path))
        if parts.scheme not in ("http", "https"):
            return Place(address)
        options: dict[str, Any] = {}
        host = parts.netloc.rpartition("@")[2]
        if {host, host.partition(":")[0]} & set(self.trusted):
            options["verify"] = False
        elif self.certificates is not None:
            options["verify"] = self.certificates
        if self.proxy:
            options["proxy"] = self.proxy
        if parts.username is None:
            with suppress(OSError, netrc.NetrcParseError):  # most users have no such file
                options["auth"] = httpx.NetRCAuth(os.environ.get("NETRC"))
        return Place(address, options)


def _certificates(path: str | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise SourceError(f"pip's certificates {path}: {error}") from error


def _pip_settings() -> dict[str, str]:
    """Options by name: the environment's, else of section ``download``, else of ``global``."""
    known: dict[str, str] = {}
    parser = configparser.RawConfigParser(strict=False)
    files = _pip_files()
    try:
        read = parser.read(files, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise SourceError(f"pip's settings: {error}") from error
    if len(read) < len(files):
        raise SourceError(f"pip's settings {set(files) - set(read)} are not readable")
    for section in ("global", "download"):
        if parser.has_section(section):
            known |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    for option in _OPTIONS:
        if value := os.environ.get(f"PIP_{option.upper().replace('-', '_')}"):
            known[option] = value
    return {option: value for option, value in known.items() if value}


def _pip_files() -> list[str]:
    """pip's configuration files, those that hold over others last; none without pip.

    Only ``pip config debug`` tells them: ``get`` looks at one file, and ``list`` leaves open
    which of several values of an option holds.
    """
    if importlib.util.find_spec("pip") is None:
        return []
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "debug"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SourceError(f"pip does not tell its settings: {done.stderr.strip()[-500:]}")
    files: dict[str, list[str]] = {}
    group = ""
    for line in done.stdout.splitlines():
        if title := re.fullmatch(r"(\w+):", line):
            group = title[1]
        elif file := re.fullmatch(r"  (\S.*), exists: True", line):
            files.setdefault(group, []).append(file[1])
    if files.get("env") == [os.devnull]:  # pip's way to have all of them left out
        return []
    return [file for group in ("global", "user", "site", "env") for file in files.get(group, [])]


def _folded(project: str) -> str:
    """A project's name as it stands in the addresses of an index."""
    return re.sub(r"[-_.]+", "-", project).lower()


def _listed(place: Place, name: str, patience: Patience) -> Iterator[str]:
    """The addresses under which a page, or a folder, has the file."""
    base, text = _local_page(place, name) if _is_local(place) else _web_page(place, patience)
    if text is None:
        yield base
        return
    asked = urlsplit(place.address)
    for link in _links(base, text):
        target = urlsplit(link)
        if PurePosixPath(unquote(target.path)).name != name:
            continue
        if target.scheme in ("http", "https"):
            if (target.scheme, target.netloc) == (asked.scheme, asked.netloc.rpartition("@")[2]):
                target = target._replace(netloc=asked.netloc)  # with its user and password
            yield target.geturl()
        elif target.scheme == "file" and _is_local(place):  # no web page leads into this machine
            yield link


def _is_local(place: Place) -> bool:
    return not place.address.startswith(("http://", "https://"))


def _local_page(place: Place, name: str) -> tuple[str, str | None]:
    """Address and text of a page on disk, or the path of the file itself and None."""
    path = Path(place.address).expanduser()
    if path.name == name and path.is_file():
        return str(path), None
    if (path / name).is_file():
        return str(path / name), None
    page = path / "index.html" if path.is_dir() else path
    try:
        return page.resolve().as_uri(), page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"has no file {name}" if path.is_dir() else str(error)) from error


def _web_page(place: Place, patience: Patience) -> tuple[str, str | None]:
    """Address (after redirects) and text of a page."""
    deadline = time.monotonic() + patience.total_s

    def attempt(client: httpx.Client) -> tuple[str, str | None]:
        with client.stream("GET", place.address) as response:
            refuse_errors(response)
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _PAGE_LIMIT:
                    raise SourceError(f"the page is larger than {_PAGE_LIMIT:,} bytes")
                if time.monotonic() > deadline:
                    raise SourceError("the page was not whole in the time allowed")
            text = content.decode(response.charset_encoding or "utf-8", "replace")
            return str(response.url), text

    return patiently(attempt, patience, place.options)


class _Anchors(HTMLParser):
    """Targets of a page's links, in order."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if target and tag == "base":
            self.base = urljoin(self.base, target)
        elif target and tag == "a":
            self.found.append(urljoin(self.base, target))


def _links(base: str, text: str) -> list[str]:
    """Every link of a simple index's page, whole and without its fragment; HTML or JSON."""
    if text.lstrip().startswith("{"):
        try:
            found = [urljoin(base, str(file["url"])) for file in json.loads(text)["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"no page of a package index: {error!r}") from error
    else:
        anchors = _Anchors(base)
        anchors.feed(text)
        found = anchors.found
    return [urldefrag(link).url for link in found]
