"""The classifier that all labels share: context vector in, one logit out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


class SharedHead(nn.Module):
    """Linear layers with ReLU between them, the same for every label, and one output.

    ``match`` times the product of a context with the vector of its label is added to the logit.
    AttentionXML has none of it: its head sees the context alone, so a label has to learn to attend
    sharply before the head can tell its contexts from others, which takes thousands of steps.
    """

    def __init__(self, inputs: int, sizes: Sequence[int], match: float = 0.0) -> None:
        super().__init__()
        self.match = match
        widths = [inputs, *sizes]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.output = nn.Linear(widths[-1], 1)
        for layer in [*self.layers, self.output]:
            nn.init.xavier_uniform_(layer.weight)

    def first(self) -> nn.Linear:
        """The layer that sees the contexts."""
        layer = self.layers[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(self, contexts: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Logits of contexts [..., d] of labels whose vectors are [..., d]: [...]."""
        logits = self.above_relu(nn.functional.relu(self.layers[0](contexts)))
        return logits + self.match * (contexts * vectors).sum(dim=-1) if self.match else logits

    def above_relu(self, x: torch.Tensor) -> torch.Tensor:
        """Logits from what the first layer gave, its ReLU included."""
        for layer in self.layers[1:]:
            x = nn.functional.relu(layer(x))
        return torch.as_tensor(self.output(x).squeeze(-1))
