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
        return self.above_relu(F.relu(self.layers[0](contexts)))

    def above_relu(self, x: torch.Tensor) -> torch.Tensor:
        """Logits from what the first layer gave, its ReLU included."""
        for layer in self.layers[1:]:
            x = F.relu(layer(x))
        return torch.as_tensor(self.output(x).squeeze(-1))
