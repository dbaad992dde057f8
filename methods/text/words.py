"""Deep text bases that start from word vectors: a resource that a parameter names, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.base import Settings, TextMethod
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

    @price_only
    def parameters_mb(self, meta: Mapping[str, Any], n_labels: int) -> float:
        """Word vectors beside what all have."""
        words = float(meta.get("n_words") or ASSUMED_WORDS_KNOWN)
        own = words * self.dimensions * 4 / 2**20
        return own + super().parameters_mb(meta, n_labels)
