"""The embedding model of the GLaS paper: documents and labels in one space (secs. 2.1, 3.1).

A document's bag of words goes through the layer of word vectors, a ReLU and, if there is one, a
second layer; labels have an embedding each; the score of a label is the inner product. The word
vectors and the labels are numpy arrays, of which a step touches some rows; the rest are small
tensors that torch updates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import normalize

from methods.embedding.bag import WordVectors, bag, update_rows


class Network:
    """The parameters and what they map documents and labels to.

    ``relu``: word vectors are followed by a bias and a ReLU; otherwise the layer is linear.
    ``unit``: documents and labels are scaled to length 1. ``weight_norm``: in each layer the
    weights of an output have length 1 times one factor that the outputs share (GLaS sec. 3.1); the
    factor of the last layer, labels, is ``length`` at first and multiplies the scores.
    """

    def __init__(
        self,
        words: np.ndarray,
        bias: np.ndarray,
        hidden: np.ndarray | None,
        labels: np.ndarray,
        length: float = 1.0,
        *,
        relu: bool = True,
        unit: bool = True,
        weight_norm: bool = False,
    ) -> None:
        self.words = WordVectors(words, measured=weight_norm)
        self.bias = torch.from_numpy(bias)
        self.hidden = None if hidden is None else torch.from_numpy(hidden)
        self.unit_labels = unit or weight_norm
        self.labels = labels
        self.label_sums = np.zeros(len(labels), np.float32)
        self.lengths = torch.tensor([1.0, 1.0, length])
        """Factors of the word vectors, the second layer and the scores."""
        self.relu, self.unit, self.weight_norm = relu, unit, weight_norm

    @classmethod
    def random(
        cls,
        n_features: int,
        n_labels: int,
        dim: int,
        width: int,
        rng: np.random.Generator,
        **settings: Any,
    ) -> Network:
        """Gaussian weights: every vector is of length 1 on average. ``width`` 0: one layer."""

        def gaussian(rows: int, columns: int) -> np.ndarray:
            drawn = rng.standard_normal((rows, columns), dtype=np.float32)
            drawn /= np.float32(np.sqrt(columns))
            return drawn

        outputs = width or dim
        network = cls(
            gaussian(n_features, outputs),
            np.zeros(outputs, np.float32),
            gaussian(width, dim) if width else None,
            gaussian(n_labels, dim),
            **settings,
        )
        if network.unit_labels:
            network.labels /= np.linalg.norm(network.labels, axis=1, keepdims=True)
        return network

    def trained_by_torch(self) -> list[torch.Tensor]:
        """The small parameters, made to collect gradients."""
        parts = [self.bias] if self.relu else []
        parts += [] if self.hidden is None else [self.hidden]
        parts += [self.lengths] if self.weight_norm else []
        return [part.requires_grad_() for part in parts]

    def embed_sums(self, sums: torch.Tensor) -> torch.Tensor:
        """The embeddings of documents, float[n, d], from the sums of their word vectors.

        The lengths of the columns of the word vectors count as constants in the gradient. They
        depend on every word, and what is left out, the gradient along the weights of an output,
        changes their length, which is divided out again, and not their direction.
        """
        if self.weight_norm:
            lengths = np.sqrt(np.maximum(self.words.squares, 1e-12)).astype(np.float32)
            sums = sums * (self.lengths[0] / torch.from_numpy(lengths))
        if self.relu:
            sums = (sums + self.bias).relu()
        if self.hidden is not None:
            weights = self.hidden
            if self.weight_norm:
                weights = normalize(weights, dim=0) * self.lengths[1]
            sums = sums @ weights
        return normalize(sums, dim=1) if self.unit else sums

    def embed(self, X: sparse.csr_matrix) -> torch.Tensor:
        """The embeddings of documents, float[n, d], without gradients."""
        with torch.no_grad():
            return self.embed_sums(torch.from_numpy(bag(X, self.words.vectors)))

    def label_rows(self, labels: np.ndarray) -> torch.Tensor:
        """The embeddings of some labels, the factor of the scores left out; no copy for all."""
        every = len(labels) == len(self.labels)
        return torch.from_numpy(self.labels if every else self.labels[labels])

    def update_labels(self, labels: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        """One step of the embeddings of distinct labels."""
        update_rows(self.labels, self.label_sums, labels, gradient, rate, self.unit_labels)

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters by name, for saving; what training alone needs is left out."""
        found = {
            "words": self.words.vectors,
            "bias": self.bias.detach().numpy(),
            "labels": self.labels,
            "lengths": self.lengths.detach().numpy(),
        }
        return found if self.hidden is None else {**found, "hidden": self.hidden.detach().numpy()}

    def flags(self) -> dict[str, bool]:
        """How the parameters are to be read."""
        return {"relu": self.relu, "unit": self.unit, "weight_norm": self.weight_norm}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], flags: Mapping[str, bool]) -> Network:
        """The network of :meth:`arrays` and :meth:`flags`."""
        network = cls(
            arrays["words"], arrays["bias"], arrays.get("hidden"), arrays["labels"], **flags
        )
        network.lengths = torch.from_numpy(arrays["lengths"])
        return network


class TouchedLabels:
    """Label embeddings of one step: ``labels[indices]`` gives rows that collect gradients.

    Only the rows that were asked for are copied, differentiated and moved.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._asked: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __getitem__(self, labels: torch.Tensor) -> torch.Tensor:
        rows = torch.from_numpy(self._network.labels[labels.numpy()]).requires_grad_()
        self._asked.append((labels, rows))
        # Of length 1 already: this is for the gradient, which has no part along the rows then.
        return normalize(rows, dim=1) if self._network.unit_labels else rows

    def step(self, rate: float) -> None:
        """Move the rows that were asked for against the sum of their gradients."""
        used = [(labels, rows.grad) for labels, rows in self._asked if rows.grad is not None]
        labels, place = torch.cat([labels for labels, _ in used]).unique(return_inverse=True)
        gradient = torch.zeros(len(labels), self._network.labels.shape[1])
        gradient.index_add_(0, place, torch.cat([grad for _, grad in used]))
        self._network.update_labels(labels.numpy(), gradient.numpy(), rate)
