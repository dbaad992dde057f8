"""Multi-label attention: each label reads the document with a vector of its own (AttentionXML).

For hidden states h_t and the vector w_l of label l, the attention is softmax_t(h_t . w_l) over the
tokens that are not padding, and the context of l is the mean of h_t by it. Where only logits are
asked for, the first linear layer of the shared head is applied to the hidden states instead of to
the contexts: both are linear, so the result is the same, and there are fewer tokens than labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from methods.text.head import SharedHead

KEPT_NUMBERS = 100_000_000
"""Attention weights (documents x tokens x labels) that are held at a time; 4 bytes each."""
CACHED_NUMBERS = 500_000
"""Attention weights that are computed at a time on a CPU: what its cache holds."""


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
        return nn.functional.softmax(self.vectors[labels] @ hidden.T, dim=-1) @ hidden

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

    def logits(
        self,
        head: SharedHead,
        columns: torch.Tensor | None = None,
        kept_numbers: int = KEPT_NUMBERS,
    ) -> torch.Tensor:
        """The head's logits of all labels, float[n, L], or only of the labels in ``columns``."""
        vectors = self.vectors if columns is None else self.vectors[columns]
        found = fused_logits(self.hidden, self.mask, vectors, head, kept_numbers)
        if self.changed is None:
            return found
        rows, labels, changed = self.changed
        if columns is not None:
            place = torch.full((len(self.vectors),), -1, device=columns.device)
            place[columns] = torch.arange(len(columns), device=columns.device)
            there = place[labels] >= 0
            rows, labels, changed = rows[there], place[labels[there]], changed[there]
        logits = head(changed, vectors[labels]).to(found.dtype)
        return found.index_put((rows, labels), logits)


def attention(hidden: torch.Tensor, mask: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Attention of each label over the tokens, float[n, L, T]; 0 at padding."""
    return _softmax(torch.matmul(vectors, hidden.transpose(1, 2)), mask)


def _softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return nn.functional.softmax(scores.masked_fill(~mask.unsqueeze(1), -torch.inf), dim=-1)


def fused_logits(
    hidden: torch.Tensor,
    mask: torch.Tensor,
    vectors: torch.Tensor,
    head: SharedHead,
    kept_numbers: int = KEPT_NUMBERS,
) -> torch.Tensor:
    """Logits of all labels, float[n, L]; where more than ``kept_numbers`` attention weights would
    have to be kept for the backward pass, they are computed again there.

    ``vectors`` is float[L, d], or float[n, L, d] where each document has labels of its own.
    """
    first = head.first()
    # The bias passes through the attention unchanged: its weights sum to 1.
    projected = nn.functional.linear(hidden, first.weight, first.bias)
    keep = hidden.shape[0] * hidden.shape[1] * vectors.shape[-2] <= kept_numbers
    if hidden.device.type != "cpu":
        return _by_operations(
            hidden, mask, vectors, projected, head, None if keep else kept_numbers
        )
    lengths = mask.sum(dim=1).tolist()
    reached, matched = _Attended.apply(hidden, projected, vectors, lengths, keep, head.match)
    logits = head.above_relu(reached)
    return logits + head.match * matched if head.match else logits


def _by_operations(
    hidden: torch.Tensor,
    mask: torch.Tensor,
    vectors: torch.Tensor,
    projected: torch.Tensor,
    head: SharedHead,
    at_once: int | None,
) -> torch.Tensor:
    """The same by whole operations, as a card likes it; ``at_once`` attention weights at a time,
    computed again in the backward pass, where it is not None."""

    def part(some: torch.Tensor, hidden: torch.Tensor, projected: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(some, hidden.transpose(1, 2))
        weights = _softmax(scores, mask)
        logits = head.above_relu(nn.functional.relu(weights @ projected))
        return logits + head.match * (weights * scores).sum(dim=-1) if head.match else logits

    if at_once is None:
        return part(vectors, hidden, projected)
    chunks = vectors.split(max(1, at_once // (hidden.shape[0] * hidden.shape[1])), dim=-2)
    return torch.cat(
        [checkpoint(part, some, hidden, projected, use_reentrant=False) for some in chunks], dim=1
    )


class _Attended(torch.autograd.Function):
    """relu(attention @ projected), float[n, L, m], document by document within the cache; and the
    product of each context with its label's vector, float[n, L], where ``match`` is not 0.

    Documents are taken at their own lengths, so padding costs nothing and no mask is needed. With
    attention P, scores S and outputs R, the gradient of the softmax needs sum_t P dP, which is the
    sum over the output of R dR. The product is Q = sum_t P S; its gradient by S is P (1 + S - Q).
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        projected: torch.Tensor,
        vectors: torch.Tensor,
        lengths: list[int],
        keep: bool,
        match: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        result = hidden.new_empty(len(hidden), vectors.shape[-2], projected.shape[2])
        matched = hidden.new_empty(result.shape[:2] if match else 0)
        kept = []
        for i, rows, h in _blocks(hidden, vectors, lengths):
            scores = _of_document(vectors, i)[rows] @ h.T
            weights = torch.softmax(scores, dim=-1)
            torch.mm(weights, projected[i, : len(h)], out=result[i, rows])
            if match:
                matched[i, rows] = torch.linalg.vecdot(weights, scores)
            if keep and any(ctx.needs_input_grad):
                # Where scores are needed again, the softmax is the cheaper of the two to redo.
                kept.append(scores if match else weights)
        result.relu_()
        ctx.save_for_backward(hidden, projected, vectors, result, matched)
        ctx.lengths, ctx.kept, ctx.match = lengths, kept, match
        return result, matched

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        hidden, projected, vectors, result, matched = ctx.saved_tensors
        slope, of_matched = slopes
        of_hidden = torch.zeros_like(hidden)
        of_projected = torch.zeros_like(projected)
        of_vectors = torch.zeros_like(vectors)
        for number, (i, rows, h) in enumerate(_blocks(hidden, vectors, ctx.lengths)):
            some, length = _of_document(vectors, i)[rows], len(h)
            if ctx.kept and ctx.kept[number] is not None:  # else a second backward pass, of SSMix
                kept, ctx.kept[number] = ctx.kept[number], None
            else:
                kept = some @ h.T if ctx.match else torch.softmax(some @ h.T, dim=-1)
            weights = torch.softmax(kept, dim=-1) if ctx.match else kept
            reached = result[i, rows]
            into = slope[i, rows] * (reached > 0)
            of_projected[i, :length].addmm_(weights.T, into)
            of_scores = torch.mm(into, projected[i, :length].T)
            constant = -(into * reached).sum(dim=1)
            if ctx.match:
                of_scores.addcmul_(kept, of_matched[i, rows, None])
                constant += of_matched[i, rows] * (1.0 - matched[i, rows])
            of_scores.add_(constant[:, None]).mul_(weights)
            of_hidden[i, :length].addmm_(of_scores.T, some)
            _of_document(of_vectors, i)[rows].addmm_(of_scores, h)
        return of_hidden, of_projected, of_vectors, None, None, None


def _of_document(vectors: torch.Tensor, i: int) -> torch.Tensor:
    return vectors if vectors.dim() == 2 else vectors[i]


def _blocks(
    hidden: torch.Tensor, vectors: torch.Tensor, lengths: list[int]
) -> Iterator[tuple[int, slice, torch.Tensor]]:
    """Document, labels and hidden states of each block that is computed at a time."""
    for i, length in enumerate(lengths):
        size = max(64, CACHED_NUMBERS // length)
        for start in range(0, vectors.shape[-2], size):
            yield i, slice(start, start + size), hidden[i, :length]
