"""Multi-label attention: each label reads the document with a vector of its own (AttentionXML).

For hidden states h_t and the vector w_l of label l, the attention is softmax_t(h_t . w_l) over the
tokens that are not padding, and the context of l is the mean of h_t by it. Where only logits are
asked for, the first linear layer of the shared head is applied to the hidden states instead of to
the contexts: both are linear, so the result is the same, and there are fewer tokens than labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from methods.text.head import SharedHead

CHUNK_NUMBERS = 64_000_000
"""Attention weights (documents x tokens x labels) that are held at a time; 4 bytes each."""


class LabelAttention(nn.Module):
    """One attention vector per label, without bias, drawn by Xavier's rule times ``scale``."""

    def __init__(self, n_labels: int, width: int, scale: float = 1.0) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(n_labels, width))
        nn.init.xavier_uniform_(self.vectors, gain=scale)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> LabelContexts:
        """The contexts of all labels, computed where they are asked for."""
        return LabelContexts(hidden, mask, self.vectors)


@dataclass(frozen=True)
class LabelContexts:
    """Context vectors of a batch's documents, one per label: float[n, L, d] if all were made.

    ``changed`` holds contexts that replace those computed here: rows int[m], labels int[m] and
    vectors float[m, d].
    """

    hidden: torch.Tensor
    mask: torch.Tensor
    vectors: torch.Tensor
    changed: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def of(self, row: int, labels: torch.Tensor) -> torch.Tensor:
        """The contexts of some labels for one document, float[len(labels), d]."""
        hidden = self.hidden[row][self.mask[row]]
        return F.softmax(self.vectors[labels] @ hidden.T, dim=-1) @ hidden

    def all(self) -> torch.Tensor:
        """Every context, float[n, L, d], without those that were changed."""
        return attention(self.hidden, self.mask, self.vectors) @ self.hidden

    def with_changed(
        self, rows: torch.Tensor, labels: torch.Tensor, vectors: torch.Tensor
    ) -> LabelContexts:
        """These contexts, but of the pairs (row, label) the given vectors."""
        if self.changed is not None:
            earlier = self.changed
            rows = torch.cat([earlier[0], rows])
            labels = torch.cat([earlier[1], labels])
            vectors = torch.cat([earlier[2], vectors])
        return replace(self, changed=(rows, labels, vectors))

    def logits(self, head: SharedHead, chunk_numbers: int = CHUNK_NUMBERS) -> torch.Tensor:
        """The head's logits of all labels, float[n, L]."""
        found = fused_logits(self.hidden, self.mask, self.vectors, head, chunk_numbers)
        if self.changed is None:
            return found
        rows, labels, vectors = self.changed
        return found.index_put((rows, labels), head(vectors))


def attention(hidden: torch.Tensor, mask: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Attention of each label over the tokens, float[n, L, T]; 0 at padding."""
    scores = torch.matmul(vectors, hidden.transpose(1, 2))
    return F.softmax(scores.masked_fill(~mask.unsqueeze(1), -torch.inf), dim=-1)


def fused_logits(
    hidden: torch.Tensor,
    mask: torch.Tensor,
    vectors: torch.Tensor,
    head: SharedHead,
    chunk_numbers: int = CHUNK_NUMBERS,
) -> torch.Tensor:
    """Logits of all labels, float[n, L], in chunks of labels that bound the memory.

    With one chunk, what the backward pass needs is kept; with several, it is computed again.
    """
    first = head.layers[0]
    projected = F.linear(hidden, first.weight)
    n, T, _ = hidden.shape
    size = max(1, chunk_numbers // (n * T))

    def part(some: torch.Tensor, hidden: torch.Tensor, projected: torch.Tensor) -> torch.Tensor:
        return head.after_first(attention(hidden, mask, some) @ projected + first.bias)

    if size >= len(vectors):
        return part(vectors, hidden, projected)
    chunks = vectors.split(size)
    if not torch.is_grad_enabled():
        return torch.cat([part(some, hidden, projected) for some in chunks], dim=1)
    return torch.cat(
        [checkpoint(part, some, hidden, projected, use_reentrant=False) for some in chunks], dim=1
    )
