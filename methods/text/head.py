"""The classifier that all labels share: context vector in, one logit out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F


class SharedHead(nn.Module):
    """Linear layers with ReLU between them, the same for every label, and one output."""

    def __init__(self, inputs: int, sizes: Sequence[int]) -> None:
        super().__init__()
        widths = [inputs, *sizes]
        self.layers = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True)
        )
        self.output = nn.Linear(widths[-1], 1)
        for layer in [*self.layers, self.output]:
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, contexts: torch.Tensor) -> torch.Tensor:
        """Logits of context vectors: [..., d] -> [...]."""
        first: torch.Tensor = self.layers[0](contexts)
        return self.after_first(first)

    def after_first(self, x: torch.Tensor) -> torch.Tensor:
        """Logits from what the first linear layer gave, before its ReLU."""
        for layer in self.layers[1:]:
            x = layer(F.relu(x))
        return torch.as_tensor(self.output(F.relu(x)).squeeze(-1))
