"""Factors on the loss of each label's positives and negatives (PW and variants like it)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from methods.hooks import Hook


@dataclass(frozen=True)
class LabelWeights(Hook):
    """Factors on the loss of a label's positives and negatives, float64[L] each."""

    positive: np.ndarray
    negative: np.ndarray

    kind = "loss_weights"

    def joined(self, other: LabelWeights) -> LabelWeights:
        """The products of the factors."""
        return LabelWeights(self.positive * other.positive, self.negative * other.negative)

    def of_labels(self, labels: np.ndarray) -> LabelWeights:
        """The factors of these labels."""
        return LabelWeights(self.positive[labels], self.negative[labels])
