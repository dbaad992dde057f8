"""Word embeddings: given vectors or none, trained or frozen, as AttentionXML sets them up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.data.vectors import open_vectors
from methods.text.batches import PADDING, TokenBatch
from methods.text.dropout import Dropout

SEPARATOR = "/SEP/"
SEPARATOR_STANDS_FOR = "."


def initial_vectors(
    vocabulary: Sequence[str], folder: Path | None, dimensions: int, rng: np.random.Generator
) -> np.ndarray:
    """A vector for each word, float32[V, d]: the given one, U(-1, 1) where there is none.

    Padding is 0. Amazon's separator of title and text has the vector of the full stop. With
    ``folder`` None all words are drawn, and ``dimensions`` says how long the vectors are.
    """
    if folder is None:
        vectors = rng.uniform(-1.0, 1.0, (len(vocabulary), dimensions)).astype(np.float32)
    else:
        words, given = open_vectors(folder)
        position = {word: i for i, word in enumerate(words)}
        vectors = rng.uniform(-1.0, 1.0, (len(vocabulary), given.shape[1])).astype(np.float32)
        names = (SEPARATOR_STANDS_FOR if word == SEPARATOR else word for word in vocabulary)
        found = np.array([position.get(word, -1) for word in names])
        there = np.flatnonzero(found >= 0)
        vectors[there] = given[found[there]].astype(np.float32)
    vectors[PADDING] = 0.0
    return vectors


class WordEmbedding(nn.Module):
    """Vectors of words, thinned by dropout; gradients of trained ones are sparse."""

    def __init__(self, vectors: np.ndarray, trained: bool, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(
            vectors.shape[0], vectors.shape[1], padding_idx=PADDING, sparse=True
        )
        with torch.no_grad():
            self.words.weight.copy_(torch.from_numpy(vectors))
        self.words.weight.requires_grad = trained
        self.dropout = Dropout(dropout)

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.words.embedding_dim)

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """The vectors of a batch, float32[n, T, d]."""
        return torch.as_tensor(self.dropout(self.words(batch.ids)))
