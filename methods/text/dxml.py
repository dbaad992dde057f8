"""DXML (Zhang et al., ICMR 2018) on HTTN's extractor: documents meet labels in a label graph.

The extractor is trained to map a document to the mean vector of its labels in the graph; a new
document gets the labels of the training documents that are mapped near it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch.nn import functional as F  # noqa: N812

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.interface import FitContext, Model
from methods.text import label_graph
from methods.text.base import trained_labels
from methods.text.batches import Documents, TokenBatch
from methods.text.document_method import OF_PLAIN_NETWORK, DocumentMethod, recipes
from methods.text.document_network import DocumentNetwork, representations


def embedding_loss(
    network: DocumentNetwork,
    batch: TokenBatch,
    targets: torch.Tensor,
    epoch: int,
    rng: np.random.Generator,
) -> torch.Tensor:
    """Huber's loss between representations and the mean vectors of the documents' labels."""
    V = network.classifier.weight
    wanted = targets @ V / targets.sum(dim=1, keepdim=True).clamp(min=1)
    return F.smooth_l1_loss(network.represent(batch), wanted) * V.shape[1]


class DXML(DocumentMethod):
    """Label-graph embedding and search for the nearest training documents."""

    name = "DXML"
    accepts = frozenset()
    # Representations lie in the space of the graph, so its dimensions are their size.
    RECIPES = recipes({"size": 100, "neighbours": 10}, without=OF_PLAIN_NETWORK)

    neighbours: int

    def fit_in(self, train: Split, context: FitContext) -> NeighbourModel:
        labels = trained_labels(train, context.dev)
        vectors = label_graph.label_vectors(train.labels[:, labels], self.size)
        torch.manual_seed(context.seed)
        embedding = self.embedding(train, context)
        shape = (self.hidden, vectors.shape[1], len(labels), self.dropout)
        network = DocumentNetwork(embedding, *shape)
        # Inner products with the labels' vectors rank labels for the choice of weights on dev.
        network.classifier.weight.requires_grad = False
        with torch.no_grad():
            network.classifier.weight.copy_(torch.from_numpy(vectors))
        history = self.train(network, train, labels, context, loss=embedding_loss)
        documents = self.documents(train.inputs, context.resources)
        R = representations(network, documents, context.device, context.threads)
        return NeighbourModel(
            network,
            R.numpy(),
            train.labels,
            self.neighbours,
            self.max_length,
            device=context.device,
            threads=context.threads,
            notes=history.notes,
        )


class NeighbourModel(Model):
    """A trained extractor, the training documents as it sees them, and their labels."""

    decision_threshold = 0.5

    def __init__(
        self,
        network: DocumentNetwork,
        documents: np.ndarray,
        labels: sparse.csr_matrix,
        neighbours: int,
        max_length: int,
        *,
        device: str = "cpu",
        threads: int = 1,
        notes: Sequence[str] = (),
    ) -> None:
        self.network = network
        self.documents = documents
        self.labels = labels
        self.neighbours = neighbours
        self.max_length = max_length
        self.device = device
        self.threads = threads
        self.notes = list(notes)

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """Labels by their share among the nearest training documents; those at 0 are left out."""
        assert inputs.tokens is not None
        queries = Documents.of(inputs.tokens, self.max_length)
        R = representations(self.network, queries, self.device, self.threads).numpy()
        scores = label_graph.neighbour_scores(R, self.documents, self.labels, self.neighbours)
        return TopK.from_dense(np.where(scores > 0, scores, -np.inf), k)

    def save(self, folder: Path) -> None:
        """The network, the training documents' representations and labels."""
        torch.save(self.network, folder / "network.pt")
        np.save(folder / "documents.npy", self.documents)
        sparse.save_npz(folder / "labels.npz", self.labels)
        facts = {"neighbours": self.neighbours, "max_length": self.max_length}
        (folder / "model.json").write_text(json.dumps({**facts, "notes": list(self.notes)}))

    @classmethod
    def load(cls, folder: Path) -> NeighbourModel:
        """The model that :meth:`save` wrote, on the CPU."""
        network = torch.load(folder / "network.pt", map_location="cpu", weights_only=False)
        labels = sparse.csr_matrix(sparse.load_npz(folder / "labels.npz"))
        facts = json.loads((folder / "model.json").read_text())
        return cls(network, np.load(folder / "documents.npy"), labels, **facts)
