"""BBN, the bilateral-branch network (Zhou et al., CVPR 2020), on HTTN's extractor.

A branch sees documents as they come, the other draws rare labels more often. They share the LSTM
and have an attention and an embedding each; alpha moves training from the first to the second:
alpha = 1 - (epoch / epochs)^2. In prediction both count alike.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.base import TextModel, trained_labels
from methods.text.batches import TokenBatch
from methods.text.document_method import OF_PLAIN_NETWORK, DocumentMethod, recipes
from methods.text.document_network import DocumentNetwork, SelfAttention
from methods.text.embedding import WordEmbedding
from methods.text.training import Examples


def bilateral_share(epoch: int, epochs: int) -> float:
    """alpha of an epoch, counted from 0: 1 at first, near 0 at last."""
    return 1.0 - (epoch / epochs) ** 2


class ReversedSampler:
    """Draws documents by a label drawn with probability in proportion to 1 / its frequency."""

    def __init__(self, labels: sparse.csr_matrix) -> None:
        self.by_label = sparse.csc_matrix(labels)
        counts = np.diff(self.by_label.indptr)
        weight = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
        self.chance = weight / weight.sum()

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of n documents, drawn with replacement."""
        labels = rng.choice(len(self.chance), size=n, p=self.chance)
        start, end = self.by_label.indptr[labels], self.by_label.indptr[labels + 1]
        return np.asarray(
            self.by_label.indices[start + (rng.random(n) * (end - start)).astype(int)]
        )


class BilateralNetwork(DocumentNetwork):
    """Two attentions and embeddings on one LSTM; their scaled outputs side by side."""

    def __init__(
        self, embedding: WordEmbedding, hidden: int, size: int, n_labels: int, dropout: float
    ) -> None:
        super().__init__(embedding, hidden, size, n_labels, dropout)
        self.rebalanced = SelfAttention(2 * hidden, size)
        self.classifier = nn.Linear(2 * size, n_labels, bias=False)

    def contexts(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Both branches on the same documents, alike in weight, float[n, 2d]."""
        return torch.cat([self.attention(hidden, mask), self.rebalanced(hidden, mask)], dim=1)

    def mixed(self, usual: TokenBatch, rare: TokenBatch, alpha: float) -> torch.Tensor:
        """Logits in training: documents of either kind through their own branch."""
        one, other = (self.encode(self.embed(batch), batch.mask)[0] for batch in (usual, rare))
        first = alpha * self.attention(one, usual.mask)
        second = (1.0 - alpha) * self.rebalanced(other, rare.mask)
        # Twice, so that training and prediction (both branches at weight 1) are on one scale.
        return self.logits(2.0 * torch.cat([first, second], dim=1))


class BilateralLoss:
    """alpha L(usual documents' labels) + (1 - alpha) L(rare documents' labels)."""

    def __init__(self, examples: Examples, epochs: int) -> None:
        self.examples = examples
        self.sampler = ReversedSampler(examples.labels)
        self.epochs = epochs

    def __call__(
        self,
        network: BilateralNetwork,
        batch: TokenBatch,
        targets: torch.Tensor,
        epoch: int,
        rng: np.random.Generator,
    ) -> torch.Tensor:
        """The loss of a batch, each document of it beside one that is drawn."""
        # Parts of one batch are given equal generators: their first document tells them apart.
        own = np.random.default_rng([int(rng.integers(2**31)), int(batch.rows[0])])
        rows = self.sampler.draw(len(batch), own)
        rare = self.examples.documents.batch(rows, targets.device)
        alpha = bilateral_share(epoch, self.epochs)
        logits = network.mixed(batch, rare, alpha)
        entropy = F.binary_cross_entropy_with_logits
        of_rare = self.examples.targets(rows, targets.device)
        return alpha * entropy(logits, targets) + (1.0 - alpha) * entropy(logits, of_rare)


class BBN(DocumentMethod):
    """Bilateral branches with cumulative learning."""

    name = "BBN"
    accepts = frozenset()
    RECIPES = recipes({}, without=OF_PLAIN_NETWORK)

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> BilateralNetwork:
        """The network with two branches."""
        embedding = self.embedding(train, context)
        return BilateralNetwork(embedding, self.hidden, self.size, len(labels), self.dropout)

    @price_only
    def stages(self, n_labels: int) -> list[tuple[int, float]]:
        """Beside each document another one is drawn."""
        return [(2 * self.epochs, n_labels)]

    def fit_in(self, train: Split, context: FitContext) -> TextModel:
        labels = trained_labels(train, context.dev)
        network = self.seeded(train, labels, context)
        loss = BilateralLoss(self.carrying(train, labels, context), self.epochs)
        history = self.train(network, train, labels, context, loss=loss)
        return self.model(network, labels, train, context, history)
