"""Arrays and matrices that users hand in, checked once: compiled code behind trusts every index."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import sparse

from benchmarks.data.content import Content, Parts
from benchmarks.data.errors import DataError
from benchmarks.data.streams import check_file

COLUMN_LIMITS = {"labels": 50_000_000, "features": 2**31 - 1}
"""Far above any dataset; a number beyond is a damaged header, and arrays of that length follow."""
_INDICES = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
_DAMAGED = (
    OSError,
    EOFError,
    ValueError,  # numpy's on cut arrays and on pickled objects
    KeyError,
    MemoryError,  # a header that claims terabytes
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_array(path: Path, mmap_mode: Literal["r"] | None = None) -> np.ndarray:
    """A two-dimensional array of numbers in a ``.npy`` file."""
    check_file(path)
    try:
        array = np.load(path, mmap_mode=mmap_mode)
    except _DAMAGED as error:
        raise DataError(
            f"{path}: no readable .npy array ({error}); save it by numpy.save"
        ) from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: an archive of arrays; save the one array by numpy.save")
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(f"{path}: {array.dtype}{list(array.shape)} is no table of numbers")
    return array


def load_sparse(path: Path) -> sparse.csr_matrix:
    """The float32 matrix of a file that ``scipy.sparse.save_npz`` wrote, without stored zeros."""
    check_file(path)
    try:
        archive = np.load(path)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is a single .npy array")
        with archive:
            kind = archive["format"].item()
            kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
            first, second = (archive[name] for name in _INDICES[kind])
            shape, data = archive["shape"], archive["data"]
    except _DAMAGED as error:
        raise DataError(
            f"{path}: no sparse matrix ({error}); write it by scipy.sparse.save_npz, from "
            "matrix.tocsr()"
        ) from error
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError(f"{path}: its shape {shape.tolist()} is no number of rows and columns")
    if data.dtype.kind not in "biuf":
        raise DataError(f"{path}: its values are {data.dtype}, not numbers")
    if any(part.dtype.kind not in "iu" or part.ndim != 1 for part in (first, second)):
        raise DataError(f"{path}: its indices are no lists of integers")
    if data.shape != first.shape:
        raise DataError(f"{path}: {data.size} values for {first.size} indices")
    rows, columns = (int(size) for size in shape)
    first, second = first.astype(np.int64, copy=False), second.astype(np.int64, copy=False)
    if kind == "coo":
        _check_range(first, rows, f"{path}: row index")
        _check_range(second, columns, f"{path}: column index")
        if first.shape != second.shape:
            raise DataError(f"{path}: {first.size} row indices, {second.size} column indices")
        made = sparse.coo_matrix((data, (first, second)), shape=(rows, columns))
    else:
        lines = (rows, columns) if kind == "csr" else (columns, rows)
        _check_pointers(second, first.size, lines[0], str(path))
        what = "column" if kind == "csr" else "row"
        _check_range(first, lines[1], f"{path}: {what} index")
        make = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
        made = make((data, first, second), shape=(rows, columns))
    matrix = sparse.csr_matrix(made)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, an error
        matrix = matrix.astype(np.float32)
    _check_finite(matrix, str(path))
    matrix.eliminate_zeros()
    return matrix


def positives(matrix: sparse.csr_matrix, where: str | Path) -> sparse.csr_matrix:
    """A label matrix with a one for every positive entry; a negative one is an error."""
    _check_finite(matrix, str(where))
    if len(matrix.data) and matrix.data.min() < 0:
        row = _row(matrix, int(np.argmax(matrix.data < 0)))
        raise DataError(
            f"{where}: row {row} has a label of value {matrix.data.min():g}. Whatever is stored "
            "counts as a label: leave out those that a document does not have"
        )
    matrix.sum_duplicates()
    matrix.data = np.ones(len(matrix.data), np.float32)
    return matrix


def check_content(content: Content) -> None:
    """Raise :class:`DataError` unless the matrices of all splits are sound; for every format."""
    for split, part in content.splits.items():
        if part.labels.shape[0] == 0:
            raise DataError(f"{split}: there are no documents")
        for what, matrix in _matrices(part).items():
            where = f"{split}, {what}"
            rows, columns = matrix.shape
            if columns > COLUMN_LIMITS[what]:
                raise DataError(
                    f"{where}: {columns:,} columns, more than the {COLUMN_LIMITS[what]:,} that "
                    "are read. Correct the header, n_labels or the ids in the file"
                )
            if rows != part.labels.shape[0]:
                raise DataError(f"{where}: {rows} rows for {part.labels.shape[0]} of labels")
            if matrix.data.shape != matrix.indices.shape or matrix.dtype != np.float32:
                raise DataError(f"{where}: no float32 value for every index")
            _check_pointers(matrix.indptr, len(matrix.indices), rows, where)
            _check_range(matrix.indices, columns, f"{where}: column index")
            _check_finite(matrix, where)
        if (part.labels.data != 1).any():
            raise DataError(f"{split}, labels: a value other than 1")
        if part.labels.nnz == 0:
            raise DataError(f"{split}: no document has a label")
    features = content.splits["train"].bow
    if features is not None and features.nnz == 0:
        raise DataError("train: no document has a feature")
    for what in COLUMN_LIMITS:
        found = {
            s: _matrices(p)[what].shape[1]
            for s, p in content.splits.items()
            if what in _matrices(p)
        }
        if len(set(found.values())) > 1:
            raise DataError(f"the splits disagree on the number of columns of {what}: {found}")


def _matrices(part: Parts) -> dict[str, sparse.csr_matrix]:
    return {"labels": part.labels} | ({} if part.bow is None else {"features": part.bow})


def _check_pointers(pointers: np.ndarray, entries: int, lines: int, where: str) -> None:
    if len(pointers) != lines + 1:
        raise DataError(f"{where}: indptr has {len(pointers)} entries, not {lines + 1}")
    if pointers[0] != 0 or pointers[-1] != entries or (np.diff(pointers) < 0).any():
        raise DataError(
            f"{where}: indptr does not rise from 0 to the number of entries, {entries}; "
            "write the matrix again"
        )


def _check_range(indices: np.ndarray, size: int, what: str) -> None:
    for index in (indices.min(), indices.max()) if len(indices) else ():
        if not 0 <= index < size:
            raise DataError(f"{what} {index} is outside 0..{size - 1}; write the matrix again")


def _check_finite(matrix: sparse.csr_matrix, where: str) -> None:
    finite = np.isfinite(matrix.data)
    if not finite.all():
        row = _row(matrix, int(np.argmin(finite)))
        raise DataError(
            f"{where}: row {row} holds NaN, infinity or a number too large for float32; "
            "replace it by a number"
        )


def _row(matrix: sparse.csr_matrix, entry: int) -> int:
    return int(np.searchsorted(matrix.indptr, entry, "right")) - 1
