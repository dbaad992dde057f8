"""A term added to the training loss (GLaS and its rivals), for bases that have label embeddings."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from methods.hooks import Hook


class Regulariser(Hook):
    """A penalty on what the base learns."""

    kind = "regulariser"

    @abc.abstractmethod
    def penalty(
        self,
        label_embeddings: Any,
        targets: Any,
        document_embeddings: Any | None = None,
        rng: np.random.Generator | None = None,
    ) -> Any:
        """The term to add to a batch's loss: a scalar of the type of the base's loss.

        ``label_embeddings[labels]`` gives the embeddings of some labels, float[n, d]: a tensor
        float[L, d], or whatever a base has that can be indexed so. ``targets`` are the batch's
        labels: one drawn for each document, int64[B], or all of them, B x L with non-zeros.
        ``document_embeddings`` are the batch's documents in the space of the labels, float[B, d],
        where the base has such. What is drawn at random comes from ``rng``; a base that computes
        parts of a batch side by side must give one.
        """

    def joined(self, other: Regulariser) -> Regulariser:
        """The sum of both penalties."""
        return _Sum(self, other)


class _Sum(Regulariser):
    def __init__(self, *terms: Regulariser) -> None:
        self.terms = terms

    def penalty(
        self,
        label_embeddings: Any,
        targets: Any,
        document_embeddings: Any | None = None,
        rng: np.random.Generator | None = None,
    ) -> Any:
        return sum(
            term.penalty(label_embeddings, targets, document_embeddings, rng) for term in self.terms
        )


class DocumentRegulariser(Regulariser):
    """A penalty that needs ``document_embeddings``, which not every base has."""

    kind = "document_regulariser"
