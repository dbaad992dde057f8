"""Padded batches of token ids from ragged, possibly memory-mapped rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.data.split import Tokens

PADDING, UNKNOWN = 0, 1


@dataclass(frozen=True)
class TokenBatch:
    """Documents of one batch, padded on the right to the longest of them.

    ``rows`` are their positions in the split, int64[n]; ``ids`` is int64[n, T], ``mask`` is
    bool[n, T] and False at padding; ``lengths`` is int64[n] and at least 1.
    """

    rows: np.ndarray
    ids: torch.Tensor
    mask: torch.Tensor
    lengths: torch.Tensor

    def __len__(self) -> int:
        return len(self.rows)


class Documents:
    """The first ``max_length`` token ids of each document; an empty one is one unknown word."""

    def __init__(
        self,
        indptr: np.ndarray,
        ids: np.ndarray,
        max_length: int,
        padding: int = PADDING,
        empty: int = UNKNOWN,
    ) -> None:
        self.indptr = np.asarray(indptr)
        self.ids = ids
        self.padding = padding
        self.empty = empty
        self.lengths = np.clip(np.diff(self.indptr), 1, max_length).astype(np.int64)

    @classmethod
    def of(cls, tokens: Tokens, max_length: int) -> Documents:
        """The documents of a split's tokens."""
        return cls(tokens.indptr, tokens.ids, max_length)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: np.ndarray, device: str | torch.device = "cpu") -> TokenBatch:
        """The given documents, in the given order."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[rows]
        width = int(lengths.max(initial=1))
        ids = np.full((len(rows), width), self.padding, dtype=np.int64)
        for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            start, end = self.indptr[row], self.indptr[row + 1]
            ids[i, :length] = self.ids[start : start + length] if end > start else self.empty
        mask = np.arange(width) < lengths[:, None]
        return TokenBatch(
            rows,
            torch.from_numpy(ids).to(device),
            torch.from_numpy(mask).to(device),
            torch.from_numpy(lengths).to(device),
        )


def epoch_batches(
    lengths: np.ndarray, batch_size: int, rng: np.random.Generator, pool: int = 1
) -> list[np.ndarray]:
    """Rows of each batch of an epoch, shuffled; the last batch may be smaller.

    With ``pool`` > 1, each run of ``pool`` batches of the shuffled documents is sorted by length
    before it is cut into batches, so that documents of similar length are padded together; then
    the batches are shuffled.
    """
    order = rng.permutation(len(lengths))
    if pool > 1:
        width = pool * batch_size
        parts = [order[start : start + width] for start in range(0, len(order), width)]
        order = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in parts])
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    if pool > 1:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches


def pieces(rows: np.ndarray, lengths: np.ndarray, size: int, sort: bool = True) -> list[np.ndarray]:
    """A batch cut into parts of about ``size`` documents, longest first if ``sort``.

    The parts are computed on side by side and padded each to its own length, so a random batch
    wastes little on padding. Their number depends on the batch alone, never on the cores.
    """
    if sort:
        rows = rows[np.argsort(-lengths[rows], kind="stable")]
    return [part for part in np.array_split(rows, max(1, -(-len(rows) // size))) if len(part)]


def prediction_batches(lengths: np.ndarray, tokens_at_once: int) -> Iterator[np.ndarray]:
    """Rows in groups of similar length whose padded size stays within ``tokens_at_once``."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, tokens_at_once // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size
