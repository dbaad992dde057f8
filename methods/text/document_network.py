"""HTTN's extractor: one vector per document, by a BiLSTM and self-attention (eqs. 1-5)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from methods.text.batches import Documents, TokenBatch, prediction_batches
from methods.text.embedding import WordEmbedding
from methods.text.lstm import BiLSTM
from methods.text.network import After, TextNetwork
from methods.text.predicting import TOKENS_AT_ONCE
from methods.text.training import one_thread_per_operation

SCALE = 10.0
"""At the start, where representations have length 1 (imprinted weights, HTTN's released code)."""
GAIN = 8.0
"""On the usual initial values of W_2: the mean state of an untrained LSTM is so short that without
it the first epochs find out little more than how frequent each label is."""


def lengthen_(rows: torch.Tensor) -> None:
    """Long rows, in place: a step turns a row by its size over the row's length, and rows that
    are used at length 1 would otherwise turn too far in each."""
    nn.init.normal_(rows)


class SelfAttention(nn.Module):
    """The states of a document's words, weighted and embedded (eq. 3): [n, T, 2k] -> [n, d]."""

    def __init__(self, width: int, size: int, bias: bool = False) -> None:
        super().__init__()
        self.weight_of_word = nn.Linear(width, 1, bias=False)  # W_1
        self.embed = nn.Linear(width, size, bias=bias)  # W_2
        with torch.no_grad():
            self.embed.weight *= GAIN

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Representations; padding has weight 0."""
        scores = self.weight_of_word(hidden).squeeze(-1).masked_fill(~mask, -torch.inf)
        mean = torch.bmm(torch.softmax(scores, dim=1).unsqueeze(1), hidden).squeeze(1)
        return torch.as_tensor(self.embed(mean))


class DocumentNetwork(TextNetwork):
    """Extractor and a classifier without bias, its rows the labels (eq. 4).

    With ``unit``, representations have length 1 and logits a learnt scale, and W_2 a bias, as in
    the released code. With ``cosine``, the classifier's rows have length 1 as well, as weight
    imprinting asks for, and labels have a bias: the softmax it was made for needs none, but
    without one a sigmoid makes all representations alike.
    """

    def __init__(
        self,
        embedding: WordEmbedding,
        hidden: int,
        size: int,
        n_labels: int,
        dropout: float = 0.0,
        unit: bool = False,
        cosine: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.lstm = BiLSTM(embedding.dimensions, hidden, dropout)
        self.attention = SelfAttention(2 * hidden, size, bias=unit)
        self.classifier = nn.Linear(size, n_labels, bias=False)
        self.unit = unit
        self.cosine = cosine
        self.scale = nn.Parameter(torch.tensor(SCALE if unit else 1.0), requires_grad=unit)
        self.bias = nn.Parameter(torch.zeros(n_labels), requires_grad=cosine)
        if cosine:
            lengthen_(self.classifier.weight)

    def embed(self, batch: TokenBatch) -> torch.Tensor:
        """Word vectors."""
        return torch.as_tensor(self.embedding(batch))

    def encode(
        self, embedded: torch.Tensor, mask: torch.Tensor, after: After | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The states of the LSTM, its only layer."""
        hidden = self.lstm(embedded, mask)
        return after(1, hidden, mask) if after is not None else (hidden, mask)

    def contexts(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Representations of the documents, float[n, d]."""
        r: torch.Tensor = self.attention(hidden, mask)
        return F.normalize(r, dim=1) if self.unit else r

    def logits(self, contexts: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
        """Inner products of representations and classifier rows, scaled, and the bias."""
        rows: torch.Tensor = self.label_embeddings()
        bias: torch.Tensor = self.bias
        if columns is not None:
            rows, bias = rows[columns], bias[columns]
        return self.scale * (contexts @ rows.T) + bias

    def label_embeddings(self) -> torch.Tensor:
        """The rows of the classifier, as they are used."""
        rows = self.classifier.weight
        return F.normalize(rows, dim=1) if self.cosine else rows

    def represent(self, batch: TokenBatch) -> torch.Tensor:
        """The representations of a batch, float[n, d]."""
        return self.contexts(*self.encode(self.embed(batch), batch.mask))


def representations(
    network: DocumentNetwork, documents: Documents, device: str = "cpu", threads: int = 1
) -> torch.Tensor:
    """The representations of all documents, float32[n, d], on the CPU and not to be trained."""
    network.eval()
    found = torch.empty(len(documents), network.attention.embed.out_features)

    def work(rows: np.ndarray) -> None:
        with torch.no_grad():
            found[torch.from_numpy(rows)] = network.represent(documents.batch(rows, device)).cpu()

    groups = list(prediction_batches(documents.lengths, TOKENS_AT_ONCE))
    with one_thread_per_operation(), ThreadPoolExecutor(max(1, threads)) as pool:
        list(pool.map(work, groups))
    return found
