"""A ranking: the k best labels of each document, which is all that is kept of predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class TopK:
    """The k best labels of each document, best first.

    ``indices`` is int32[n, k], padded with -1; ``scores`` is float32[n, k], padded with -inf.
    Ties are broken by the lower label index.
    """

    indices: np.ndarray
    scores: np.ndarray

    def __post_init__(self) -> None:
        if self.indices.shape != self.scores.shape or self.indices.ndim != 2:
            raise ValueError(
                f"indices {self.indices.shape} and scores {self.scores.shape} must be one n x k"
            )

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def k(self) -> int:
        """How many labels were kept for each document."""
        return int(self.indices.shape[1])

    @classmethod
    def empty(cls, n: int, k: int) -> TopK:
        """No prediction for any of n documents."""
        return cls(np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32))

    @classmethod
    def from_dense(cls, scores: np.ndarray, k: int, first_label: int = 0) -> TopK:
        """The k largest of each row; column j is label ``first_label + j``; -inf is no label."""
        scores = np.asarray(scores, dtype=np.float32)
        kept = min(k, scores.shape[1])
        # A stable sort of the negated scores puts the lower index first among equals.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
        top = cls.empty(len(scores), k)
        values = np.take_along_axis(scores, order, axis=1)
        top.indices[:, :kept] = np.where(np.isneginf(values), -1, order + first_label)
        top.scores[:, :kept] = values
        return top

    @classmethod
    def from_sparse(cls, scores: sparse.csr_matrix, k: int) -> TopK:
        """The k largest stored entries of each row (zeros that are not stored do not count)."""
        scores = sparse.csr_matrix(scores)
        rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
        values = scores.data.astype(np.float32)
        order = np.lexsort((scores.indices, -values, rows))
        rank = np.arange(len(order)) - np.repeat(scores.indptr[:-1], np.diff(scores.indptr))
        keep = rank < k
        top = cls.empty(scores.shape[0], k)
        top.indices[rows[keep], rank[keep]] = scores.indices[order][keep]
        top.scores[rows[keep], rank[keep]] = values[order][keep]
        return top

    def fault(self, n: int, n_labels: int, k: int | None = None) -> str | None:
        """What is wrong with these predictions for n documents; None where nothing is.

        With ``k``, every row must have as many columns, padded where there are fewer labels.
        """
        if self.indices.dtype.kind != "i" or self.scores.dtype.kind not in "iuf":
            types = f"{self.indices.dtype} labels and {self.scores.dtype} scores"
            return f"{types}, not signed integers (int32) and numbers (float32)"
        if k is not None and self.k != k:
            return f"{self.k} labels per document instead of {k}; pad with label -1, score -inf"
        if len(self) != n:
            return f"{len(self)} rows of predictions for {n} documents"
        real = self.indices >= 0
        if self.indices.max(initial=-1) >= n_labels or self.indices.min(initial=0) < -1:
            return f"labels outside 0..{n_labels - 1}"
        if np.isnan(self.scores[real]).any():
            return "a score that is not a number"
        if (real[:, 1:] & ~real[:, :-1]).any():
            return "padding before a label"
        if (real[:, 1:] & (self.scores[:, 1:] > self.scores[:, :-1])).any():
            return "scores that are not sorted, best first"
        ordered = np.sort(self.indices, axis=1)
        if ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)).any():
            return "a label twice in one row"
        return None

    def to_sparse(self, n_labels: int) -> sparse.csr_matrix:
        """The scores as an n x L matrix with an entry for each predicted label."""
        real = self.indices >= 0
        indptr = np.concatenate([[0], np.cumsum(real.sum(axis=1))])
        return sparse.csr_matrix(
            (self.scores[real], self.indices[real], indptr), shape=(len(self), n_labels)
        )
