"""Deep text bases that start from word vectors: a resource that a parameter names, or none."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from benchmarks.data.split import Split
from methods.interface import FitContext
from methods.text.base import Settings, TextMethod
from methods.text.embedding import WordEmbedding, initial_vectors


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
