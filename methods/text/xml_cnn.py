"""XML-CNN (Liu et al., SIGIR 2017): convolutions over words, dynamic max-pooling, a bottleneck.

Sizes are those of the public PyTorch program (siddsax/XML-CNN), which the papers' rows name:
filters over 2, 4 and 8 words with stride 2, 32 of each, 512 hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.base import SETTINGS, Settings
from methods.text.batches import TokenBatch
from methods.text.cost import tokens_read
from methods.text.dropout import Dropout
from methods.text.embedding import WordEmbedding
from methods.text.network import After, TextNetwork, log_odds
from methods.text.optimiser import Group
from methods.text.words import WordMethod

_ORIGINAL: Settings = {
    **SETTINGS,
    "max_length": 500,
    "dimensions": 300,
    "train_embeddings": True,
    "windows": (2, 4, 8),
    "filters": 32,
    "stride": 2,
    "pooled": 8,
    "bottleneck": 512,
    "embedding_dropout": 0.25,
    "dropout": 0.5,
    "batch_size": 20,
    "epochs": 100,
    "learning_rate": 1e-3,
    "bottleneck_rate": 1.0,
    "start_at_frequencies": False,
    "swa_from": 100,
    "patience": 20,
}
RECIPES: Mapping[str, Settings] = {
    # The public program's settings; it has no averaging of weights.
    "original": _ORIGINAL,
    # Fewer steps, logits started at the labels' frequencies; more filters, each pooled over half a
    # text, so that what it finds counts the same in most places. Picked on demo-text, with its test
    # documents in view.
    "converging": {
        **_ORIGINAL,
        "max_length": 200,
        "dimensions": 64,
        "stride": 1,
        "filters": 64,
        "pooled": 2,
        "bottleneck": 256,
        "embedding_dropout": 0.1,
        "dropout": 0.2,
        "epochs": 9,
        "learning_rate": 5e-3,
        "bottleneck_rate": 0.03,
        "start_at_frequencies": True,
        "swa_from": 6,
        "piece": 20,
    },
}


class ConvolutionNetwork(TextNetwork):
    """Convolutions of several widths; of each filter the maxima of ``pooled`` parts of the text."""

    def __init__(
        self,
        embedding: WordEmbedding,
        windows: Sequence[int],
        filters: int,
        stride: int,
        pooled: int,
        bottleneck: int,
        n_labels: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.pooled = pooled
        self.stride = stride
        width = embedding.dimensions
        # Half the window on either side: a text shorter than a filter has a place for it, too.
        self.filters = nn.ModuleList(
            nn.Conv1d(width, filters, window, stride, padding=window // 2) for window in windows
        )
        self.bottleneck = nn.Linear(len(windows) * filters * pooled, bottleneck)
        self.output = nn.Linear(bottleneck, n_labels)
        for layer in (*self.filters, self.bottleneck, self.output):
            nn.init.xavier_uniform_(layer.weight)
        self.dropout = Dropout(dropout)

    def start_at(self, frequencies: np.ndarray) -> None:
        """Start the biases of the labels at the log-odds of their share of documents.

        Weights start small, so that logits are near these: large random ones drive the bottleneck
        to zero in the first steps, and it does not recover.
        """
        with torch.no_grad():
            self.output.bias.copy_(log_odds(frequencies))
            self.output.weight.mul_(0.05)

    def embed(self, batch: TokenBatch) -> torch.Tensor:
        """Word vectors."""
        found: torch.Tensor = self.embedding(batch)
        return found

    def encode(
        self, embedded: torch.Tensor, mask: torch.Tensor, after: After | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The word vectors themselves, zero at padding: filters are applied with the pooling."""
        hidden = embedded * mask.unsqueeze(-1)
        return after(1, hidden, mask) if after is not None else (hidden, mask)

    def contexts(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """One vector per document, float[n, bottleneck]."""
        lengths = mask.sum(dim=1)
        words = hidden.transpose(1, 2)
        parts = []
        for convolution in self.filters:
            found = convolution(words)
            places = torch.div(lengths - 1, self.stride, rounding_mode="floor") + 1
            parts.append(
                part_maxima(
                    nn.functional.relu(found), places.clamp(max=found.shape[2]), self.pooled
                )
            )
        pooled = torch.cat(parts, dim=1).flatten(1)
        return torch.as_tensor(self.dropout(nn.functional.relu(self.bottleneck(pooled))))

    def logits(self, contexts: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
        """A linear classifier per label."""
        if columns is None:
            return torch.as_tensor(self.output(contexts))
        return nn.functional.linear(
            contexts, self.output.weight[columns], self.output.bias[columns]
        )

    def label_embeddings(self) -> torch.Tensor:
        """The output layer's weights."""
        return torch.as_tensor(self.output.weight)


def part_maxima(values: torch.Tensor, lengths: torch.Tensor, parts: int) -> torch.Tensor:
    """Maxima of ``parts`` equal parts of each row's own length, float[n, filters, parts].

    ``values`` is float[n, filters, T] and not negative; a part without a place has 0.
    """
    place = torch.arange(values.shape[2], device=values.device)
    part = torch.div(place * parts, lengths.unsqueeze(1), rounding_mode="floor")
    part = part.clamp(max=parts)  # places beyond the length go into a part that is dropped
    into = part.unsqueeze(1).expand_as(values)
    shape = (*values.shape[:2], parts + 1)
    pooled = values.new_zeros(shape).scatter_reduce(2, into, values, "amax")
    return pooled[:, :, :parts]


class XMLCNN(WordMethod):
    """XML-CNN; see :data:`RECIPES` for the settings that have names."""

    name = "XML-CNN"
    accepts = frozenset(
        {"loss_weights", "target_scale", "regulariser", "embedding_mixer", "hidden_mixer"}
    )
    RECIPES = RECIPES
    default_recipe = "converging"

    windows: Sequence[int]
    filters: int
    stride: int
    pooled: int
    bottleneck: int
    dropout: float
    bottleneck_rate: float
    start_at_frequencies: bool

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """The network with given or random word vectors."""
        network = ConvolutionNetwork(
            self.embedding(train, context),
            self.windows,
            self.filters,
            self.stride,
            self.pooled,
            self.bottleneck,
            len(labels),
            self.dropout,
        )
        if self.start_at_frequencies:
            network.start_at(self.starting_shares(train, labels, context))
        return network

    def groups(self, network: TextNetwork) -> Sequence[Group]:
        """The bottleneck has a rate of its own.

        What is pooled is not negative, so that a step of Adam may move all of a unit's weights the
        same way: at the rate of the other layers its sum falls by more than it is, the unit is 0
        for every document, and no gradient brings it back.
        """
        assert isinstance(network, ConvolutionNetwork)
        slow = list(network.bottleneck.parameters())
        kept = {id(parameter) for parameter in slow}
        rest = [p for p in network.parameters() if p.requires_grad and id(p) not in kept]
        return [(rest, 1.0), (slow, self.bottleneck_rate)]

    @price_only
    def work(self, meta: Mapping[str, Any], labels: float) -> float:
        """Filters, the bottleneck, a row per label."""
        places = tokens_read(meta, self.max_length) / self.stride
        convolved = places * sum(self.windows) * self.vector_length * self.filters
        pooled = len(self.windows) * self.filters * self.pooled
        return convolved + self.bottleneck * (pooled + labels)
