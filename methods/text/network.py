"""What the training loop needs of a network: a forward pass in stages that mixers can act between.

embed -> encode -> contexts -> logits. A network without per-label contexts gives one vector per
document in their place and takes no :class:`~methods.hooks.batch_mixer.ContextMixer`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from methods.text.attention import LabelAttention, LabelContexts
from methods.text.batches import TokenBatch
from methods.text.embedding import WordEmbedding
from methods.text.head import SharedHead
from methods.text.lstm import BiLSTM

After = Callable[[int, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Called after each layer of an encoder with its number (from 1), hidden states and mask; gives
the hidden states and the mask to go on with."""


def log_odds(frequencies: np.ndarray) -> torch.Tensor:
    """Logits at which labels are predicted with these probabilities, float64[L]."""
    share = np.clip(np.asarray(frequencies, np.float64), 1e-6, 1 - 1e-6)
    return torch.from_numpy(np.log(share / (1 - share)))


class TextNetwork(nn.Module, abc.ABC):
    """A network over token batches whose stages are separate calls."""

    n_layers: int = 1

    @abc.abstractmethod
    def embed(self, batch: TokenBatch) -> torch.Tensor:
        """Vectors of the tokens, float[n, T, d]."""

    @abc.abstractmethod
    def encode(
        self, embedded: torch.Tensor, mask: torch.Tensor, after: After | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states, float[n, T, h], and the mask that goes with them."""

    @abc.abstractmethod
    def contexts(self, hidden: torch.Tensor, mask: torch.Tensor) -> Any:
        """What the logits are computed from."""

    @abc.abstractmethod
    def logits(self, contexts: Any, columns: torch.Tensor | None = None) -> torch.Tensor:
        """A logit per document and label, float[n, L], or only of the labels in ``columns``."""

    def label_embeddings(self) -> torch.Tensor | None:
        """A vector per label, float[L, h], for regularisers and norms; None where there is none."""
        return None

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """All stages in a row: the logits of a batch."""
        return self.logits(self.contexts(*self.encode(self.embed(batch), batch.mask)))


class LabelAttentionNetwork(TextNetwork):
    """Any encoder of tokens, then label attention and the shared head."""

    def __init__(
        self,
        width: int,
        n_labels: int,
        head: Sequence[int],
        scale: float = 1.0,
        match: float = 0.0,
    ) -> None:
        super().__init__()
        self.label_bias: torch.Tensor
        self.attention = LabelAttention(n_labels, width, scale)
        self.head = SharedHead(width, head, match)
        self.register_buffer("label_bias", torch.zeros(n_labels))

    def start_at(self, frequencies: np.ndarray) -> None:
        """Add the log-odds of each label's share of documents to its logit, as a constant.

        With logits near 0 at first, every label then starts at its frequency and training need
        not find out first that most labels are rare.
        """
        self.label_bias.copy_(log_odds(frequencies))

    def contexts(self, hidden: torch.Tensor, mask: torch.Tensor) -> LabelContexts:
        """Per-label contexts."""
        found: LabelContexts = self.attention(hidden, mask)
        return found

    def logits(self, contexts: LabelContexts, columns: torch.Tensor | None = None) -> torch.Tensor:
        """The shared head on each context, plus the label's constant."""
        bias = self.label_bias if columns is None else self.label_bias[columns]
        return contexts.logits(self.head, columns) + bias

    def label_embeddings(self) -> torch.Tensor:
        """The attention vectors."""
        return self.attention.vectors


class BiLSTMAttention(LabelAttentionNetwork):
    """AttentionXML's network: word vectors, BiLSTM, label attention, shared head."""

    def __init__(
        self,
        embedding: WordEmbedding,
        hidden: int,
        head: Sequence[int],
        n_labels: int,
        dropout: float,
        scale: float = 1.0,
        match: float = 0.0,
    ) -> None:
        super().__init__(2 * hidden, n_labels, head, scale, match)
        self.embedding = embedding
        self.lstm = BiLSTM(embedding.dimensions, hidden, dropout)

    def embed(self, batch: TokenBatch) -> torch.Tensor:
        """Word vectors."""
        found: torch.Tensor = self.embedding(batch)
        return found

    def encode(
        self, embedded: torch.Tensor, mask: torch.Tensor, after: After | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The states of the LSTM, its only layer."""
        hidden = self.lstm(embedded, mask)
        return after(1, hidden, mask) if after is not None else (hidden, mask)
