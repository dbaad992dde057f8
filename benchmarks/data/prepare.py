"""From a card to a prepared folder: fetch, verify, unpack, read, check the counts, write."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.common.atomic import atomic_folder, temporary_folder, write_text
from benchmarks.common.digests import DamagedError
from benchmarks.common.locks import exclusive
from benchmarks.data import facts, formats, vectors
from benchmarks.data.cards import (
    DEFAULT_TFIDF,
    Card,
    RemoteFile,
    Source,
    all_cards,
    load_card,
    unknown_name,
)
from benchmarks.data.content import find
from benchmarks.data.embed import embedded, forget, locate
from benchmarks.data.errors import DataError, UnavailableError
from benchmarks.data.fetch import Fetched, Patience, fetch, git_blob, record
from benchmarks.data.prepared import (
    SPLITS,
    open_prepared,
    read_meta,
    write,
    write_meta,
    write_unavailable,
)
from benchmarks.data.split import Inputs, Split
from benchmarks.data.take import taken
from benchmarks.data.text import tokenise
from benchmarks.data.unpack import unpack
from benchmarks.data.verify import check_sizes

MIRROR_VARIABLE = "TAILTABLES_MIRROR"
DATA_FOLDER = Path("results/data")
VERSION = 2
"""Raise it when the same card would give other arrays or facts: all is then prepared again."""


def configured_mirror(setting: str | None = None) -> str | None:
    """The mirror: what the configuration says, else the environment variable, else none."""
    return setting or os.environ.get(MIRROR_VARIABLE) or None


def ensure(
    name: str,
    root: str | Path = DATA_FOLDER,
    mirror: str | None = None,
    cards: Mapping[str, Mapping[str, Any]] | None = None,
    patience: Patience | None = None,
    code: str | None = None,
) -> Path:
    """The prepared folder of a dataset, made now if it is not there or its card has changed.

    ``cards`` are the user's own cards by name. Synthetic corpora are written like any other.
    ``code`` is a digest of the code that prepares: another one than the folder was made with
    has it made again.
    """
    from benchmarks.data import synthetic

    folder = Path(root) / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    is_synthetic = name in synthetic.NAMES and name not in (cards or {})
    with exclusive(folder.parent / f".{name}.lock"), _made_with(code, folder):
        if is_synthetic:
            wanted = f"{VERSION} {name}"
            if not _is_ready(folder, wanted):
                train, test = synthetic.generate(name)
                about = {**facts.count(train, test), **train.meta, "prepared_from": wanted}
                write(folder, train, test, about)
            return folder
        if name not in all_cards(cards):
            raise unknown_name(name, [*synthetic.NAMES, *all_cards(cards)])
        card = load_card(name, cards)
        if card.made_of is not None:
            _derive(card, ensure(card.made_of, root, mirror, cards, patience), folder)
        elif not _is_ready(folder, f"{VERSION} {card.digest()}"):
            prepare(card, folder, configured_mirror(mirror), patience=patience)
    return folder


def ensure_or_record(
    name: str,
    root: str | Path = DATA_FOLDER,
    mirror: str | None = None,
    cards: Mapping[str, Mapping[str, Any]] | None = None,
    code: str | None = None,
) -> None:
    """:func:`ensure`, but a dataset that is missing or wrong leaves a record of the reason.

    Its cells say so, and those of other datasets run.
    """
    try:
        ensure(name, root, mirror, cards, code=code)
    except DataError as error:
        print(f"{name}: {error}")
        write_unavailable(Path(root) / name, name, str(error))


def _is_ready(folder: Path, prepared_from: str) -> bool:
    if not (folder / "meta.json").exists():
        return False
    try:
        meta = read_meta(folder)
        check_sizes(folder, meta)
    except DamagedError:  # or of another version: made again
        return False
    return bool(meta.get("prepared_from") == prepared_from)


def prepare(
    card: Card,
    folder: str | Path,
    mirror: str | None = None,
    cache: str | Path | None = None,
    patience: Patience | None = None,
) -> dict[str, Any]:
    """Prepare one dataset and return its ``meta.json``.

    Sources are tried in the card's order, those that a local mirror holds whole before others.
    The folder appears only if every count is right.
    """
    folder = Path(folder)
    cache = Path(cache) if cache is not None else folder.parent.parent / "downloads"
    if card.unavailable:
        raise UnavailableError(f"{card.name} is unavailable: {card.unavailable}")
    if card.encoder is not None:
        return _write_encoder(card, folder)
    failures: list[DataError] = []
    for source in _by_nearness(card.sources, mirror):
        try:
            return _prepare_from(source, card, folder, mirror, cache, patience)
        except DataError as error:
            failures.append(error)
    reasons = "\n".join(str(error) for error in failures)
    kind = UnavailableError if all(isinstance(e, UnavailableError) for e in failures) else DataError
    raise kind(f"{card.name}: {reasons}")


def status(
    name: str,
    root: str | Path = DATA_FOLDER,
    mirror: str | None = None,
    cards: Mapping[str, Mapping[str, Any]] | None = None,
    patience: Patience | None = None,
) -> dict[str, Any]:
    """Prepare a dataset if it is available; returns what is there, or what is missing.

    Keys: dataset, status (``ready``, ``unavailable`` or ``error``), reason, counts.
    """
    try:
        folder = ensure(name, root, mirror, cards, patience)
    except UnavailableError as error:
        return {"dataset": name, "status": "unavailable", "reason": str(error), "counts": {}}
    except (DataError, OSError) as error:
        return {"dataset": name, "status": "error", "reason": str(error), "counts": {}}
    meta = read_meta(folder)
    shown = ("n_train", "n_dev", "n_test", "n_features", "n_labels", "n_words", "dimensions")
    counts = {key: meta[key] for key in shown if meta.get(key) is not None}
    return {"dataset": name, "status": "ready", "reason": "", "counts": counts}


def status_table(records: list[dict[str, Any]]) -> str:
    """What is ready, then what is missing and how to get it, as text."""
    lines = []
    for record_ in sorted(records, key=lambda r: (r["status"] != "ready", r["dataset"].lower())):
        counts = ", ".join(f"{key} {value:,}" for key, value in record_["counts"].items())
        lines.append(f"{record_['dataset']:<22} {record_['status']:<12} {counts}".rstrip())
        lines.extend(f"    {line}" for line in record_["reason"].splitlines())
    ready = sum(r["status"] == "ready" for r in records)
    return "\n".join([*lines, f"{ready} of {len(records)} datasets are ready"])


def _by_nearness(sources: tuple[Source, ...], mirror: str | None) -> list[Source]:
    if not mirror or mirror.startswith(("http://", "https://")):
        return list(sources)
    held = [all((Path(mirror) / f.name).exists() for f in s.files) for s in sources]
    return [s for s, h in zip(sources, held, strict=True) if h] + [
        s for s, h in zip(sources, held, strict=True) if not h
    ]


def _prepare_from(
    source: Source,
    card: Card,
    folder: Path,
    mirror: str | None,
    cache: Path,
    patience: Patience | None,
) -> dict[str, Any]:
    fetched = [(file, fetch(file, cache, mirror, patience)) for file in source.files]
    if not source.files:
        return _write(source, card, folder, Path.cwd(), fetched)
    with temporary_folder(cache, "unpack") as root:
        try:
            for file, found in fetched:
                unpack(found.path, root, members=file.members or None)
            if "parts" in source.options:
                root = _joined(root, source.options["parts"])
            _verify(source, root)
            meta = _write(source, card, folder, root, fetched)
        except DataError:
            _set_aside(fetched, cache)
            raise
    for file, found in fetched:
        record(file, found, cache)
    return meta


def _joined(root: Path, pattern: str) -> Path:
    """A folder with what is in an archive that came in pieces, ``name.zip.001`` and so on."""
    pieces = sorted(root.glob(pattern), key=lambda path: path.name)
    if not pieces:
        raise DataError(f"nothing in the download is named {pattern}")
    archive = root / pieces[0].stem
    with archive.open("xb") as whole:
        for piece in pieces:
            with piece.open("rb") as part:
                shutil.copyfileobj(part, whole)
            piece.unlink()  # a model is large: never held twice
    unpack(archive, root / "joined")
    archive.unlink()
    return root / "joined"


def _set_aside(fetched: list[tuple[RemoteFile, Fetched]], cache: Path) -> None:
    """Rename bad files without a known checksum, so that they are not used again."""
    for file, found in fetched:
        if not file.checksum_known and found.path.parent == cache:
            found.path.replace(cache / f"{file.name}.rejected")


def _verify(source: Source, root: Path) -> None:
    for pattern, wanted in source.verify.items():
        path = find(root, pattern)
        if git_blob(path) != wanted:
            raise DataError(f"{path.relative_to(root)}: its git blob id is not {wanted}")


def _write(
    source: Source,
    card: Card,
    folder: Path,
    root: Path,
    fetched: list[tuple[RemoteFile, Fetched]],
) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": card.name,
        "kind": card.kind,
        "source": f"{source.id}: {', '.join(f.name for f in source.files) or source.train}",
        "files": [{"name": file.name, "sha256": found.sha256} for file, found in fetched],
        "prepared_from": f"{VERSION} {card.digest()}",
        "subset_of": card.subset_of,
        **card.facts,
    }
    wanted = {**card.counts, **source.counts}
    if card.kind == "vectors":
        read = vectors.read_glove if source.format == "glove-text" else vectors.read_npy
        words, values = read(source.options, root)
        _insist(card, {"n_words": len(words), "dimensions": values.shape[1]}, wanted)
        meta = vectors.write_vectors(folder, words, values, about)
    elif card.kind in ("files", "encoder"):
        meta = _write_files(source, card, folder, root, about, wanted)
    else:
        about |= {"A": card.A, "B": card.B}
        train, test, extra, files = _splits(source, root)
        found = facts.count(train, test, extra)
        _insist(card, found, wanted)
        write(folder, train, test, {**about, **found}, extra=extra, files=files)
        meta = read_meta(folder)
    return meta


def _derive(card: Card, of: Path, folder: Path) -> None:
    """Prepare what is made of another dataset, in the folder ``of``, unless it is ready."""
    about = read_meta(of)
    wanted = f"{VERSION} {card.digest()} {about['checksum']}"
    if _is_ready(folder, wanted):
        return
    splits = dict(zip(SPLITS, open_prepared(of), strict=True))
    kept: dict[str, Any] = {key: about[key] for key in ("A", "B", "subset_of") if key in about}
    files: dict[str, str] = {}
    scratch = None
    try:
        if card.embedding is not None:
            number = hashlib.sha256(wanted.encode()).hexdigest()[:16]
            scratch = folder.with_name(f".{card.name}.encoded-{number}")
            made = embedded(splits, card.embedding, scratch)
            source = f"{card.embedding.of}, its texts encoded by {card.embedding.encoder}"
        else:
            assert card.taken is not None
            made = taken(splits, card.taken)
            kept["subset_of"] = card.taken.of
            names = of / "labels.txt"
            files = {names.name: names.read_text("utf-8")} if names.exists() else {}
            source = f"{card.taken.of}, a part drawn by seed {card.taken.seed}"
    except DataError as error:
        raise type(error)(f"{card.name}: {error}") from error
    found = facts.count(made["train"], made["test"])
    _insist(card, found, card.counts)
    own = {"name": card.name, "kind": card.kind, "source": source, "prepared_from": wanted}
    meta = {**own, **kept, **card.facts, **found}
    write(folder, made["train"], made["test"], meta, files=files)
    if scratch is not None:
        forget(scratch)


def _write_encoder(card: Card, folder: Path) -> dict[str, Any]:
    """Leave a ``meta.json`` that says where the encoder's files are, its width checked."""
    files = locate(card)
    found = {"dimensions": _width(files / "config.json")}
    _insist(card, found, card.counts)
    about = {"name": card.name, "kind": card.kind, **card.facts, **found}
    where = {"folder": str(files.absolute()), "prepared_from": f"{VERSION} {card.digest()}"}
    with atomic_folder(folder) as temporary:
        return write_meta(temporary, {**about, **where})


def _width(config: Path) -> int | None:
    """The size of an encoder's hidden states; XLNet has a name of its own for it."""
    known = json.loads(config.read_text(encoding="utf-8"))
    return known.get("hidden_size") or known.get("d_model")


def _insist(card: Card, found: Mapping[str, Any], wanted: Mapping[str, int]) -> None:
    wrong = facts.disagreements(found, wanted)
    if wrong:
        raise DataError(
            f"{card.name} is not the dataset its card describes: {'; '.join(wrong)}. "
            "Another version may be in circulation (see the card's notes)."
        )


def _write_files(
    source: Source,
    card: Card,
    folder: Path,
    root: Path,
    about: Mapping[str, Any],
    wanted: Mapping[str, int],
) -> dict[str, Any]:
    # The archive's top folder is left out: the dataset's name stands for it.
    tops = list(root.iterdir())
    start = tops[0] if len(tops) == 1 and tops[0].is_dir() else root
    found: dict[str, Any] = {}
    if "n_entries" in wanted:
        found["n_entries"] = vectors.count_entries(find(root, source.options["vocabulary"]))
    if card.kind == "encoder":
        found["dimensions"] = _width(find(start, "config.json"))
    _insist(card, found, wanted)
    with atomic_folder(folder) as temporary:
        shutil.copytree(start, temporary, dirs_exist_ok=True)
        return write_meta(temporary, {**about, **found})


def _splits(source: Source, root: Path) -> tuple[Split, Split, dict[str, Split], dict[str, str]]:
    content = formats.read(source, root)
    parts = content.splits
    names = list(parts)  # train first: vocabulary and vectoriser are fitted on it alone
    texts = {name: part.texts for name, part in parts.items()}
    bows: dict[str, sparse.csr_matrix | None] = {name: part.bow for name, part in parts.items()}
    tokens = {name: part.tokens for name, part in parts.items()}
    if all(text is not None for text in texts.values()):
        all_texts = [text for text in texts.values() if text is not None]
        already = bool(source.options.get("tokenised"))
        tokens = dict(zip(names, tokenise(all_texts, already=already), strict=True))
        tfidf = source.options.get("tfidf", DEFAULT_TFIDF)
        if bows["train"] is None and tfidf is not False:
            made = _tfidf(all_texts, tfidf)
            bows = dict(zip(names, made, strict=True))
    splits = {
        name: Split(
            Inputs(bow=bows[name], tokens=tokens[name], texts=texts[name]), parts[name].labels
        )
        for name in names
    }
    files = {}
    if content.label_names is not None:
        # One name per line: line ends within a name would shift the rest.
        files["labels.txt"] = "\n".join(" ".join(n.split()) for n in content.label_names) + "\n"
    train, test = splits.pop("train"), splits.pop("test")
    return train, test, splits, files


def _tfidf(texts: list[list[str]], settings: Mapping[str, Any]) -> list[sparse.csr_matrix]:
    vectoriser = TfidfVectorizer(dtype=np.float32, **settings)
    try:
        first = sparse.csr_matrix(vectoriser.fit_transform(texts[0]))
    except ValueError as error:
        raise DataError(f"no features can be made of the training texts: {error}") from error
    matrices = [first, *(sparse.csr_matrix(vectoriser.transform(more)) for more in texts[1:])]
    for matrix in matrices:
        matrix.sort_indices()
    return matrices


@contextmanager
def _made_with(code: str | None, folder: Path) -> Iterator[None]:
    """Remove a folder that other code made; write a note of the code beside a new one."""
    note = folder / "code.txt"
    if code is not None and note.exists() and note.read_bytes() != code.encode():
        shutil.rmtree(folder)
    yield
    if code is not None and not note.exists():
        write_text(note, code)
