"""The prepared format: a folder of ``.npy`` arrays and ``meta.json``, opened by memory map.

Opening costs milliseconds whatever the size, and processes on one machine share the pages.
Layout: ``{split}.{bow,labels,complete}.{indptr,indices,data}.npy`` (label matrices have no data:
every entry is 1), ``{split}.tokens.{indptr,ids}.npy`` with ``vocabulary.txt``,
``{split}.texts.{offsets,utf8}.npy``. ``meta.json`` holds the size and digest of each file, and a
digest of itself.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from scipy import sparse

from benchmarks.common.atomic import atomic_folder, write_json
from benchmarks.common.digests import (
    DIGEST,
    DamagedError,
    inventory,
    is_intact,
    read_object,
    signed,
)
from benchmarks.data.errors import UnavailableError
from benchmarks.data.split import Inputs, Split, Tokens
from benchmarks.data.verify import remedy, verify

FORMAT = 1
SPLITS = ("train", "test")


class Texts(Sequence[str]):
    """Strings kept as one UTF-8 array and offsets; each is decoded when asked for."""

    def __init__(self, offsets: np.ndarray, utf8: np.ndarray) -> None:
        self.offsets = offsets
        self.utf8 = utf8

    @classmethod
    def pack(cls, texts: Sequence[str]) -> Texts:
        """Join strings into arrays."""
        encoded = [text.encode("utf-8") for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(e) for e in encoded])]).astype(np.int64)
        return cls(offsets, np.frombuffer(b"".join(encoded), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return bytes(self.utf8[self.offsets[index] : self.offsets[index + 1]]).decode("utf-8")


class Vocabulary(Sequence[str]):
    """The words of a prepared folder, read when first asked for: most users want only ids."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _words(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").split("\n")

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._words[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)


def write(
    folder: str | Path,
    train: Split,
    test: Split,
    meta: Mapping[str, Any],
    *,
    extra: Mapping[str, Split] | None = None,
    files: Mapping[str, str] | None = None,
) -> None:
    """Write both splits and what is known of them; the folder appears whole or not at all.

    ``extra`` are further splits (``dev``), for :func:`open_extra`; ``files`` are texts to put
    beside the arrays, by name.
    """
    with atomic_folder(folder) as temporary:
        digest = hashlib.sha256()
        splits = {**dict(zip(SPLITS, (train, test), strict=True)), **(extra or {})}
        for name, split in splits.items():
            for part, array in _arrays(split):
                np.save(temporary / f"{name}.{part}.npy", array)
                digest.update(f"{name}.{part} {array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        if train.inputs.tokens is not None:
            words = "\n".join(train.inputs.tokens.vocabulary)
            (temporary / "vocabulary.txt").write_text(words, encoding="utf-8")
            digest.update(words.encode())
        for name, text in (files or {}).items():
            (temporary / name).write_text(text, encoding="utf-8")
        bow = train.inputs.bow
        facts = {
            **meta,
            "n_train": len(train),
            "n_test": len(test),
            **{f"n_{name}": len(split) for name, split in (extra or {}).items()},
            "n_features": None if bow is None else int(bow.shape[1]),
            "n_labels": train.n_labels,
            "inputs": sorted(train.inputs.kinds),
            "checksum": digest.hexdigest(),
        }
        write_meta(temporary, facts)


def write_meta(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write the ``meta.json`` of a folder whose other files are all there; returns it."""
    arrays = {name: found for name, found in inventory(folder).items() if name != "meta.json"}
    meta = signed({"format": FORMAT, **facts, "arrays": arrays})
    write_json(folder / "meta.json", meta)
    return meta


def read_meta(folder: str | Path) -> dict[str, Any]:
    """The ``meta.json`` of a prepared folder; :class:`DamagedError` if it is not as written."""
    folder = Path(folder)
    path = folder / "meta.json"
    if not path.exists():
        raise FileNotFoundError(f"{folder} is not a prepared dataset: it has no meta.json")
    meta = read_object(path)
    if meta is None:
        raise DamagedError(path, "no JSON object", remedy(folder))
    if meta.get("format") != FORMAT or DIGEST not in meta:
        problem = "written by another version, or damaged"
        raise DamagedError(path, problem, remedy(folder))
    if not is_intact(meta):
        problem = "its content is not what was written (its own digest differs)"
        raise DamagedError(path, problem, remedy(folder))
    return meta


def write_unavailable(folder: str | Path, name: str, reason: str) -> None:
    """Record in a dataset's folder that it is unavailable, and why."""
    with atomic_folder(folder) as temporary:
        write_meta(temporary, {"name": name, "unavailable": reason, "checksum": "none"})


def forget_unavailable(root: str | Path) -> None:
    """Remove the records of unavailable datasets, so that they are looked for again.

    Of a folder with a damaged ``meta.json``, that file is removed: the next run that needs the
    dataset prepares it again.
    """
    for path in filter(Path.is_file, Path(root).glob("*/meta.json")):
        meta = read_object(path)
        if meta is None or not is_intact(meta):
            path.unlink()
        elif meta.get("unavailable"):
            shutil.rmtree(path.parent)


def open_prepared(folder: str | Path) -> tuple[Split, Split]:
    """Train and test of a prepared folder, memory-mapped read-only.

    Raises :class:`DamagedError` if a file is not what was prepared.
    """
    folder = Path(folder)
    meta = read_meta(folder)
    if "unavailable" in meta:
        raise UnavailableError(meta["unavailable"])
    verify(folder, meta)
    vocabulary = _vocabulary(folder, meta)
    train, test = (_open_split(folder, name, meta, vocabulary) for name in SPLITS)
    return train, test


def open_extra(folder: str | Path, name: str) -> Split:
    """A further split of a prepared folder, such as ``dev``."""
    folder = Path(folder)
    meta = read_meta(folder)
    if f"n_{name}" not in meta or name in ("features", "labels"):
        raise KeyError(f"{folder} has no split {name!r}")
    verify(folder, meta)
    return _open_split(folder, name, meta, _vocabulary(folder, meta))


def _vocabulary(folder: Path, meta: Mapping[str, Any]) -> Vocabulary | None:
    return Vocabulary(folder / "vocabulary.txt") if "tokens" in meta["inputs"] else None


def _open_split(
    folder: Path, name: str, meta: dict[str, Any], vocabulary: Sequence[str] | None
) -> Split:
    def array(part: str) -> np.ndarray:
        # A plain ndarray view of the map: scipy copies the memmap sub-class in places.
        return np.asarray(np.load(folder / f"{name}.{part}.npy", mmap_mode="r"))

    n = meta[f"n_{name}"]
    label_shape = (n, meta["n_labels"])
    inputs = Inputs(
        bow=_csr(array, "bow", (n, meta["n_features"])) if "bow" in meta["inputs"] else None,
        tokens=None
        if vocabulary is None
        else Tokens(array("tokens.indptr"), array("tokens.ids"), vocabulary),
        texts=Texts(array("texts.offsets"), array("texts.utf8"))
        if "texts" in meta["inputs"]
        else None,
    )
    complete = None
    if (folder / f"{name}.complete.indptr.npy").exists():
        complete = _csr(array, "complete", label_shape)
    return Split(inputs, _csr(array, "labels", label_shape), meta, complete)


def _csr(array: Any, part: str, shape: tuple[int, int]) -> sparse.csr_matrix:
    indptr, indices = array(f"{part}.indptr"), array(f"{part}.indices")
    # Label matrices are all ones, so they are made here and not stored.
    data = array(f"{part}.data") if part == "bow" else np.ones(len(indices), np.float32)
    matrix = sparse.csr_matrix(shape, dtype=np.float32)
    # Setting the arrays skips the constructor's pass over every index, which would read it all.
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def _arrays(split: Split) -> Iterator[tuple[str, np.ndarray]]:
    matrices = {
        "bow": split.inputs.bow,
        "labels": split.labels,
        "complete": split.complete,
    }
    for part, matrix in matrices.items():
        if matrix is None:
            continue
        # Both index arrays of one width, or scipy copies the mapped one to match.
        wide = max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max
        index_type = np.int64 if wide else np.int32
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        yield f"{part}.indptr", matrix.indptr.astype(index_type, copy=False)
        yield f"{part}.indices", matrix.indices.astype(index_type, copy=False)
        if part == "bow":
            yield f"{part}.data", matrix.data.astype(np.float32, copy=False)
    if split.inputs.tokens is not None:
        yield "tokens.indptr", split.inputs.tokens.indptr.astype(np.int64, copy=False)
        yield "tokens.ids", split.inputs.tokens.ids.astype(np.int32, copy=False)
    if split.inputs.texts is not None:
        packed = Texts.pack(split.inputs.texts)
        yield "texts.offsets", packed.offsets
        yield "texts.utf8", packed.utf8


def prepared_names(data: str | Path) -> list[str]:
    """Every dataset with labels that is prepared below a folder.

    Vectors have no training documents, and unavailable datasets no facts at all; a folder of an
    earlier version that lacks some is made again when a run asks for it.
    """
    wanted = {"n_train", "duplicates"}
    paths = sorted(Path(data).glob("*/meta.json"))
    return [path.parent.name for path in paths if wanted <= set(read_meta(path.parent))]
