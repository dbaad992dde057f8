"""Weight imprinting (Qi et al., CVPR 2018) on HTTN's extractor.

Representations and classifier rows have length 1, logits a learnt scale that starts at 10. The row
of a tail label is the mean representation of its documents, scaled to length 1. A softmax over
classes needs no bias, a sigmoid per label does. It starts at the log-odds of the label's share of
the documents; a tail label's makes its mean logit over the training documents these log-odds.
"""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.data.split import Split
from methods.interface import FitContext
from methods.text import head_to_tail as h2t
from methods.text.document_method import OF_WEIGHTED_LOSS, DocumentMethod, recipes
from methods.text.document_network import DocumentNetwork, representations
from methods.text.httn import ClassifierModel
from methods.text.network import log_odds


def prior(train: Split) -> torch.Tensor:
    """Log-odds of each label's share of the training documents, float32[L]."""
    return log_odds(train.label_counts() / len(train)).float()


class Imprinting(DocumentMethod):
    """Head labels trained, tail labels imprinted from all their documents."""

    name = "Imprinting"
    accepts = frozenset()
    RECIPES = recipes(
        {"l_tail": 1 / 3},
        small={"learning_rate": 0.04},
        without=(*OF_WEIGHTED_LOSS, "unit"),  # representations always have length 1
    )

    l_tail: float

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> DocumentNetwork:
        """The extractor with a classifier of rows of length 1."""
        embedding = self.embedding(train, context)
        shape = (self.hidden, self.size, len(labels), self.dropout)
        network = DocumentNetwork(embedding, *shape, unit=True, cosine=True)
        with torch.no_grad():
            network.bias.copy_(prior(train)[torch.from_numpy(labels)])
        return network

    def fit_in(self, train: Split, context: FitContext) -> ClassifierModel:
        head, tail = h2t.head_and_tail(train.label_counts(), self.l_tail)
        network = self.seeded(train, head, context)
        assert isinstance(network, DocumentNetwork)
        history = self.train(network, train, head, context)
        documents = self.documents(train.inputs, context.resources)
        R = representations(network, documents, context.device, context.threads)
        imprinted = h2t.prototypes(R, h2t.Documents(train.labels, tail).rows, unit=True)
        M_head = network.label_embeddings().detach().cpu()
        bias = prior(train)
        usual = network.scale.item() * (R @ imprinted.T).mean(dim=0)
        bias[torch.from_numpy(tail)] -= usual
        bias[torch.from_numpy(head)] = network.bias.detach().cpu()
        return ClassifierModel(
            network,
            [h2t.assembled(train.n_labels, head, M_head, tail, imprinted)],
            self.max_length,
            bias=bias,
            device=context.device,
            threads=context.threads,
            notes=[f"{len(head)} head and {len(tail)} tail labels", *history.notes],
        )
