"""OLTR, dynamic meta-embedding (Liu et al., CVPR 2019), on HTTN's extractor.

First the plain network is trained. Then a memory of one centroid per label is added: a document's
representation is enriched with what the memory holds for it, scaled by how near it is to any
centroid, and classified by cosine. The extractor is trained on at a tenth of the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text import head_to_tail as h2t
from methods.text.base import TextModel, trained_labels
from methods.text.batches import TokenBatch
from methods.text.document_method import OF_PLAIN_NETWORK, DocumentMethod, recipes
from methods.text.document_network import DocumentNetwork, lengthen_, representations
from methods.text.network import TextNetwork
from methods.text.optimiser import Group

REACH, COSINE = 10.0, 16.0
"""The authors' scales of reachability and of the cosine classifier."""
MARGIN, CENTROID_SHARE, EXTRACTOR_RATE = 10.0, 0.01, 0.1


class MetaNetwork(DocumentNetwork):
    """A trained network with a memory of centroids between extractor and classifier."""

    def __init__(self, trained: DocumentNetwork, centroids: torch.Tensor) -> None:
        nn.Module.__init__(self)
        n_labels, size = centroids.shape
        self.embedding, self.lstm = trained.embedding, trained.lstm
        self.attention, self.classifier = trained.attention, nn.Linear(size, n_labels, bias=False)
        self.unit, self.cosine, self.scale = False, True, trained.scale
        lengthen_(self.classifier.weight)
        self.memory = nn.Parameter(centroids.clone())
        self.hallucinator = nn.Linear(size, n_labels)
        self.selector = nn.Linear(size, size)

    def direct(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The representations as the extractor gives them."""
        return super().contexts(hidden, mask)

    def contexts(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Meta-embeddings of the documents, float[n, d]."""
        return self.enriched(self.direct(hidden, mask))

    def enriched(self, v: torch.Tensor) -> torch.Tensor:
        """(v + tanh(selector) * memory feature) * reach / distance to the nearest centroid."""
        memory = self.memory.detach()
        feature = torch.softmax(self.hallucinator(v), dim=1) @ memory
        nearest = torch.cdist(v, memory).min(dim=1, keepdim=True).values.clamp(min=1e-6)
        return REACH / nearest * (v + torch.tanh(self.selector(v)) * feature)

    def logits(self, contexts: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
        """Cosines times 16, squashed by the length of the meta-embedding."""
        length = contexts.norm(dim=1, keepdim=True)
        rows = self.label_embeddings()
        rows = rows if columns is None else rows[columns]
        return COSINE * (contexts / (1.0 + length)) @ rows.T


def centroid_loss(v: torch.Tensor, centroids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Draws representations to the centroids of their labels and away from the others."""
    distance = torch.cdist(v, centroids).square()
    attract = (targets * distance).sum() / targets.sum().clamp(min=1)
    others = 1.0 - targets
    repel = (others * distance).sum() / others.sum().clamp(min=1)
    return 0.5 * attract + (MARGIN - repel).clamp(min=0)


def meta_loss(
    network: MetaNetwork,
    batch: TokenBatch,
    targets: torch.Tensor,
    epoch: int,
    rng: np.random.Generator,
) -> torch.Tensor:
    """Cross-entropy of the cosine classifier, and a little of the centroids' loss."""
    v = network.direct(*network.encode(network.embed(batch), batch.mask))
    entropy = F.binary_cross_entropy_with_logits(network.logits(network.enriched(v)), targets)
    return entropy + CENTROID_SHARE * centroid_loss(v, network.memory, targets)


class OLTR(DocumentMethod):
    """Memory of class centroids, in two stages of training."""

    name = "OLTR"
    accepts = frozenset()
    RECIPES = recipes({"meta_epochs": 3}, without=OF_PLAIN_NETWORK)

    meta_epochs: int

    def groups(self, network: TextNetwork) -> Sequence[Group] | None:
        """In the second stage the extractor learns at a tenth of the rate."""
        if not isinstance(network, MetaNetwork):
            return None
        parts = (network.embedding, network.lstm, network.attention)
        slow = [p for part in parts for p in part.parameters() if p.requires_grad]
        known = {id(p) for p in slow}
        rest = [p for p in network.parameters() if p.requires_grad and id(p) not in known]
        return [(slow, EXTRACTOR_RATE), (rest, 1.0)]

    @price_only
    def stages(self, n_labels: int) -> list[tuple[int, float]]:
        """Both stages train the whole network."""
        return [(self.epochs + self.meta_epochs, n_labels)]

    def fit_in(self, train: Split, context: FitContext) -> TextModel:
        labels = trained_labels(train, context.dev)
        labels = labels[train.label_counts()[labels] > 0]  # a centroid needs a document
        plain = self.seeded(train, labels, context)
        assert isinstance(plain, DocumentNetwork)
        first = self.train(plain, train, labels, context, name="first")
        documents = self.documents(train.inputs, context.resources)
        R = representations(plain, documents, context.device, context.threads)
        centroids = h2t.prototypes(R, h2t.Documents(train.labels, labels).rows)
        torch.manual_seed(context.seed + 1)
        network = MetaNetwork(plain, centroids.to(context.device))
        schedule = replace(self.schedule(), epochs=self.meta_epochs)
        second = self.train(
            network, train, labels, context, loss=meta_loss, schedule=schedule, name="second"
        )
        second.notes[:0] = first.notes
        return self.model(network, labels, train, context, second)
