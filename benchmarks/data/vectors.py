"""Word vectors: a vocabulary and one memory-mapped array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.atomic import atomic_folder
from benchmarks.data.content import find
from benchmarks.data.errors import DataError, FormatError
from benchmarks.data.matrices import load_array
from benchmarks.data.prepared import read_meta, write_meta
from benchmarks.data.streams import read_json, read_text, text_lines
from benchmarks.data.verify import verify

VECTORS, WORDS = "vectors.npy", "vocabulary.txt"


def open_vectors(folder: str | Path) -> tuple[list[str], np.ndarray]:
    """Words and their vectors, row by row, memory-mapped read-only."""
    folder = Path(folder)
    if not (folder / "meta.json").exists():
        raise FileNotFoundError(f"{folder} holds no prepared word vectors: it has no meta.json")
    verify(folder, read_meta(folder))
    words = (folder / WORDS).read_text(encoding="utf-8").split("\n")
    return words, np.load(folder / VECTORS, mmap_mode="r")


def write_vectors(
    folder: Path, words: list[str], vectors: np.ndarray, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Write words and vectors; the folder appears whole or not at all."""
    facts = {**meta, "n_words": len(words), "dimensions": int(vectors.shape[1])}
    with atomic_folder(folder) as temporary:
        np.save(temporary / VECTORS, vectors)
        (temporary / WORDS).write_text("\n".join(words), encoding="utf-8")
        return write_meta(temporary, facts)


def read_npy(options: Mapping[str, Any], root: Path) -> tuple[list[str], np.ndarray]:
    """Vectors in a ``.npy`` file and words in a text file, line by line."""
    vectors = load_array(find(root, options["vectors"]), mmap_mode="r")
    words = read_text(find(root, options["vocabulary"])).split("\n")
    if words and not words[-1]:
        words.pop()
    if len(words) != len(vectors):
        raise DataError(f"{len(words)} words for {len(vectors)} vectors in {root}")
    if not np.isfinite(vectors).all():
        raise DataError(f"{options['vectors']} holds NaN or infinity")
    return words, vectors


def read_glove(options: Mapping[str, Any], root: Path) -> tuple[list[str], np.ndarray]:
    """GloVe's text form, ``word v1 v2 ...``; words may hold spaces, numbers may not."""
    path = find(root, options["vectors"])
    stream = text_lines(path)
    dimensions = len(next(stream, "").rstrip("\n").split(" ")) - 1
    if dimensions < 1:
        raise FormatError(path, 1, "no word followed by numbers", "Fetch it again.")
    rows = 1 + sum(1 for _ in stream)
    words: list[str] = []
    vectors = np.empty((rows, dimensions), np.float32)
    seen: set[str] = set()
    kept = 0
    for number, line in enumerate(text_lines(path), 1):
        fields = line.rstrip("\n").rsplit(" ", dimensions)
        if len(fields) != dimensions + 1:
            raise FormatError(path, number, f"no {dimensions} numbers", "Fetch it again.")
        if fields[0] in seen:
            continue  # 840B repeats a few words; the first is the more frequent
        try:
            vectors[kept] = np.array(fields[1:], np.float32)
        except ValueError as error:
            raise FormatError(
                path, number, f"no {dimensions} numbers", "Fetch it again."
            ) from error
        seen.add(fields[0])
        words.append(fields[0])
        kept += 1
    return words, vectors[:kept]


def count_entries(path: Path) -> int:
    """Entries of a JSON object, such as a tokenizer's vocabulary."""
    entries: dict[str, Any] = read_json(path)
    return len(entries)
