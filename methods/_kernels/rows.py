"""Some rows of a sparse matrix as a matrix of their own: copied, renumbered, scaled."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def gather_renumbered(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    n_rows: int,
    number: np.ndarray,
    columns: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Copy rows, renumbering their columns as they appear: ``columns[new] = old``.

    ``number`` is int32, -1 everywhere, and is so again on return. Returns where each row of the
    copy starts and stops, the copy, and the number of columns: a few thousand of them stay in
    cache where all of X's would not.
    """
    total = 0
    for a in range(n_rows):
        total += indptr[rows[a] + 1] - indptr[rows[a]]
    new_indptr = np.empty(n_rows + 1, np.int64)
    new_indices = np.empty(total, np.uint32)
    new_data = np.empty(total, np.float32)
    used = 0
    at = 0
    for a in range(n_rows):
        new_indptr[a] = at
        for q in range(indptr[rows[a]], indptr[rows[a] + 1]):
            column = indices[q]
            here = number[column]
            if here < 0:
                here = np.int32(used)
                number[column] = here
                columns[used] = column
                used += 1
            new_indices[at] = np.uint32(here)
            new_data[at] = data[q]
            at += 1
    new_indptr[n_rows] = at
    for j in range(used):
        number[columns[j]] = np.int32(-1)
    return new_indptr[:-1], new_indptr[1:], new_indices, new_data, used


@njit(nogil=True, cache=True)
def copy_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    to: np.ndarray,
    out_indptr: np.ndarray,
    out_indices: np.ndarray,
    out_data: np.ndarray,
) -> None:
    """Copy row i of a sparse matrix to row ``to[i]`` of another that has room for it."""
    for i in range(indptr.shape[0] - 1):
        at = out_indptr[to[i]] - indptr[i]
        for q in range(indptr[i], indptr[i + 1]):
            out_indices[at + q] = indices[q]
            out_data[at + q] = data[q]


@njit(nogil=True, cache=True)
def scaled_to_unit(indptr: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The float32 entries of rows divided by their Euclidean norm; a row of zeros stays so."""
    out = np.empty(data.shape[0], np.float32)
    for i in range(indptr.shape[0] - 1):
        square = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            square += np.float64(data[p] * data[p])
        norm = np.sqrt(square) if square > 0.0 else 1.0
        for p in range(indptr[i], indptr[i + 1]):
            out[p] = np.float32(np.float64(data[p]) / norm)
    return out


@njit(cache=True, nogil=True)
def gather_scaled(indptr, indices, data, scale, rows, n_features, bias):  # type: ignore[no-untyped-def]
    """The given rows times their scale over the columns they use, ascending, and a bias column.

    Returns the columns (the bias is ``n_features``), and the rows as CSR arrays.
    """
    local = np.full(n_features, -1, np.int32)
    total = 0
    for r in rows:
        for p in range(indptr[r], indptr[r + 1]):
            local[indices[p]] = 1
        total += indptr[r + 1] - indptr[r] + 1
    d = 0
    for f in range(n_features):
        if local[f] == 1:
            local[f] = d
            d += 1
    features = np.empty(d + 1, np.int32)
    for f in range(n_features):
        if local[f] >= 0:
            features[local[f]] = f
    features[d] = n_features
    out_indptr = np.empty(len(rows) + 1, np.int64)
    columns = np.empty(total, np.int32)
    values = np.empty(total, np.float32)
    at = 0
    out_indptr[0] = 0
    for i in range(len(rows)):
        r = rows[i]
        for p in range(indptr[r], indptr[r + 1]):
            columns[at] = local[indices[p]]
            values[at] = data[p] * scale[r]
            at += 1
        columns[at] = d
        values[at] = bias
        at += 1
        out_indptr[i + 1] = at
    return features, out_indptr, columns, values
