"""A split of a dataset as every method sees it: inputs, labels, a few facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.evaluation.propensity import DEFAULT_A, DEFAULT_B, inverse_propensity


@dataclass(frozen=True)
class Tokens:
    """Documents as ragged rows of token ids: row i is ``ids[indptr[i]:indptr[i + 1]]``.

    Id 0 is padding and id 1 the unknown word, as in AttentionXML; neither needs to occur.
    """

    indptr: np.ndarray
    ids: np.ndarray
    vocabulary: Sequence[str]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        for i in range(len(self)):
            yield self.ids[self.indptr[i] : self.indptr[i + 1]]

    def take(self, rows: np.ndarray) -> Tokens:
        """The given documents, in the given order."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ids = np.empty(indptr[-1], dtype=self.ids.dtype)
        for new, old in enumerate(np.asarray(rows)):
            ids[indptr[new] : indptr[new + 1]] = self.ids[self.indptr[old] : self.indptr[old + 1]]
        return Tokens(indptr, ids, self.vocabulary)


@dataclass(frozen=True)
class Inputs:
    """What a model may look at: any of bag of words, token ids and raw texts, row-aligned."""

    bow: sparse.csr_matrix | None = None
    tokens: Tokens | None = None
    texts: Sequence[str] | None = None

    def __post_init__(self) -> None:
        sizes = {name: _rows(value) for name, value in self._parts()}
        if not sizes:
            raise ValueError("inputs need at least one of bow, tokens, texts")
        if len(set(sizes.values())) > 1:
            raise ValueError(f"the inputs disagree on the number of documents: {sizes}")

    def __len__(self) -> int:
        return _rows(self._parts()[0][1])

    def _parts(self) -> list[tuple[str, Any]]:
        named = [("bow", self.bow), ("tokens", self.tokens), ("texts", self.texts)]
        return [(name, value) for name, value in named if value is not None]

    @property
    def kinds(self) -> frozenset[str]:
        """Which of ``bow``, ``tokens`` and ``texts`` are there."""
        return frozenset(name for name, _ in self._parts())

    def take(self, rows: np.ndarray) -> Inputs:
        """The given documents, in the given order."""
        rows = np.asarray(rows)
        return Inputs(
            bow=None if self.bow is None else self.bow[rows],
            tokens=None if self.tokens is None else self.tokens.take(rows),
            texts=None if self.texts is None else [self.texts[i] for i in rows],
        )


@dataclass(frozen=True)
class Split:
    """Documents with their labels.

    ``complete`` holds the labels before any went missing; only synthetic data know them, and
    a method is never shown them (see :meth:`observed`).
    """

    inputs: Inputs
    labels: sparse.csr_matrix
    meta: dict[str, Any] = field(default_factory=dict)
    complete: sparse.csr_matrix | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) != self.labels.shape[0]:
            raise ValueError(
                f"{len(self.inputs)} documents but {self.labels.shape[0]} rows of labels"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def n_labels(self) -> int:
        """The number of label columns, seen in this split or not."""
        return int(self.labels.shape[1])

    def label_counts(self) -> np.ndarray:
        """How many documents carry each label, int64[L]."""
        return np.bincount(self.labels.indices, minlength=self.n_labels).astype(np.int64)

    def inverse_propensity(self) -> np.ndarray:
        """1 / p of each label, float64[L], by this split's counts and its dataset's A and B."""
        A, B = self.meta.get("A", DEFAULT_A), self.meta.get("B", DEFAULT_B)
        return inverse_propensity(self.label_counts(), len(self), A, B)

    def take(self, rows: np.ndarray) -> Split:
        """The given documents, in the given order."""
        complete = None if self.complete is None else self.complete[rows]
        return Split(self.inputs.take(rows), self.labels[rows], self.meta, complete)

    def observed(self) -> Split:
        """The same split without the complete labels, which no real dataset knows."""
        return replace(self, complete=None)


def _rows(value: Any) -> int:
    return int(value.shape[0]) if sparse.issparse(value) else len(value)
