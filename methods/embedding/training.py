"""Training of the embedding model by batches: Algorithms 1 and 2 of the GLaS paper.

What the paper leaves open is decided here as follows. An epoch takes every document with a label
once. A step draws one label of each document uniformly (as the algorithms do) and negatives that
the whole batch shares, uniformly from the labels that occur in train; the loss sums over them.
Word vectors and label embeddings move by row-wise Adagrad, the small parameters by Adagrad.

Torch runs on one thread: with several, its sums are split otherwise and the result would depend on
the number of cores. The layer of word vectors uses all the threads that are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import torch
from scipy import sparse

from methods.embedding.bag import bag, thinned
from methods.embedding.losses import PickedScores, hardest, margin_loss, softmax_loss
from methods.embedding.network import Network, TouchedLabels
from methods.hooks.regulariser import Regulariser
from methods.interface import FitContext


@dataclass(frozen=True)
class Settings:
    """How a step is made; see :class:`methods.embedding.embedding.Embedding`."""

    loss: str
    margin: float
    negatives: int
    mined: int
    keep: float
    batch: int
    rate: float
    decay: bool


class Batch(NamedTuple):
    """The documents of a step, their drawn labels and the negatives."""

    X: sparse.csr_matrix
    positives: np.ndarray
    negatives: np.ndarray
    carried: np.ndarray
    """bool[B, n]: the negative is a label of the document, or of no document at all."""


class Batches:
    """The batches of a training split, drawn by one generator."""

    def __init__(
        self,
        X: sparse.csr_matrix,
        labels: sparse.csr_matrix,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self.X, self.labels, self.settings, self.rng = X, labels, settings, rng
        self.documents = np.flatnonzero(np.diff(labels.indptr))
        self.occurring = np.unique(labels.indices).astype(np.int64)
        self.absent = np.setdiff1d(np.arange(labels.shape[1]), self.occurring)
        self._place = np.full(labels.shape[1], -1, np.int64)

    def __len__(self) -> int:
        return -(-len(self.documents) // self.settings.batch)

    def epoch(self) -> Iterator[Batch]:
        """Every document once, in random order."""
        order = self.rng.permutation(self.documents)
        for first in range(0, len(order), self.settings.batch):
            yield self.of(order[first : first + self.settings.batch])

    def of(self, documents: np.ndarray) -> Batch:
        """A batch of these documents."""
        X = thinned(self.X[documents], self.settings.keep, self.rng)
        labels = self.labels[documents]
        sizes = np.diff(labels.indptr)
        drawn = labels.indptr[:-1] + (self.rng.random(len(documents)) * sizes).astype(np.int64)
        sampled = 0 < self.settings.negatives < len(self.occurring)
        if sampled:
            n = self.settings.negatives
            drawn_too = self.rng.choice(self.occurring, n, replace=False, shuffle=False)
            negatives = np.sort(drawn_too)
        else:
            negatives = np.arange(self.labels.shape[1])
        self._place[negatives] = np.arange(len(negatives))
        column = self._place[labels.indices]
        self._place[negatives] = -1
        row = np.repeat(np.arange(len(documents)), sizes)
        carried = np.zeros((len(documents), len(negatives)), bool)
        carried[row[column >= 0], column[column >= 0]] = True
        if not sampled:
            carried[:, self.absent] = True
        return Batch(X, labels.indices[drawn].astype(np.int64), negatives, carried)


def batch_loss(
    network: Network,
    sums: torch.Tensor,
    labels: TouchedLabels,
    batch: Batch,
    settings: Settings,
    regularisers: Sequence[Regulariser],
) -> torch.Tensor:
    """The loss of a batch with its penalty, from the sums of the documents' word vectors."""
    documents = network.embed_sums(sums)
    length = network.lengths[2]
    positives = torch.from_numpy(batch.positives)
    positive = (documents * labels[positives]).sum(dim=1) * length
    carried = torch.from_numpy(batch.carried)
    if settings.loss == "margin" and settings.mined:
        rows = network.label_rows(batch.negatives)
        picked, carried = hardest(documents, rows, carried, settings.mined)
        used, place = np.unique(batch.negatives[picked.numpy()], return_inverse=True)
        other = labels[torch.from_numpy(used)]
        negative = PickedScores.apply(documents, other, place.reshape(picked.shape)) * length
    else:
        negative = documents @ labels[torch.from_numpy(batch.negatives)].T * length
    if settings.loss == "margin":
        loss = margin_loss(positive, negative, carried, settings.margin)
    else:
        loss = softmax_loss(positive, negative, carried)
    if not regularisers:
        return loss
    return loss + sum(hook.penalty(labels, positives, documents) for hook in regularisers)


def train(
    network: Network,
    batches: Batches,
    epochs: int,
    regularisers: Sequence[Regulariser],
    context: FitContext,
) -> Iterator[float]:
    """Train epoch by epoch; after each one, its mean loss."""
    settings = batches.settings
    small = network.trained_by_torch()
    optimiser = torch.optim.Adagrad(small, lr=settings.rate) if small else None
    total, done = epochs * len(batches), 0
    for _ in range(epochs):
        losses = []
        for batch in batches.epoch():
            rate = settings.rate * (1.0 - done / total if settings.decay else 1.0)
            sums = torch.from_numpy(bag(batch.X, network.words.vectors)).requires_grad_()
            labels = TouchedLabels(network)
            loss = batch_loss(network, sums, labels, batch, settings, regularisers)
            if optimiser is not None:
                optimiser.zero_grad()
                optimiser.param_groups[0]["lr"] = rate
            loss.backward()
            assert sums.grad is not None
            network.words.update(batch.X, sums.grad.numpy(), rate)
            labels.step(rate)
            if optimiser is not None:
                optimiser.step()
            losses.append(loss.item())
            done += 1
            context.progress(done, total, "batches")
        yield float(np.mean(losses))


@contextmanager
def threads_for(given: int) -> Iterator[None]:
    """One thread for torch, ``given`` for compiled loops; as before afterwards."""
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(max(1, min(given, numba.config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
