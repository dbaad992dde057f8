"""Factors on the loss of each label's positives and negatives (PW and variants like it)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from methods.hooks import Hook

OfCounts = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LabelWeights(Hook):
    """Factors on the loss of a label's positives and negatives, float64[L] each.

    ``of_groups`` gives the factors of the positives of groups of labels from their numbers of
    documents, for bases that also train classifiers of groups; None leaves those as they are.
    """

    positive: np.ndarray
    negative: np.ndarray
    of_groups: OfCounts | None = None

    kind = "loss_weights"

    def joined(self, other: LabelWeights) -> LabelWeights:
        """The products of the factors."""
        given = [f for f in (self.of_groups, other.of_groups) if f is not None]
        of_groups = partial(_product, given) if given else None
        return LabelWeights(
            self.positive * other.positive, self.negative * other.negative, of_groups
        )

    def of_labels(self, labels: np.ndarray) -> LabelWeights:
        """The factors of these labels."""
        return LabelWeights(self.positive[labels], self.negative[labels], self.of_groups)


def _product(functions: Sequence[OfCounts], counts: np.ndarray) -> np.ndarray:
    factors: np.ndarray = np.prod([function(counts) for function in functions], axis=0)
    return factors
