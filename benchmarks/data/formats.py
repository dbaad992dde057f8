"""Readers of every format a card may name, all to the same parts.

A reader gets the folder of unpacked files and the source's description, and returns a
:class:`Parts` for each split under one numbering of labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.data.cards import Part, Source
from benchmarks.data.content import Content, Parts, bow, find, lines, one_path
from benchmarks.data.errors import DataError, FormatError
from benchmarks.data.matrices import check_content, load_sparse, positives
from benchmarks.data.special_formats import read_rcv1, read_token_arrays
from benchmarks.data.streams import read_json
from benchmarks.data.text_formats import documents, read_jsonl, read_lines
from benchmarks.data.xc import read_xc


def read(source: Source, root: Path) -> Content:
    """Read a source's files below ``root``."""
    parts = {"train": source.train, "test": source.test, "dev": source.dev}
    named = {name: part for name, part in parts.items() if part is not None}
    missing = {"train", "test"} - set(named)
    if missing:
        raise DataError(f"format {source.format} needs {' and '.join(sorted(missing))}")
    content = READERS[source.format](named, source.options, root)
    check_content(content)
    if "label_names" in source.options:
        names = _label_names(find(root, source.options["label_names"]), content)
        content = replace(content, label_names=names)
    return content


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
    headers = {}
    for name, part in parts.items():
        split = read_xc(find(root, one_path(name, part)), **reading)
        splits[name] = Parts(split.labels, bow=split.inputs.bow)
        if split.meta["header"]:
            headers[name] = (split.meta["n_features"], split.meta["n_labels"])
    if len(set(headers.values())) > 1:
        raise DataError(
            f"the headers disagree on (features, labels): {headers}. The files must be of one "
            "dataset and one numbering"
        )
    n_features = max(bow(p.bow).shape[1] for p in splits.values())
    n_labels = max([options.get("n_labels", 0), *(p.labels.shape[1] for p in splits.values())])
    for parsed in splits.values():
        # Files without a header know only the ids they use.
        bow(parsed.bow).resize((parsed.labels.shape[0], n_features))
        parsed.labels.resize((parsed.labels.shape[0], n_labels))
    if "aligned_texts" in options:
        splits = {name: _with_aligned_texts(name, p, options, root) for name, p in splits.items()}
    return Content(splits)


def _with_aligned_texts(name: str, part: Parts, options: Mapping[str, Any], root: Path) -> Parts:
    """Texts of the same rows; their labels must be the matrix's, row by row."""
    path = find(root, options["aligned_texts"][name])
    found = list(documents(path, options, None))
    if len(found) != part.labels.shape[0]:
        raise DataError(f"{path} has {len(found)} texts for {part.labels.shape[0]} rows")
    for row, (line, _, labels) in enumerate(found):
        start, end = part.labels.indptr[row : row + 2]
        try:
            numbers = sorted(map(int, labels))
        except ValueError:  # a name
            numbers = []
        if len(numbers) != len(labels) or numbers != part.labels.indices[start:end].tolist():
            shown = ", ".join(labels)[:200]
            raise FormatError(
                path,
                line,
                f"labels [{shown}] are not those of row {row} of the features",
                "Texts and features must be of the same documents in the same order.",
            )
    return replace(part, texts=[text for _, text, _ in found])


def _read_npz(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    splits = {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not {"features", "labels"} <= set(part):
            raise DataError(f"{name}: format npz needs the keys features and labels")
        paths = {key: find(root, part[key]) for key in ("features", "labels")}
        features = load_sparse(paths["features"])
        features.sum_duplicates()
        labels = positives(load_sparse(paths["labels"]), paths["labels"])
        if features.shape[0] != labels.shape[0]:
            raise DataError(
                f"{name}: {features.shape[0]} rows of features, {labels.shape[0]} of labels"
            )
        texts = None
        if "texts" in part:
            texts = lines(find(root, part["texts"]))
            if len(texts) != features.shape[0]:
                raise DataError(
                    f"{name}: {len(texts)} texts for {features.shape[0]} rows of features"
                )
        splits[name] = Parts(labels, bow=features, texts=texts)
    return Content(splits)


def _label_names(path: Path, content: Content) -> list[str]:
    """Readable names by column, from a list by column or a JSON object by label."""
    width = content.splits["train"].labels.shape[1]
    if path.suffix == ".json":
        concepts = read_json(path)
        if not isinstance(concepts, dict):
            raise DataError(f"{path}: no JSON object of names by label")
        keys = content.label_names or [str(i) for i in range(width)]
        entries = [concepts.get(key, key) for key in keys]
        return [
            e.get("label", k) if isinstance(e, dict) else str(e)
            for e, k in zip(entries, keys, strict=True)
        ]
    names = lines(path)
    if len(names) != width:
        raise DataError(f"{path} names {len(names)} labels; there are {width}")
    return names


READERS: dict[str, Callable[[Mapping[str, Part], Mapping[str, Any], Path], Content]] = {
    "xc": _read_xc,
    "libsvm": _read_libsvm,
    "npz": _read_npz,
    "jsonl": read_jsonl,
    "lines": read_lines,
    "token-arrays": read_token_arrays,
    "rcv1": read_rcv1,
}
