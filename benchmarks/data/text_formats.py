"""Readers of documents with texts: JSON lines, and texts and labels in two files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.data.cards import Part
from benchmarks.data.content import Content, Parts, find, lines, matrix, some_paths
from benchmarks.data.errors import DataError, FormatError
from benchmarks.data.matrices import COLUMN_LIMITS
from benchmarks.data.streams import read_text, text_limit, text_lines, too_much

REMEDY = 'Write one JSON object on each line: {"text": "...", "labels": ["..."]}.'


def read_jsonl(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    """One JSON object per document, its texts and labels under keys that the card names."""
    texts: dict[str, list[str]] = {}
    labels: dict[str, list[list[str]]] = {}
    for name, part in parts.items():
        where = options.get("where", {}).get(name)
        paths = [find(root, path) for path in some_paths(name, part)]
        found = [document for path in paths for document in documents(path, options, where)]
        texts[name] = [text for _, text, _ in found]
        labels[name] = [own for _, _, own in found]
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


def documents(
    path: Path, options: Mapping[str, Any], where: Mapping[str, Any] | None
) -> Iterable[tuple[int, str, list[str]]]:
    """Line, text and labels of each document of a JSON-lines file or a folder of JSON files."""
    text_fields = options.get("text_fields", ["text"])
    label_field = options.get("label_field", "labels")
    room = text_limit()
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
            try:
                text = "\n".join(_plain_text(document[key]) for key in text_fields)
                names = list(dict.fromkeys(map(str, labels)))
                "".join([text, *names]).encode("utf-8")
            except UnicodeEncodeError as error:
                problem = (
                    f"half of a surrogate pair ({error.object[error.start]!a}) is no character"
                )
                remedy = "Write the text as UTF-8, or both halves of the pair."
                raise FormatError(file, line, problem, remedy) from error
            except (ValueError, RecursionError) as error:  # digits without end, lists in lists
                raise FormatError(file, line, f"no text or labels ({error})", REMEDY) from error
            room -= sum(map(sys.getsizeof, (text, names, *names)))
            if room < 0:
                raise too_much(file, line)
            yield line, text, names


def _json_documents(path: Path) -> Iterable[tuple[Path, int, Any]]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} holds no .json files")
    for file in files:
        if path.is_dir():
            content: Iterable[str] = [read_text(file)]
        else:
            content = text_lines(file)
        empty = True
        for number, line in enumerate(content, 1):
            if not line.strip():
                continue
            empty = False
            try:
                yield file, number, json.loads(line)
            except (ValueError, RecursionError) as error:  # also integers of thousands of digits
                raise FormatError(
                    file, number, f"not JSON ({error})", "Write one JSON object on each line."
                ) from error
        if empty:
            raise FormatError(file, None, "the file is empty", "Fetch or write it again.")


def _plain_text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_plain_text, value))
    return "" if value is None else str(value)


def read_lines(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    """Texts and space-separated labels in two files, line by line (AttentionXML's layout)."""
    texts, labels = {}, {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not {"texts", "labels"} <= set(part):
            raise DataError(f"{name}: format lines needs the keys texts and labels")
        texts[name] = lines(find(root, part["texts"]))
        labels[name] = [line.split() for line in lines(find(root, part["labels"]))]
        if len(texts[name]) != len(labels[name]):
            raise DataError(
                f"{name}: {len(texts[name])} lines of text, {len(labels[name])} of labels"
            )
    return _by_name(texts, labels)


def _flat(labels: Iterable[Iterable[str]]) -> Iterable[str]:
    return (label for own in labels for label in own)


def _by_name(texts: Mapping[str, list[str]], labels: Mapping[str, list[list[str]]]) -> Content:
    """Columns are the labels that occur in any split, in the order of their names."""
    names = sorted({label for rows in labels.values() for label in _flat(rows)})
    column = {name: i for i, name in enumerate(names)}
    splits = {
        split: Parts(matrix([[column[v] for v in own] for own in rows], len(names)))
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
    used = {v for rows in numbered.values() for own in rows for v in own}
    width = options.get("n_labels", max(used, default=-1) + 1)
    wrong = [label for label in used if not 0 <= label < min(width, COLUMN_LIMITS["labels"])]
    if wrong:
        raise DataError(f"label {max(wrong)} does not fit n_labels: {width}; ids count from 0")
    return Content({s: Parts(matrix(r, width), texts=texts[s]) for s, r in numbered.items()})
