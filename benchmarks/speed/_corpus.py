"""Seeded documents of a stated shape, made chunk by chunk: in memory, or as files in XC format.

Words are drawn from a power law and from the topics of a document's labels, each of which has some
words of its own; label frequencies are a power law, too. Ids are shuffled: as in real data, a low
number does not say that a word or label is frequent. Values are tf-idf-like.

Labels may come in groups that share words and documents, as real ones do. Without them there is
nothing for a clustering of labels to find: k-means puts much of them into one cluster, and a leaf
of a label tree then takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numba import njit
from scipy import sparse

from benchmarks.common.atomic import atomic_path
from benchmarks.data.split import Inputs, Split
from methods.linear.model import as_unit_rows

CHUNK = 20_000  # documents made at a time
TOPIC = 40  # words of its own that a label has
SPLITS = ("train", "test")
_TOPICAL, _BACKGROUND = 1 / 3, 0.75
"""Of ``words``: words repeat within a document, and these shares leave about ``words`` of them."""
_DECIMALS = 4
_NUMBER_BYTES = 24  # as many as an id, a value and their separators take at most


@dataclass(frozen=True)
class Shape:
    """The sizes of a dataset, and how its words and labels are distributed."""

    name: str
    n_train: int
    n_features: int
    n_labels: int
    words: float
    """Different words per document, about."""
    labels: float
    """Labels per document."""
    n_test: int = 0
    label_power: float = 0.9
    """Frequencies fall as ``(rank + 5) ** -power``."""
    word_power: float = 0.8
    groups: tuple[int, ...] = ()
    """Labels per group, small groups within large ones; neighbours in frequency are together, so
    that the law of frequencies stays."""

    def scaled(self, documents: float, features: float, labels: float) -> Shape:
        """The same with other numbers of documents, features and labels; means stay."""
        return replace(
            self,
            n_train=max(1, round(documents * self.n_train)),
            n_test=round(documents * self.n_test),
            n_features=max(1, round(features * self.n_features)),
            n_labels=max(1, round(labels * self.n_labels)),
        )


GROUPS = (30, 300, 3000)
"""Labels per group, so that no cluster of Bonsai's takes more of them than on EURLex-4K, about."""
SHAPES = {
    shape.name: shape
    for shape in (
        # Sizes by the XC repository; powers such that nearly every label has a document.
        Shape("Amazon-670K", 490_449, 135_909, 670_091, 71.0, 5.45, 153_025, 0.5, groups=GROUPS),
        Shape(
            "WikiLSHTC-325K", 1_778_351, 1_617_899, 325_056, 40.0, 3.19, 587_084, 0.8, groups=GROUPS
        ),
    )
}


class Corpus:
    """The documents of a shape, a function of shape and seed alone."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape, self.seed = shape, seed
        rng = np.random.default_rng((seed, 0))
        self._words = _law(shape.n_features, shape.word_power)
        self._labels = _law(shape.n_labels, shape.label_power)
        self._word_ids = rng.permutation(shape.n_features).astype(np.int32)
        self._label_ids = rng.permutation(shape.n_labels).astype(np.int32)
        rare = _law(shape.n_features, 0.4)  # words of a topic are less common than others
        drawn = _draw(rare, rng, shape.n_labels * TOPIC)
        self._topics = self._word_ids[drawn].reshape(shape.n_labels, TOPIC)
        for place, size in enumerate(shape.groups):
            # A share of each topic is the words of the group instead.
            shared = TOPIC // (len(shape.groups) + 1)
            first = np.arange(shape.n_labels) // size * size
            part = slice(place * shared, (place + 1) * shared)
            self._topics[:, part] = self._topics[first, part]

    @cached_property
    def _weight_of_word(self) -> np.ndarray:
        """The inverse document frequency of each feature, from the laws."""
        shape = self.shape
        rate = np.zeros(shape.n_features)
        rate[self._word_ids] = np.diff(self._words, prepend=0.0) * _BACKGROUND * shape.words
        of_label = np.diff(self._labels, prepend=0.0) * _TOPICAL * shape.words / TOPIC
        np.add.at(rate, self._topics, of_label[:, None])
        return (-np.log1p(-np.exp(-rate))).clip(0.1, 14.0)

    def chunks(self, split: str) -> Iterator[tuple[sparse.csr_matrix, sparse.csr_matrix]]:
        """Words and labels of the documents of a split, ``CHUNK`` documents at a time."""
        n = {"train": self.shape.n_train, "test": self.shape.n_test}[split]
        for number, first in enumerate(range(0, n, CHUNK)):
            rng = np.random.default_rng((self.seed, 1 + SPLITS.index(split), number))
            yield self._documents(min(CHUNK, n - first), rng)

    def _documents(
        self, n: int, rng: np.random.Generator
    ) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        shape = self.shape
        carried = rng.poisson(shape.labels - 1, n) + 1
        ranks = _draw(self._labels, rng, int(carried.sum()))
        first = np.cumsum(carried) - carried
        if shape.groups:
            ranks = self._together(ranks, np.repeat(first, carried), rng)
        topical = np.repeat(np.arange(n), rng.poisson(_TOPICAL * shape.words, n))
        label = ranks[first[topical] + rng.integers(0, carried[topical])]
        background = np.repeat(np.arange(n), rng.poisson(_BACKGROUND * shape.words, n))
        words = [
            self._topics[label, rng.integers(0, TOPIC, len(topical))],
            self._word_ids[_draw(self._words, rng, len(background))],
        ]
        X = _counts(np.concatenate([topical, background]), np.concatenate(words), n, shape)
        X.data = ((1 + np.log(X.data)) * self._weight_of_word[X.indices]).astype(np.float32)
        owner = np.repeat(np.arange(n), carried)
        ones = np.ones(len(owner), np.float32)
        Y = sparse.csr_matrix((ones, (owner, self._label_ids[ranks])), shape=(n, shape.n_labels))
        Y.sum_duplicates()
        Y.data[:] = 1
        return X, Y

    def _together(
        self, ranks: np.ndarray, first: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Labels with most of a document's later ones taken from the groups of its first."""
        shape = self.shape
        kind = rng.integers(0, len(shape.groups) + 1, len(ranks))
        kind[first == np.arange(len(ranks))] = len(shape.groups)  # the first stays as drawn
        for place, size in enumerate(shape.groups):
            own = np.flatnonzero(kind == place)
            start = ranks[first[own]] // size * size
            room = np.minimum(size, shape.n_labels - start)
            ranks[own] = start + (rng.random(len(own)) * room).astype(ranks.dtype)
        return ranks

    def train(self) -> Split:
        """The training documents in memory, rows of unit length."""
        bows, labels = zip(*self.chunks("train"), strict=True)
        X, Y = (sparse.csr_matrix(sparse.vstack(parts)) for parts in (bows, labels))
        return Split(Inputs(bow=as_unit_rows(X)), Y)

    def write(self, split: str, path: Path) -> None:
        """A split as a file in XC format, values with four decimals."""
        n = {"train": self.shape.n_train, "test": self.shape.n_test}[split]
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            file.write(f"{n} {self.shape.n_features} {self.shape.n_labels}\n".encode())
            for X, Y in self.chunks(split):
                text = np.empty((X.nnz + Y.nnz + X.shape[0]) * _NUMBER_BYTES, np.uint8)
                used = _format(X.indptr, X.indices, X.data, Y.indptr, Y.indices, text)
                file.write(text[:used].data)


def _law(size: int, power: float) -> np.ndarray:
    """The cumulative probabilities of ranks by a power law."""
    law = np.cumsum((np.arange(size) + 5.0) ** -power)
    return law / law[-1]


def _draw(law: np.ndarray, rng: np.random.Generator, amount: int) -> np.ndarray:
    return np.minimum(np.searchsorted(law, rng.random(amount)), len(law) - 1)


def _counts(rows: np.ndarray, words: np.ndarray, n: int, shape: Shape) -> sparse.csr_matrix:
    """How often each document has each word."""
    ones = np.ones(len(rows), np.float32)
    X = sparse.csr_matrix((ones, (rows, words)), shape=(n, shape.n_features))
    X.sum_duplicates()
    return X


@njit(nogil=True, cache=True)
def _put(number, out, at):  # type: ignore[no-untyped-def]
    """Write a whole number in digits; returns where it ends."""
    size = 1
    rest = number // 10
    while rest > 0:
        size += 1
        rest //= 10
    for place in range(size):
        out[at + size - 1 - place] = 48 + number % 10
        number //= 10
    return at + size


@njit(nogil=True, cache=True)
def _format(indptr, indices, data, label_indptr, labels, out):  # type: ignore[no-untyped-def]
    """Lines ``l1,l2 f:v f:v`` of rows; returns how many bytes they take."""
    at = 0
    unit = 10**_DECIMALS
    for row in range(len(indptr) - 1):
        for q in range(label_indptr[row], label_indptr[row + 1]):
            if q > label_indptr[row]:
                out[at] = 44  # a comma
                at += 1
            at = _put(np.int64(labels[q]), out, at)
        for p in range(indptr[row], indptr[row + 1]):
            out[at] = 32  # a space
            at = _put(np.int64(indices[p]), out, at + 1)
            out[at] = 58  # a colon
            fixed = np.int64(np.rint(np.float64(data[p]) * unit))
            at = _put(fixed // unit, out, at + 1)
            out[at] = 46  # a full stop
            at += 1
            part = fixed % unit
            for place in range(_DECIMALS):
                out[at + _DECIMALS - 1 - place] = 48 + part % 10
                part //= 10
            at += _DECIMALS
        out[at] = 10  # a line feed
        at += 1
    return at
