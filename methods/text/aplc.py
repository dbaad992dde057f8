"""Adaptive probabilistic label clusters, the output layer of APLC-XLNet (Ye et al., ICML 2020).

Labels are sorted by frequency and cut into clusters. The first, the head, is a linear layer that
also has one output, the root, for each other cluster. A tail cluster has a smaller layer of its
own, and the probability of a label in it is that of the root times that of the leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

Normalisation = Literal["eq24", "cluster"]


def log_probability(root: Tensor, leaf: Tensor) -> tuple[Tensor, Tensor]:
    """log p and log (1 - p) of p = sigmoid(root) sigmoid(leaf), without loss of digits.

    1 - p = (exp(-r) + exp(-l) + exp(-r - l)) / ((1 + exp(-r)) (1 + exp(-l))).
    """
    log_p = functional.logsigmoid(root) + functional.logsigmoid(leaf)
    log_rest = torch.logaddexp(torch.logaddexp(-root, -leaf), -root - leaf)
    return log_p, log_rest + log_p


class LabelClusters(nn.Module):
    """Vectors of documents in, label probabilities or the training loss out.

    ``order`` are the labels by falling frequency, ``cutoffs`` where the clusters end in it, but
    for the last. Tail cluster i has a hidden layer of width / shrink^i. Neither layer has a bias,
    as in the authors' code.
    """

    order: Tensor
    position: Tensor

    def __init__(
        self, width: int, order: np.ndarray, cutoffs: Sequence[int], shrink: float = 2.0
    ) -> None:
        super().__init__()
        edges = [*cutoffs, len(order)]
        if edges[0] < 1 or sorted(set(edges)) != edges:
            raise ValueError(
                f"cutoffs {list(cutoffs)} must rise and lie between 1 and {len(order) - 1}"
            )
        self.edges = edges
        self.head = nn.Linear(width, edges[0] + len(cutoffs), bias=False)
        self.tails = nn.ModuleList(
            _tail(width, max(1, int(width // shrink ** (i + 1))), edges[i + 1] - edges[i])
            for i in range(len(cutoffs))
        )
        self.register_buffer("order", torch.from_numpy(np.asarray(order, dtype=np.int64)))
        self.register_buffer("position", torch.argsort(self.order))

    @property
    def clusters(self) -> list[slice]:
        """Where each cluster is among the labels by frequency, the head first."""
        return [slice(a, b) for a, b in zip([0, *self.edges[:-1]], self.edges, strict=True)]

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits float[B, L] of the label probabilities, labels in the order of the data."""
        scores = self.head(vectors)
        parts = [scores[:, : self.edges[0]]]
        for i, tail in enumerate(self.tails):
            log_p, log_rest = log_probability(scores[:, self.edges[0] + i, None], tail(vectors))
            parts.append(log_p - log_rest)
        return torch.cat(parts, dim=1)[:, self.position]

    def loss(self, vectors: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The mean over documents of the mean cross-entropy of the terms a document has.

        Its terms are all labels of the head, all labels of the tail clusters in which it has one,
        and the roots of the others, which should be 0. ``weights`` float[L] multiply the loss of
        a label's positives.
        """
        targets = targets[:, self.order]
        weights = None if weights is None else weights[self.order]
        scores = self.head(vectors)
        n_head = self.edges[0]
        head = scores[:, :n_head]
        found = functional.binary_cross_entropy_with_logits(
            head,
            targets[:, :n_head],
            pos_weight=None if weights is None else weights[:n_head],
            reduction="none",
        )
        total = found.sum(dim=1)
        terms = torch.full_like(total, n_head)
        for i, (tail, where) in enumerate(zip(self.tails, self.clusters[1:], strict=True)):
            root = scores[:, n_head + i]
            present = (targets[:, where] > 0).any(dim=1)
            total = total + torch.where(present, 0.0, functional.softplus(root))
            terms = terms + torch.where(present, where.stop - where.start, 1)
            rows = present.nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            log_p, log_rest = log_probability(root[rows, None], tail(vectors[rows]))
            y = targets[rows, where]
            positive = y if weights is None else y * weights[where]
            leaves = -(positive * log_p + (1 - y) * log_rest).sum(dim=1)
            total = total.index_add(0, rows, leaves)
        return (total / terms).mean()

    def label_vectors(self) -> Tensor:
        """The last layers' weights float[L, width], labels in the order of the data.

        Those of tail clusters are shorter and filled up by 0, which leaves their norms.
        """
        parts = [self.head.weight[: self.edges[0]]]
        parts += [tail[-1].weight for tail in self.tails]  # type: ignore[index]
        width = self.head.in_features
        return torch.cat([functional.pad(p, (0, width - p.shape[1])) for p in parts])[self.position]


def normalised(
    weights: np.ndarray, order: np.ndarray, edges: Sequence[int], how: Normalisation
) -> np.ndarray:
    """Positive weights as they enter the loss.

    ``eq24``: their mean over all labels is 1 (PW eq. 24). ``cluster``: those of each cluster sum
    to the number of all labels, as in the code of PW; their mean is then the number of clusters
    where these are of equal size.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if how == "eq24":
        return weights / weights.mean()
    found = np.empty_like(weights)
    for first, end in zip([0, *edges[:-1]], edges, strict=True):
        cluster = order[first:end]
        found[cluster] = weights[cluster] * len(weights) / weights[cluster].sum()
    return found


def even_cutoffs(n_labels: int, n_clusters: int) -> list[int]:
    """Cutoffs of clusters of equal size, as the authors set them (EUR-Lex: half)."""
    edges = [n_labels * i // n_clusters for i in range(1, n_clusters)]
    return [edge for edge in sorted(set(edges)) if 0 < edge < n_labels]


def _tail(width: int, hidden: int, labels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden, bias=False),
        nn.LayerNorm(hidden),
        nn.ReLU(),
        nn.Linear(hidden, labels, bias=False),
    )
