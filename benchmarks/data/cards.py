"""Dataset cards: what is known of each dataset, as data.

The project's own cards are ``benchmarks/datasets/*.yaml`` and, of what is not a dataset (word
vectors, tokenisers), ``benchmarks/resources/*.yaml``; a user's come from the ``define``
section of the configuration and are checked against the same schema.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.common.schema import InvalidDocumentError, load_yaml, validate
from benchmarks.data.errors import UnknownNameError

FOLDERS = tuple(Path(__file__).parents[1] / room for room in ("datasets", "resources"))
SCHEMA = Path(__file__).parent / "dataset.schema.yaml"
PATH_OPTIONS = ("label_names", "aligned_texts", "vocabulary", "topics", "vectors")
DIGEST_BYTES = 64 * 2**20
"""Smaller local files are digested whole, which takes a tenth of a second at most."""
DEFAULT_TFIDF = {"sublinear_tf": True, "max_features": 200_000}

Part = str | list[str] | dict[str, str]


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch, what it must be, and where it is available (best first)."""

    name: str
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    git_blob: str | None = None
    origins: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    """What to unpack of an archive; everything if empty."""

    @property
    def checksum_known(self) -> bool:
        """Whether the card can tell the right file from a wrong one."""
        return any((self.sha256, self.md5, self.git_blob))


@dataclass(frozen=True)
class Source:
    """All that one origin of a dataset needs: files to fetch and how to read them."""

    id: str
    files: tuple[RemoteFile, ...]
    format: str
    train: Part | None = None
    test: Part | None = None
    dev: Part | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    verify: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Embedding:
    """The dataset whose texts a sentence encoder makes features of, and the encoder."""

    of: str
    encoder: str
    max_tokens: int
    """Word pieces read per text. MiniLM was trained on 128, and time grows with them."""

    def digest(self) -> str:
        """Changes when the vectors would; an encoder in a folder counts with its files."""
        about = [self.of, self.encoder, self.max_tokens, _stamps(Path(self.encoder))]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


@dataclass(frozen=True)
class Taken:
    """A number of documents drawn from each split of another dataset."""

    of: str
    train: int
    test: int
    seed: int

    def digest(self) -> str:
        """Changes when other documents would be drawn."""
        return json.dumps([self.of, self.train, self.test, self.seed])


@dataclass(frozen=True)
class Encoder:
    """Where a pretrained encoder's files are: a folder, or one inside an installed package."""

    folder: str
    package: str | None = None
    install: str = "saving it there"
    """How to get it: the command that installs the package."""

    def path(self) -> Path | None:
        """The folder of the files; None where the package is not installed."""
        if self.package is None:
            return Path(self.folder)
        spec = importlib.util.find_spec(self.package)
        return Path(spec.origin).parent / self.folder if spec and spec.origin else None


@dataclass(frozen=True)
class Card:
    """A checked dataset card."""

    name: str
    kind: str
    A: float
    B: float
    counts: Mapping[str, int]
    sources: tuple[Source, ...]
    facts: Mapping[str, Any]
    """Those of title, homepage, licence, citation and notes that the card gives."""
    subset_of: str | None = None
    unavailable: str | None = None
    reference: Mapping[str, float] = field(default_factory=dict)
    """Averages as the publisher states them."""
    label_matrices: Mapping[str, str] | None = None
    """Where the labels alone are: ``of`` (a dataset of files), ``train``, ``test``."""
    embedding: Embedding | None = None
    """Of another dataset's texts, instead of sources."""
    taken: Taken | None = None
    """A part of another dataset, instead of sources."""
    encoder: Encoder | None = None
    """Of a pretrained encoder, instead of sources."""

    @property
    def made_of(self) -> str | None:
        """The dataset that this one is derived from; None where it has sources of its own."""
        derived = self.embedding or self.taken
        return None if derived is None else derived.of

    def digest(self) -> str:
        """Changes when what is prepared from the card would; notes and titles do not count.

        Local files count with what is in them, so that edited data are prepared again.
        """
        about: list[Any] = [self.name, self.kind, self.subset_of, self.A, self.B, self.counts]
        derived = self.embedding or self.taken
        if derived is not None:
            about.append(derived.digest())
        if self.encoder is not None:
            folder = self.encoder.path()
            about.append([str(folder), _stamps(folder) if folder else []])
        for source in self.sources:
            about.append([source.format, source.train, source.test, source.dev])
            about.append([dict(source.options), dict(source.counts)])
            about.append([f.sha256 or f.md5 or f.git_blob or f.name for f in source.files])
            about.append([_stamp(path) for path in local_files(source)])
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def local_files(source: Source) -> list[Path]:
    """Every file of this machine that a source reads, sorted; what it downloads is left out."""
    parts: list[Any] = [source.train, source.test, source.dev]
    parts += [source.options.get(key) for key in PATH_OPTIONS]
    named: list[str] = []
    for part in filter(None, parts):
        several = part.values() if isinstance(part, dict) else part
        named += [part] if isinstance(part, str) else several
    found: set[Path] = set()
    for name in named:
        path = Path(name)
        if source.files and not path.is_absolute():
            continue  # a member of a download
        matches = Path().glob(name) if "*" in name and not path.is_absolute() else [path]
        for match in matches:
            found.update(match.glob("*.json") if match.is_dir() else [match])
    return sorted(found)


def _stamps(folder: Path) -> list[list[Any]]:
    return [_stamp(path) for path in sorted(folder.rglob("*")) if path.is_file()]


def _stamp(path: Path) -> list[Any]:
    """What changes with a file's content: a digest of it or, of a large file, its inode's state.

    Size and time of change alone would miss a file that ``rsync -t`` or ``cp -p`` replaced by one
    of equal size. The time of the inode's last change cannot be set by programs, but a copy on
    another disk has another one: large files that were moved are prepared again.
    """
    if not path.is_file():
        return [str(path), None]
    status = path.stat()
    if status.st_size < DIGEST_BYTES:
        return [str(path), hashlib.sha256(path.read_bytes()).hexdigest()]
    return [str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def all_cards(user: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Card]:
    """Every card by name: the project's, and the user's beside them."""
    cards = dict(_own_cards())
    for name, document in (user or {}).items():
        cards[name] = user_card(name, document)
    for name in user or {}:
        _check_derived(cards[name], cards)
    return cards


def _check_derived(card: Card, cards: Mapping[str, Card]) -> None:
    """Vectors are of texts, and a part is of a dataset with sources: so nothing is circular."""
    of = cards.get(card.made_of) if card.made_of is not None else None
    if of is None:
        return
    if card.embedding is not None and of.embedding is not None:
        itself = "itself" if of.name == card.name else f"{of.name}, which is made of vectors too"
        raise InvalidDocumentError(
            f"define.datasets.{card.name}.embed.of: {itself}; name a dataset that has texts"
        )
    if card.taken is not None and of.made_of is not None:
        itself = "itself" if of.name == card.name else f"{of.name}, which is made of another"
        raise InvalidDocumentError(
            f"define.datasets.{card.name}.take.of: {itself}; name a dataset with its own sources"
        )


def load_card(name: str, user: Mapping[str, Mapping[str, Any]] | None = None) -> Card:
    """The card of one dataset; an unknown name gives an error with the nearest known ones."""
    if user and name in user:
        return user_card(name, user[name])
    cards = _own_cards()
    if name not in cards:
        raise unknown_name(name, [*(user or {}), *cards])
    return cards[name]


def unknown_name(name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown dataset, with the nearest known names."""
    names = sorted(known, key=str.lower)
    folded = {other.lower(): other for other in names}
    near = [folded[n] for n in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return UnknownNameError(f"no dataset {name!r}.{hint} Known are: {', '.join(names)}")


def user_card(name: str, document: Mapping[str, Any]) -> Card:
    """A card from the user's configuration; its paths are relative to the working folder.

    A name that is taken is an error: results of other data would pass as that dataset's.
    """
    from benchmarks.data.synthetic import NAMES

    if name in NAMES or name in _own_cards():
        raise InvalidDocumentError(
            f"define.datasets.{name}: there is a built-in dataset or resource of this name; "
            "choose another"
        )
    return _card({"name": name, **document}, f"the card of dataset {name!r}")


@lru_cache(maxsize=1)
def _own_cards() -> dict[str, Card]:
    cards = {}
    for path in sorted(path for folder in FOLDERS for path in folder.glob("*.yaml")):
        document = load_yaml(path)
        card = _card(document, str(path))
        if card.name != path.stem:
            raise ValueError(f"{path}: the card's name is {card.name!r}, the file's {path.stem!r}")
        cards[card.name] = card
    return cards


def _check_patterns(checked: Mapping[str, Any], where: str) -> None:
    """A regular expression that cannot be compiled is found before any text is read."""
    several = [checked.get("options"), *(s.get("options") for s in checked.get("sources", []))]
    for options in several:
        tfidf = (options or {}).get("tfidf")
        pattern = tfidf.get("token_pattern") if isinstance(tfidf, dict) else None
        try:
            groups = 0 if pattern is None else re.compile(pattern).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidDocumentError(
                f"{where} is not valid:\n  options.tfidf.token_pattern: {pattern!r} is no regular "
                f"expression ({error})"
            ) from error
        if groups > 1:
            raise InvalidDocumentError(
                f"{where} is not valid:\n  options.tfidf.token_pattern: {pattern!r} has {groups} "
                "groups; one at most can say what the token is"
            )


def _card(document: Mapping[str, Any], where: str) -> Card:
    checked = validate(dict(document), SCHEMA, where)
    _check_patterns(checked, where)
    facts = {
        key: checked[key]
        for key in ("title", "homepage", "licence", "citation", "notes")
        if checked.get(key)
    }
    if "format" in checked:
        own = {k: checked[k] for k in ("format", "train", "test", "dev", "options") if k in checked}
        sources = [_source({"id": "local", "files": [], **own})]
    else:
        sources = [_source(entry) for entry in checked.get("sources", [])]
    return Card(
        name=checked["name"],
        kind=checked["kind"],
        A=checked["propensity"]["A"],
        B=checked["propensity"]["B"],
        counts=checked["counts"],
        sources=tuple(sources),
        facts=facts,
        subset_of=checked.get("subset_of"),
        unavailable=checked.get("unavailable"),
        reference=checked["reference"],
        label_matrices=checked.get("label_matrices"),
        embedding=Embedding(**checked["embed"]) if "embed" in checked else None,
        taken=Taken(**checked["take"]) if "take" in checked else None,
        encoder=Encoder(**checked["encoder"]) if "encoder" in checked else None,
    )


def _source(entry: Mapping[str, Any]) -> Source:
    files = tuple(
        RemoteFile(
            **{key: value for key, value in file.items() if key not in ("from", "members")},
            origins=tuple(file.get("from", ())),
            members=tuple(file.get("members", ())),
        )
        for file in entry["files"]
    )
    rest = {key: value for key, value in entry.items() if key != "files"}
    rest.setdefault("id", entry["format"])
    return Source(files=files, **rest)
