"""Least squares to the last digits, also where Gauss-Newton alone does not converge."""

import numpy as np
import pytest

from workflow.planning import squares
from workflow.planning.squares import least_squares


def test_a_line_is_fitted_in_one_step():
    A = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    b = np.array([1.0, 2.0, 4.0])
    found = least_squares(lambda x: (A @ x - b, A), 2)
    assert found == pytest.approx(np.linalg.lstsq(A, b)[0], abs=1e-12)


def test_large_residuals_do_not_keep_it_from_the_minimum(monkeypatch):
    # At the minimum of (exp(x) + 2)**2 + x**2 / 9 Gauss-Newton's matrix is less than half of the
    # true one: its whole steps overshoot by more than they gain.
    def residuals(x):
        e = np.exp(x[0])
        return np.array([e + 2.0, x[0] / 3]), np.array([[e], [1 / 3]])

    found = least_squares(residuals, 1)
    r, J = residuals(found)
    assert np.abs(J.T @ r).max() < 1e-11
    monkeypatch.setattr(squares, "MOST_STEPS", 2)
    with pytest.raises(ArithmeticError, match="within 2 steps"):
        least_squares(residuals, 1)
