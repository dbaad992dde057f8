"""Least squares to the last digits, whatever the machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CONVERGED = 1e-11
"""The largest change in the last step: far below what any reader prints. Processors and numbers of
threads differ in last bits, and a fit that ends earlier makes printed digits of them."""
GAUSS_NEWTON_STEPS, MOST_STEPS = 10, 500
SHORT = 1e-6
"""Steps below this change the sum by no more than its rounding; whether it rose says nothing."""

Residuals = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""The residuals at a point, and their derivatives: a row per residual, a column per unknown."""


def least_squares(residuals: Residuals, size: int) -> np.ndarray:
    """Where the sum of squares is least, from zero on; a step that leads up is halved.

    The first steps are Gauss-Newton's. Near the minimum these overshoot if some residuals stay
    large; there BFGS, from Gauss-Newton's matrix on, converges fast. The derivatives must have
    full column rank, which a prior on every unknown gives.
    """
    x = np.zeros(size)
    value, gradient, J = _at(residuals, x)
    inverse = np.eye(size)
    for number in range(MOST_STEPS):
        if number < GAUSS_NEWTON_STEPS:
            inverse = np.linalg.inv(J.T @ J)
        step = -inverse @ gradient
        if np.abs(step).max() < CONVERGED:
            return x + step
        tried = _at(residuals, x + step)
        while tried[0] > value and np.abs(step).max() > SHORT:
            step /= 2
            tried = _at(residuals, x + step)
        change = tried[1] - gradient
        x, (value, gradient, J) = x + step, tried
        if (along := float(step @ change)) > 0:
            turned = inverse @ change
            inverse += (1 + change @ turned / along) / along * np.outer(step, step)
            inverse -= (np.outer(turned, step) + np.outer(step, turned)) / along
    raise ArithmeticError(f"least squares: no minimum within {MOST_STEPS} steps")


def _at(residuals: Residuals, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    r, J = residuals(x)
    return 0.5 * float(r @ r), J.T @ r, J
