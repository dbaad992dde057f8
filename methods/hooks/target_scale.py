"""Factors on the targets of each label's positives (the unbiased cross-entropy, PW eq. 13)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from methods.hooks import Hook


@dataclass(frozen=True)
class TargetScale(Hook):
    """Factors on the targets of positives, float64[L]; only for losses linear in the target."""

    factors: np.ndarray

    kind = "target_scale"

    def joined(self, other: TargetScale) -> TargetScale:
        """The products of the factors."""
        return TargetScale(self.factors * other.factors)

    def of_labels(self, labels: np.ndarray) -> TargetScale:
        """The factors of these labels."""
        return TargetScale(self.factors[labels])
