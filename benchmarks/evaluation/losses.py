"""Losses per label as functions of its score (PW Table 1), their unbiased form and surrogate.

The training of the unbiased squared hinge and the figure of the losses use the same functions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Loss = Callable[[np.ndarray], np.ndarray]


def zero_one_positive(score: np.ndarray) -> np.ndarray:
    """0-1 loss of a relevant label."""
    return np.where(np.asarray(score) <= 0.0, 1.0, 0.0)


def zero_one_negative(score: np.ndarray) -> np.ndarray:
    """0-1 loss of an irrelevant label."""
    return np.where(np.asarray(score) > 0.0, 1.0, 0.0)


def hinge_positive(score: np.ndarray) -> np.ndarray:
    """max(1 - z, 0)."""
    return np.maximum(1.0 - np.asarray(score), 0.0)


def hinge_negative(score: np.ndarray) -> np.ndarray:
    """max(1 + z, 0)."""
    return np.maximum(1.0 + np.asarray(score), 0.0)


def squared_hinge_positive(score: np.ndarray) -> np.ndarray:
    """max(1 - z, 0)^2."""
    return hinge_positive(score) ** 2


def squared_hinge_negative(score: np.ndarray) -> np.ndarray:
    """max(1 + z, 0)^2."""
    return hinge_negative(score) ** 2


def squared_hinge_positive_slope(score: np.ndarray) -> np.ndarray:
    """The derivative of :func:`squared_hinge_positive`."""
    return -2.0 * hinge_positive(score)


def squared_hinge_negative_slope(score: np.ndarray) -> np.ndarray:
    """The derivative of :func:`squared_hinge_negative`."""
    return 2.0 * hinge_negative(score)


def unbiased_positive(
    score: np.ndarray, inverse_p: np.ndarray | float, positive: Loss, negative: Loss
) -> np.ndarray:
    """(l+ + (p - 1) l-) / p (PW eq. 4); by linearity the slopes combine alike."""
    return np.asarray(inverse_p * positive(score) - (inverse_p - 1.0) * negative(score))


def surrogate_positive(
    score: np.ndarray, inverse_p: np.ndarray | float, positive: Loss
) -> np.ndarray:
    """(2 / p - 1) l+ (PW eqs. 8, 15, 16): what PW trains."""
    return np.asarray((2.0 * inverse_p - 1.0) * positive(score))
