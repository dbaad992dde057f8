"""Factors on the loss of each label's positives and negatives (PW and variants like it)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from methods.hooks import Hook


@dataclass(frozen=True)
class LabelWeights(Hook):
    """Factors on the loss of a label's positives and negatives, float64[L] each.

    ``law`` gives the positives' factors from training counts and inverse propensities, for bases
    that train on clusters of labels (PW sec. 3 counts the documents of a cluster).
    """

    positive: np.ndarray
    negative: np.ndarray
    law: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    kind = "loss_weights"

    def joined(self, other: LabelWeights) -> LabelWeights:
        """The products of the factors."""
        laws = [self.law, other.law]
        law = None
        if all(laws):
            law = lambda counts, p: np.prod([f(counts, p) for f in laws if f], axis=0)  # noqa: E731
        return LabelWeights(self.positive * other.positive, self.negative * other.negative, law)

    def of_labels(self, labels: np.ndarray) -> LabelWeights:
        """The factors of these labels."""
        return LabelWeights(self.positive[labels], self.negative[labels], self.law)
