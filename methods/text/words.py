"""Deep text bases that start from word vectors: a resource that a parameter names, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from benchmarks.data.cards import all_cards
from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.base import Settings, TextMethod
from methods.text.cost import tokens_read
from methods.text.embedding import WordEmbedding, initial_vectors

ASSUMED_WORDS_KNOWN = 100_000
"""Size of the vocabulary where the data do not say, for the estimate of memory."""


class WordMethod(TextMethod):
    """``word_vectors`` names a resource; without it, embeddings are learnt from random ones of
    ``dimensions`` numbers. Given vectors have their own length."""

    SAME: ClassVar[Settings] = {"word_vectors": None}

    word_vectors: str | None
    train_embeddings: bool
    dimensions: int
    embedding_dropout: float

    @property
    def resources(self) -> frozenset[str]:
        """The word vectors, if any."""
        return frozenset({self.word_vectors} if self.word_vectors else ())

    def embedding(self, train: Split, context: FitContext) -> WordEmbedding:
        """The embedding of the training split's vocabulary."""
        assert train.inputs.tokens is not None
        folder = context.resources[self.word_vectors] if self.word_vectors else None
        rng = np.random.default_rng([context.seed, 0])
        vectors = initial_vectors(train.inputs.tokens.vocabulary, folder, self.dimensions, rng)
        return WordEmbedding(vectors, self.train_embeddings, self.embedding_dropout)

    @property
    @price_only
    def vector_length(self) -> int:
        """Numbers per word: those of given vectors, as far as their card is known."""
        card = all_cards().get(self.word_vectors or "")
        return self.dimensions if card is None else int(card.counts["dimensions"])

    @price_only
    def trained_vectors(self, meta: Mapping[str, Any]) -> float:
        """Of the words that are read, unless the vectors stay as given."""
        return self.train_embeddings * tokens_read(meta, self.max_length) * self.vector_length

    @price_only
    def parameters_mb(self, meta: Mapping[str, Any], n_labels: int) -> float:
        """Word vectors beside what all have."""
        words = float(meta.get("n_words") or ASSUMED_WORDS_KNOWN)
        own = words * self.vector_length * 4 / 2**20
        return own + super().parameters_mb(meta, n_labels)
