"""A bidirectional LSTM with a learnt initial state, as AttentionXML's encoder.

Sequences stay padded: the backward direction reads each sequence reversed within its own length,
so that padding comes last in both directions and changes nothing. PyTorch's packed sequences give
the same numbers but miss the fused kernels of the CPU, which are several times faster to train.
"""

from __future__ import annotations

import torch
from torch import nn

from methods.text.dropout import Dropout


class BiLSTM(nn.Module):
    """One layer in both directions; ``2 * hidden`` numbers per token."""

    def __init__(self, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.hidden = hidden
        self.onward = nn.LSTM(inputs, hidden, batch_first=True)
        self.backward_ = nn.LSTM(inputs, hidden, batch_first=True)
        self.start = nn.Parameter(torch.zeros(2, 2, hidden))  # direction; hidden, cell
        self.dropout = Dropout(dropout)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Hidden states, float[n, T, 2 * hidden]; zero at padding."""
        reverse = reversal(mask)
        onward = self._run(self.onward, x, 0)
        backward = self._run(self.backward_, _reorder(x, reverse), 1)
        states = torch.cat([onward, _reorder(backward, reverse)], dim=-1)
        return torch.as_tensor(self.dropout(states * mask.unsqueeze(-1)))

    def _run(self, lstm: nn.LSTM, x: torch.Tensor, direction: int) -> torch.Tensor:
        state = self.start[direction].unsqueeze(1).unsqueeze(1)  # hidden and cell: [1, 1, hidden]
        hidden, cell = state.expand(2, 1, len(x), self.hidden)
        states: torch.Tensor = lstm(x, (hidden.contiguous(), cell.contiguous()))[0]
        return states


def reversal(mask: torch.Tensor) -> torch.Tensor:
    """For each place its mirror image within the sequence; padding stays where it is."""
    length = mask.sum(dim=1, keepdim=True)
    place = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return torch.where(mask, length - 1 - place, place)


def _reorder(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return x.gather(1, places.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
