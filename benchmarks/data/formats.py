"""Readers of every format a card may name, all to the same parts.

A reader gets the folder of unpacked files and the source's description, and returns a
:class:`Parts` for each split under one numbering of labels.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.cards import Part, Source
from benchmarks.data.errors import DataError, FormatError
from benchmarks.data.split import Tokens
from benchmarks.data.xc import read_xc


@dataclass(frozen=True)
class Parts:
    """What the files say of one split, before any features are made from texts."""

    labels: sparse.csr_matrix
    bow: sparse.csr_matrix | None = None
    texts: list[str] | None = None
    tokens: Tokens | None = None


@dataclass(frozen=True)
class Content:
    """All splits of a source, and the name of each label where known."""

    splits: dict[str, Parts]
    label_names: list[str] | None = None


def read(source: Source, root: Path) -> Content:
    """Read a source's files below ``root``."""
    parts = {"train": source.train, "test": source.test, "dev": source.dev}
    named = {name: part for name, part in parts.items() if part is not None}
    missing = {"train", "test"} - set(named)
    if missing:
        raise DataError(f"format {source.format} needs {' and '.join(sorted(missing))}")
    content = READERS[source.format](named, source.options, root)
    if "label_names" in source.options:
        names = _label_names(find(root, source.options["label_names"]), content)
        content = replace(content, label_names=names)
    return content


def find(root: Path, pattern: str) -> Path:
    """The one file or folder that a card's path or pattern means."""
    if Path(pattern).is_absolute():
        matches = [Path(pattern)] if Path(pattern).exists() else []
    elif "*" in pattern:
        # Archives made on a Mac carry shadow files under __MACOSX.
        matches = [p for p in root.glob(pattern) if "__MACOSX" not in p.parts]
    else:
        matches = [root / pattern] if (root / pattern).exists() else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        found = ", ".join(str(p.relative_to(root)) for p in sorted(matches))
        raise DataError(f"{pattern!r} means more than one file: {found}")
    there = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())[:20]
    listing = f" Found are: {', '.join(there)}" if "*" in pattern or not root.samefile(".") else ""
    raise DataError(f"there is no file {pattern!r} in {root}; correct the card.{listing}")


# --- matrices ---------------------------------------------------------------------------------


def _read_xc(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    return _xc_like(parts, options, root, first_feature=0)


def _read_libsvm(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    return _xc_like(parts, options, root, first_feature=1)


def _xc_like(
    parts: Mapping[str, Part], options: Mapping[str, Any], root: Path, first_feature: int
) -> Content:
    reading = {
        "first_feature": options.get("first_feature", first_feature),
        "first_label": options.get("first_label", 0),
        "repeated": options.get("repeated", "error"),
    }
    splits = {}
    for name, part in parts.items():
        split = read_xc(find(root, _one_path(name, part)), **reading)
        splits[name] = Parts(split.labels, bow=split.inputs.bow)
    n_features = max(p.bow.shape[1] for p in splits.values() if p.bow is not None)
    n_labels = max([options.get("n_labels", 0), *(p.labels.shape[1] for p in splits.values())])
    for part in splits.values():
        # Files without a header know only the ids they use.
        assert part.bow is not None
        part.bow.resize((part.bow.shape[0], n_features))
        part.labels.resize((part.labels.shape[0], n_labels))
    if "aligned_texts" in options:
        splits = {
            name: _with_aligned_texts(name, part, options, root) for name, part in splits.items()
        }
    return Content(splits)


def _with_aligned_texts(name: str, part: Parts, options: Mapping[str, Any], root: Path) -> Parts:
    """Texts of the same rows; their labels must be the matrix's, row by row."""
    path = find(root, options["aligned_texts"][name])
    documents = list(_documents(path, options, None))
    if len(documents) != part.labels.shape[0]:
        raise DataError(f"{path} has {len(documents)} texts for {part.labels.shape[0]} rows")
    for row, (line, _, labels) in enumerate(documents):
        start, end = part.labels.indptr[row : row + 2]
        if sorted(map(int, labels)) != part.labels.indices[start:end].tolist():
            raise FormatError(
                path,
                line,
                f"labels {sorted(map(int, labels))} are not those of row {row} of the features",
                "Texts and features must be of the same documents in the same order.",
            )
    return replace(part, texts=[text for _, text, _ in documents])


def _read_npz(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    splits = {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not {"features", "labels"} <= set(part):
            raise DataError(f"{name}: format npz needs the keys features and labels")
        bow, labels = (_load_npz(find(root, part[key])) for key in ("features", "labels"))
        if bow.shape[0] != labels.shape[0]:
            raise DataError(f"{name}: {bow.shape[0]} rows of features, {labels.shape[0]} of labels")
        labels.data[:] = 1
        texts = None
        if "texts" in part:
            texts = _lines(find(root, part["texts"]))
            if len(texts) != bow.shape[0]:
                raise DataError(f"{name}: {len(texts)} texts for {bow.shape[0]} rows of features")
        splits[name] = Parts(labels, bow=bow, texts=texts)
    return _same_width(splits)


def _load_npz(path: Path) -> sparse.csr_matrix:
    try:
        matrix = sparse.csr_matrix(sparse.load_npz(path), dtype=np.float32)
    except (ValueError, KeyError, OSError) as error:
        raise DataError(f"{path}: no sparse matrix ({error}); write it by scipy.sparse.save_npz")
    if not np.isfinite(matrix.data).all():
        row = int(np.searchsorted(matrix.indptr, np.argmin(np.isfinite(matrix.data)), "right")) - 1
        raise DataError(f"{path}: row {row} holds NaN or infinity; replace it by a number")
    matrix.eliminate_zeros()
    matrix.sum_duplicates()
    return matrix


def _same_width(splits: dict[str, Parts]) -> Content:
    for what in ("bow", "labels"):
        widths = {name: getattr(p, what).shape[1] for name, p in splits.items()}
        if len(set(widths.values())) > 1:
            raise DataError(f"the splits disagree on the number of columns of {what}: {widths}")
    return Content(splits)


# --- texts ------------------------------------------------------------------------------------


def _read_jsonl(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    texts: dict[str, list[str]] = {}
    labels: dict[str, list[list[str]]] = {}
    for name, part in parts.items():
        where = options.get("where", {}).get(name)
        documents = list(_documents(find(root, _one_path(name, part)), options, where))
        texts[name] = [text for _, text, _ in documents]
        labels[name] = [own for _, _, own in documents]
    if options.get("labels_in_both"):
        shared = set(_flat(labels["train"])) & set(_flat(labels["test"]))
        for name in parts:
            kept = [[label for label in own if label in shared] for own in labels[name]]
            keep = [bool(own) for own in kept]
            texts[name] = [text for text, k in zip(texts[name], keep, strict=True) if k]
            labels[name] = [own for own, k in zip(kept, keep, strict=True) if k]
    if options.get("label_ids"):
        return _by_number(texts, labels, options)
    return _by_name(texts, labels)


def _documents(
    path: Path, options: Mapping[str, Any], where: Mapping[str, Any] | None
) -> Iterable[tuple[int, str, list[str]]]:
    """Line, text and labels of each document of a JSON-lines file or a folder of JSON files."""
    text_fields = options.get("text_fields", ["text"])
    label_field = options.get("label_field", "labels")
    for file, line, document in _json_documents(path):
        if not isinstance(document, dict):
            raise FormatError(
                file, line, "no JSON object", 'A line is {"text": ..., "labels": []}.'
            )
        for key in (*text_fields, label_field):
            if key not in document:
                raise FormatError(
                    file,
                    line,
                    f"the key {key!r} is missing (there are {', '.join(document)})",
                    "Name the keys in options: text_fields and label_field of the card.",
                )
        labels = document[label_field]
        if not isinstance(labels, list) or not all(isinstance(v, str | int) for v in labels):
            raise FormatError(
                file, line, f"{label_field} is not a list of names or numbers", "Write a list."
            )
        if where is None or all(document.get(key) == value for key, value in where.items()):
            text = "\n".join(_plain_text(document[key]) for key in text_fields)
            yield line, text, list(dict.fromkeys(map(str, labels)))


def _json_documents(path: Path) -> Iterable[tuple[Path, int, Any]]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} holds no .json files")
    for file in files:
        if path.is_dir():
            lines: Iterable[str] = [file.read_text(encoding="utf-8")]
        else:
            lines = _open_text(file)
        empty = True
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            empty = False
            try:
                yield file, number, json.loads(line)
            except json.JSONDecodeError as error:
                raise FormatError(
                    file, number, f"not JSON ({error})", "Write one JSON object on each line."
                ) from error
        if empty:
            raise FormatError(file, None, "the file is empty", "Fetch or write it again.")


def _open_text(path: Path) -> Iterable[str]:
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        number = 0
        try:
            for number, line in enumerate(stream, 1):  # noqa: B007 - the error names the line
                yield line
        except UnicodeDecodeError as error:
            raise FormatError(path, number + 1, f"not UTF-8 ({error})", "Convert it.") from error
        except (EOFError, gzip.BadGzipFile) as error:
            raise FormatError(
                path, None, f"the gzip stream is cut or damaged ({error})", "Fetch it again."
            ) from error


def _plain_text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_plain_text, value))
    return "" if value is None else str(value)


def _read_lines(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    """Texts and space-separated labels in two files, line by line (AttentionXML's layout)."""
    texts, labels = {}, {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not {"texts", "labels"} <= set(part):
            raise DataError(f"{name}: format lines needs the keys texts and labels")
        texts[name] = _lines(find(root, part["texts"]))
        labels[name] = [line.split() for line in _lines(find(root, part["labels"]))]
        if len(texts[name]) != len(labels[name]):
            raise DataError(
                f"{name}: {len(texts[name])} lines of text, {len(labels[name])} of labels"
            )
    return _by_name(texts, labels)


def _lines(path: Path) -> list[str]:
    return [line.rstrip("\r\n") for line in _open_text(path)]


def _flat(labels: Iterable[Iterable[str]]) -> Iterable[str]:
    return (label for own in labels for label in own)


def _by_name(texts: Mapping[str, list[str]], labels: Mapping[str, list[list[str]]]) -> Content:
    """Columns are the labels that occur in any split, in the order of their names."""
    names = sorted({label for rows in labels.values() for label in _flat(rows)})
    column = {name: i for i, name in enumerate(names)}
    splits = {
        split: Parts(_matrix([[column[v] for v in own] for own in rows], len(names)))
        for split, rows in labels.items()
    }
    return Content({s: replace(p, texts=texts[s]) for s, p in splits.items()}, names)


def _by_number(
    texts: Mapping[str, list[str]],
    labels: Mapping[str, list[list[str]]],
    options: Mapping[str, Any],
) -> Content:
    try:
        numbered = {s: [[int(v) for v in own] for own in rows] for s, rows in labels.items()}
    except ValueError as error:
        raise DataError(f"label_ids is set, but a label is no number: {error}") from error
    largest = max((v for rows in numbered.values() for own in rows for v in own), default=-1)
    width = options.get("n_labels", largest + 1)
    if largest >= width:
        raise DataError(f"label {largest} does not fit n_labels: {width}; ids count from 0")
    return Content({s: Parts(_matrix(r, width), texts=texts[s]) for s, r in numbered.items()})


def _matrix(rows: Sequence[Sequence[int]], width: int) -> sparse.csr_matrix:
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in rows], dtype=np.int64)])
    indices = np.fromiter((v for own in rows for v in own), np.int64, count=int(indptr[-1]))
    ones = np.ones(len(indices), np.float32)
    matrix = sparse.csr_matrix((ones, indices, indptr), shape=(len(rows), width))
    matrix.sort_indices()
    return matrix


# --- formats of single datasets ---------------------------------------------------------------


def _read_token_arrays(
    parts: Mapping[str, Part], options: Mapping[str, Any], root: Path
) -> Content:
    """Zero-padded word ids and dense labels in ``.npy`` (LSAN's AAPD).

    Ids index the rows of a text file of word vectors; 0 is padding.
    """
    vocabulary = ["<PAD>", "<UNK>"]
    with find(root, options["vocabulary"]).open(encoding="utf-8") as stream:
        vocabulary += [line.split(" ", 1)[0] for line in stream if line.strip()]
    splits = {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not {"tokens", "labels"} <= set(part):
            raise DataError(f"{name}: format token-arrays needs the keys tokens and labels")
        padded, dense = (np.load(find(root, part[key])) for key in ("tokens", "labels"))
        real = padded > 0
        indptr = np.concatenate([[0], np.cumsum(real.sum(axis=1))]).astype(np.int64)
        ids = padded[real].astype(np.int32) + 1  # word i moves behind <PAD> and <UNK>
        if len(ids) and ids.max() >= len(vocabulary):
            raise DataError(f"{name}: word id {ids.max() - 1} is not in the vocabulary")
        labels = sparse.csr_matrix(dense != 0, dtype=np.float32)
        splits[name] = Parts(labels, tokens=Tokens(indptr, ids, vocabulary))
    return Content(splits)


def _read_rcv1(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    """LYRL2004 vectors (``document  feature:value ...``) and topics (``topic document 1``)."""
    topics: dict[int, list[str]] = {}
    path = find(root, options["topics"])
    for number, line in enumerate(_open_text(path), 1):
        fields = line.split()
        if len(fields) != 3 or not fields[1].isdigit():
            raise FormatError(path, number, f"not 'topic document 1': {line!r}", "Fetch it again.")
        topics.setdefault(int(fields[1]), []).append(fields[0])
    names = sorted({topic for own in topics.values() for topic in own})
    column = {name: i for i, name in enumerate(names)}
    splits = {}
    for name, part in parts.items():
        # The vectors are in LIBSVM's format with the document's number for a label.
        pieces = [
            read_xc(find(root, file), first_feature=1)
            for file in (part if isinstance(part, list) else [_one_path(name, part)])
        ]
        documents = np.concatenate([piece.labels.indices for piece in pieces])
        width = max(_bow(piece.inputs.bow).shape[1] for piece in pieces)
        bows = [_bow(piece.inputs.bow) for piece in pieces]
        for bow in bows:
            bow.resize((bow.shape[0], width))
        rows = [[column[t] for t in topics.get(int(d), [])] for d in documents]
        splits[name] = Parts(_matrix(rows, len(names)), bow=sparse.vstack(bows, format="csr"))
    width = max(_bow(p.bow).shape[1] for p in splits.values())
    for split in splits.values():
        _bow(split.bow).resize((split.labels.shape[0], width))
    return Content(splits, names)


def _bow(matrix: sparse.csr_matrix | None) -> sparse.csr_matrix:
    assert matrix is not None
    return matrix


def _one_path(name: str, part: Part) -> str:
    if not isinstance(part, str):
        raise DataError(f"{name}: this format needs one path, not {part!r}")
    return part


def _label_names(path: Path, content: Content) -> list[str]:
    """Readable names by column, from a list by column or a JSON object by label."""
    width = content.splits["train"].labels.shape[1]
    if path.suffix == ".json":
        concepts = json.loads(path.read_text(encoding="utf-8"))
        keys = content.label_names or [str(i) for i in range(width)]
        entries = [concepts.get(key, key) for key in keys]
        return [e.get("label", k) if isinstance(e, dict) else str(e) for e, k in zip(entries, keys)]
    names = _lines(path)
    if len(names) != width:
        raise DataError(f"{path} names {len(names)} labels; there are {width}")
    return names


READERS: dict[str, Callable[[Mapping[str, Part], Mapping[str, Any], Path], Content]] = {
    "xc": _read_xc,
    "libsvm": _read_libsvm,
    "npz": _read_npz,
    "jsonl": _read_jsonl,
    "lines": _read_lines,
    "token-arrays": _read_token_arrays,
    "rcv1": _read_rcv1,
}
