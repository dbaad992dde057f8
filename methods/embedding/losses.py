"""The losses of a batch: margin (GLaS eq. 1), with or without mining, and softmax.

All take the score of one positive label per document and the scores of its negatives; where a
negative is a label of the document it is left out.

With mining most scores have no part in the loss: they are computed to find the largest, and only
those are differentiated, by products as sparse as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from methods.embedding.bag import bag, picked_products


def margin_loss(
    positive: torch.Tensor, negative: torch.Tensor, carried: torch.Tensor, margin: float
) -> torch.Tensor:
    """Mean over documents of the sum over negatives of [negative - positive + margin]_+.

    ``positive`` is float[B], ``negative`` float[B, n], ``carried`` bool[B, n]: the negative is a
    label of the document, or none at all.
    """
    terms = (negative - positive[:, None] + margin).clamp_min(0.0)
    return terms.masked_fill(carried, 0.0).sum(dim=1).mean()


def softmax_loss(
    positive: torch.Tensor, negative: torch.Tensor, carried: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy of the positive among itself and the negatives, mean over documents.

    The GLaS paper's loss for Delicious-200K (sec. 4).
    """
    others = negative.masked_fill(carried, -torch.inf)
    return (torch.cat([positive[:, None], others], dim=1).logsumexp(dim=1) - positive).mean()


def hardest(
    documents: torch.Tensor, labels: torch.Tensor, carried: torch.Tensor, mined: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of ``labels`` with the largest scores for each document, and whether they are out.

    int64[B, mined] and bool[B, mined]; stochastic negative mining (Reddi et al. 2019, the GLaS
    paper's reference 25) takes the loss over these alone.
    """
    with torch.no_grad():
        scores = (documents @ labels.T).masked_fill_(carried, -torch.inf)
        best = scores.topk(min(mined, labels.shape[0]), dim=1, sorted=False)
        return best.indices, best.values == -torch.inf


class PickedScores(torch.autograd.Function):
    """``documents[i] . labels[picked[i, j]]``, float[B, m], differentiated sparsely."""

    @staticmethod
    def forward(
        ctx: Any, documents: torch.Tensor, labels: torch.Tensor, picked: np.ndarray
    ) -> torch.Tensor:
        ctx.save_for_backward(documents, labels)
        ctx.picked = picked
        return torch.from_numpy(picked_products(documents.numpy(), labels.numpy(), picked))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        documents, labels = ctx.saved_tensors
        rows, columns = ctx.picked.shape
        weights = sparse.csr_matrix(
            (
                gradients[0].numpy().ravel(),
                ctx.picked.ravel(),
                np.arange(0, rows * columns + 1, columns),
            ),
            shape=(rows, len(labels)),
        )
        return (
            torch.from_numpy(bag(weights, labels.numpy())),
            torch.from_numpy(bag(weights.T.tocsr(), documents.numpy())),
            None,
        )
