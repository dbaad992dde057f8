"""The losses of a batch: margin (GLaS eq. 1), with or without mining, and softmax.

All take the score of one positive label per document and the scores of negatives that the batch
shares; where a negative is a label of the document it is left out.
"""

from __future__ import annotations

import torch


def margin_loss(
    positive: torch.Tensor, negative: torch.Tensor, carried: torch.Tensor, margin: float, mined: int
) -> torch.Tensor:
    """Mean over documents of the sum over negatives of [negative - positive + margin]_+.

    With ``mined`` > 0 only the largest so many terms of a document count: stochastic negative
    mining (Reddi et al. 2019, the GLaS paper's reference 25). ``positive`` is float[B],
    ``negative`` float[B, n], ``carried`` bool[B, n]: the negative is a label of the document.
    """
    terms = (negative - positive[:, None] + margin).clamp_min(0.0).masked_fill(carried, 0.0)
    if 0 < mined < terms.shape[1]:
        terms = terms.topk(mined, dim=1, sorted=False).values
    return terms.sum(dim=1).mean()


def softmax_loss(
    positive: torch.Tensor, negative: torch.Tensor, carried: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy of the positive among itself and the negatives, mean over documents.

    The GLaS paper's loss for Delicious-200K (sec. 4).
    """
    others = negative.masked_fill(carried, -torch.inf)
    return (torch.cat([positive[:, None], others], dim=1).logsumexp(dim=1) - positive).mean()
