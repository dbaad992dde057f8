"""The rows of X as the one-vs-rest solver reads them: columns by falling frequency.

Where X has many columns and rows, a product of X with many directions waits for memory: each entry
reads its column's weights from anywhere in a block that no cache holds. So columns are split. The
frequent ones, *hot*, come first in every row; the weights of a block of labels for them stay in the
cache of a core. The others, *cold*, are also stored by column: of the directions of a rare label
nearly all are zero there, and only the entries of columns that are not need to be read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

WIDE_COLUMNS = 8192
"""With so many columns at most, all are hot."""
WIDE_ROWS = 65536
"""With so many rows at most, too: solving a label on its candidates takes as long as products with
all rows where these are not at least some twenty times as many."""
HOT_COLUMNS = 4096
"""Weights of 32 labels for so many columns take 512 KB."""
CANDIDATES = 4096
"""Rows that a direction of a wide problem is found on, at least; all rows of others."""


class Layout(NamedTuple):
    """Rows of X with only the columns they use, the most frequent first.

    Row i is ``indices[indptr[i]:indptr[i + 1]]``, its hot columns (those below ``n_hot``) before
    ``hot_stop[i]``. Cold column ``n_hot + c`` is ``cold_rows[cold_indptr[c]:cold_indptr[c + 1]]``.
    """

    indptr: np.ndarray  # int64[n + 1]
    hot_stop: np.ndarray  # int64[n]
    indices: np.ndarray  # uint32
    data: np.ndarray  # float32
    columns: np.ndarray  # int64: the original number of each column
    n_hot: int
    cold_indptr: np.ndarray  # int64[columns - n_hot + 1]
    cold_rows: np.ndarray  # uint32, ascending within a column
    cold_data: np.ndarray  # float32
    candidates: int
    """How many rows the search for a direction is kept to, or 0 for all that are active."""

    @property
    def is_wide(self) -> bool:
        """Whether there are cold columns."""
        return self.n_hot < len(self.columns)

    @property
    def hot_entries(self) -> int:
        """How many entries every product of X reads."""
        return int(self.indptr[-1] - len(self.cold_rows))


def lay_out(X: sparse.csr_matrix, *, wide: bool | None = None) -> Layout:
    """The rows of X; ``wide`` or not by the numbers of its rows and used columns alone, if None."""
    counts = np.bincount(X.indices, minlength=X.shape[1])
    used = np.flatnonzero(counts)
    columns = used[np.argsort(-counts[used], kind="stable")]
    number = np.empty(X.shape[1], np.int32)
    number[columns] = np.arange(len(columns), dtype=np.int32)
    data = X.data.astype(np.float32, copy=False)
    renumbered = sparse.csr_matrix(
        (data, number[X.indices], X.indptr), shape=(X.shape[0], len(columns))
    )
    indptr = X.indptr.astype(np.int64)
    if wide is None:
        wide = len(columns) > WIDE_COLUMNS and X.shape[0] > WIDE_ROWS
    if not wide or len(columns) <= HOT_COLUMNS:
        nothing = np.empty(0, np.uint32), np.empty(0, np.float32)
        return Layout(
            indptr, indptr[1:], renumbered.indices.view(np.uint32), data, columns, len(columns),
            np.zeros(1, np.int64), *nothing, 0,
        )  # fmt: skip
    by_column = renumbered.tocsc()
    del renumbered
    first = int(by_column.indptr[HOT_COLUMNS])
    cold = (
        by_column.indptr[HOT_COLUMNS:].astype(np.int64) - first,
        by_column.indices[first:].astype(np.uint32),
        by_column.data[first:].copy(),
    )
    rows = by_column.tocsr()  # columns ascending within a row
    del by_column
    cold_of_row = np.bincount(cold[1], minlength=X.shape[0])
    return Layout(
        indptr, indptr[1:] - cold_of_row, rows.indices.view(np.uint32), rows.data, columns,
        HOT_COLUMNS, *cold, CANDIDATES,
    )  # fmt: skip
