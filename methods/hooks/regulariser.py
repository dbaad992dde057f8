"""A term added to the training loss (GLaS and its rivals), for bases that have embeddings."""

from __future__ import annotations

import abc
from typing import Any

from methods.hooks import Hook


class Regulariser(Hook):
    """A penalty on what the base learns."""

    kind = "regulariser"

    @abc.abstractmethod
    def penalty(self, label_embeddings: Any, targets: Any) -> Any:
        """The term to add to a batch's loss: a scalar of the type of the base's loss."""

    def joined(self, other: Regulariser) -> Regulariser:
        """The sum of both penalties."""
        return _Sum(self, other)


class _Sum(Regulariser):
    def __init__(self, *terms: Regulariser) -> None:
        self.terms = terms

    def penalty(self, label_embeddings: Any, targets: Any) -> Any:
        return sum(term.penalty(label_embeddings, targets) for term in self.terms)
