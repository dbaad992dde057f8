"""Networks that score a few candidate labels of each document, for label sets of any size."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.evaluation.topk import TopK
from methods.text.attention import fused_logits
from methods.text.batches import TokenBatch, prediction_batches
from methods.text.embedding import WordEmbedding
from methods.text.head import SharedHead
from methods.text.loss import BinaryCrossEntropy
from methods.text.lstm import BiLSTM
from methods.text.network import BiLSTMAttention
from methods.text.predicting import TOKENS_AT_ONCE
from methods.text.training import Examples


class CandidateNetwork(nn.Module):
    """A trained label-attention network with the attention vectors of other labels.

    Embedding, encoder and head are copies of those of the network above; vectors are new, and
    their gradients are sparse.
    """

    def __init__(self, above: BiLSTMAttention | CandidateNetwork, n_labels: int) -> None:
        super().__init__()
        self.embedding: WordEmbedding = copy.deepcopy(above.embedding)
        self.lstm: BiLSTM = copy.deepcopy(above.lstm)
        self.head: SharedHead = copy.deepcopy(above.head)
        self.vectors = nn.Embedding(n_labels, 2 * self.lstm.hidden, sparse=True)
        nn.init.xavier_uniform_(self.vectors.weight)

    def forward(self, batch: TokenBatch, candidates: torch.Tensor) -> torch.Tensor:
        """Logits of the candidates, float[n, C]; those of padding (-1) mean nothing."""
        hidden = self.lstm(self.embedding(batch), batch.mask)
        vectors = self.vectors(candidates.clamp(min=0))
        return fused_logits(hidden, batch.mask, vectors, self.head)

    def label_embeddings(self) -> torch.Tensor:
        """The attention vectors."""
        return self.vectors.weight


@dataclass(frozen=True)
class CandidateExamples(Examples):
    """Documents with candidates, int64[n, C] in ascending order, padded with -1 at the end.

    ``prior`` is the probability of what each candidate was taken from, float32[n, C].
    """

    candidates: np.ndarray
    prior: np.ndarray

    def targets(self, rows: np.ndarray, device: str | torch.device) -> torch.Tensor:
        """Which candidates are labels, float32[n, C]; -1 at padding."""
        found = np.zeros((len(rows), self.candidates.shape[1]), np.float32)
        for i, row in enumerate(rows):
            own = self.labels.indices[self.labels.indptr[row] : self.labels.indptr[row + 1]]
            found[i] = np.isin(self.candidates[row], own)
        found[self.candidates[rows] < 0] = -1.0
        return torch.from_numpy(found).to(device)

    def top(
        self, network: Any, k: int, device: str, pool: ThreadPoolExecutor | None = None
    ) -> TopK:
        """The k candidates of the largest product of probabilities down the tree."""
        network.eval()
        top = TopK.empty(len(self), k)

        def work(rows: np.ndarray) -> None:
            candidates = self.candidates[rows]
            with torch.no_grad():
                batch = self.documents.batch(rows, device)
                logits = network(batch, torch.from_numpy(candidates).to(device))
            scores = torch.sigmoid(logits.double()).cpu().numpy() * self.prior[rows]
            found = TopK.from_dense(np.where(candidates < 0, -np.inf, scores), k)
            there = np.take_along_axis(candidates, np.maximum(found.indices, 0), axis=1)
            top.indices[rows] = np.where(found.indices < 0, -1, there)
            top.scores[rows] = found.scores

        groups = prediction_batches(self.documents.lengths, TOKENS_AT_ONCE)
        for _ in pool.map(work, groups) if pool is not None else map(work, groups):
            pass
        return top


@dataclass(frozen=True)
class CandidateLoss:
    """Cross-entropy over the candidates of a batch's documents."""

    entropy: BinaryCrossEntropy
    candidates: np.ndarray

    def __call__(
        self,
        network: nn.Module,
        batch: TokenBatch,
        targets: torch.Tensor,
        epoch: int,
        rng: np.random.Generator,
    ) -> torch.Tensor:
        """The mean over all candidates; padding does not count."""
        found = torch.from_numpy(self.candidates[batch.rows]).to(targets.device)
        logits = network(batch, found)
        return self.entropy.of_entries(logits, targets, found)


def children(
    top: TopK, group_of: np.ndarray, n_groups: int, also: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """The members of each document's best groups, as candidates, and the groups' probabilities.

    ``group_of`` is the group of each member, int[m]. With ``also`` (csr of documents x groups), a
    document's true groups come first, as in training; they count with probability 1.
    """
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], np.arange(n_groups + 1))
    rows = []
    for i in range(len(top)):
        groups = top.indices[i][top.indices[i] >= 0].astype(np.int64)
        scores = top.scores[i][: len(groups)]
        if also is not None:
            true = also.indices[also.indptr[i] : also.indptr[i + 1]]
            others = ~np.isin(groups, true)
            groups = np.concatenate([true, groups[others]])[: max(top.k, len(true))]
            scores = np.concatenate([np.ones(len(true)), scores[others]])[: len(groups)]
        members = [order[starts[g] : starts[g + 1]] for g in groups]
        found = np.concatenate([np.empty(0, np.int64), *members])
        prior = np.repeat(scores, [len(part) for part in members])
        by_label = np.argsort(found, kind="stable")
        rows.append((found[by_label], prior[by_label]))
    width = max(1, max(len(found) for found, _ in rows))
    candidates = np.full((len(rows), width), -1, np.int64)
    priors = np.zeros((len(rows), width), np.float32)
    for i, (found, prior) in enumerate(rows):
        candidates[i, : len(found)], priors[i, : len(found)] = found, prior
    return candidates, priors
