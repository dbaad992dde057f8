"""The unbiased loss: its value, its gradient, and that training says when it diverges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation import losses
from benchmarks.papers.pw.artefacts import loss_curves, loss_functions
from benchmarks.records.results import Results
from methods.interface import DivergedError, FitContext, Method, Model
from methods.linear.dismec import DiSMEC
from methods.linear.model import SparseLinearModel
from methods.linear.solver import objective
from methods.variants.unbiased import Unbiased, falls_forever, objective_and_gradient


def make_train(n_labels: int = 6) -> Split:
    rng = np.random.default_rng(0)
    X = sparse.random(80, 30, 0.2, format="csr", dtype=np.float32, random_state=rng)
    Y = sparse.csr_matrix((rng.random((80, n_labels)) < 0.15).astype(np.float32))
    return Split(Inputs(bow=X), Y)


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_expectation_over_missing_labels_is_the_true_loss(p: float) -> None:
    """PW eq. 6: seen with probability p, the unbiased loss averages to the loss itself."""
    z = np.linspace(-3, 3, 61)
    pairs = [
        (losses.hinge_positive, losses.hinge_negative),
        (losses.squared_hinge_positive, losses.squared_hinge_negative),
        (losses.squared_hinge_positive_slope, losses.squared_hinge_negative_slope),
        (losses.zero_one_positive, losses.zero_one_negative),
    ]
    for positive, negative in pairs:
        seen = losses.unbiased_positive(z, 1 / p, positive, negative)
        np.testing.assert_allclose(p * seen + (1 - p) * negative(z), positive(z), atol=1e-12)


def test_gradient_by_finite_differences() -> None:
    rng = np.random.default_rng(1)
    X = sparse.csr_matrix(rng.standard_normal((20, 5)))
    true = rng.random((20, 3)) < 0.3
    W = rng.standard_normal((3, 5))
    inverse_p = np.array([1.0, 2.0, 5.0])
    _, gradient = objective_and_gradient(X, true, inverse_p, W, 0.7)
    for j in range(5):
        step = np.zeros_like(W)
        step[:, j] = 1e-6
        high, _ = objective_and_gradient(X, true, inverse_p, W + step, 0.7)
        low, _ = objective_and_gradient(X, true, inverse_p, W - step, 0.7)
        np.testing.assert_allclose(gradient[:, j], (high - low) / 2e-6, rtol=1e-5, atol=1e-5)


def test_without_missing_labels_it_is_the_objective_of_the_solver() -> None:
    rng = np.random.default_rng(2)
    X = sparse.csr_matrix(rng.standard_normal((20, 5)))
    true = rng.random((20, 3)) < 0.3
    W = rng.standard_normal((3, 6))
    extended = sparse.csr_matrix(sparse.hstack([X, np.ones((20, 1))]))
    value, _ = objective_and_gradient(extended, true, np.ones(3), W, 1.0)
    expected = objective(X, sparse.csr_matrix(true, dtype=float), sparse.csr_matrix(W))
    np.testing.assert_allclose(value, expected)


def test_a_label_falls_forever_where_the_objective_far_out_is_below_that_nearer() -> None:
    rng = np.random.default_rng(3)
    X = sparse.csr_matrix(rng.standard_normal((20, 5)))
    true = rng.random((20, 40)) < 0.2
    W = rng.standard_normal((40, 5))
    inverse_p = rng.uniform(1.0, 9.0, 40)
    far, _ = objective_and_gradient(X, true, inverse_p, 1e5 * W, 0.7)
    farther, _ = objective_and_gradient(X, true, inverse_p, 1e6 * W, 0.7)
    falling = falls_forever(X, true, inverse_p, W, 0.7)
    np.testing.assert_array_equal(falling, farther < far)
    assert falling.any()
    assert not falling.all()
    assert not falls_forever(X, true, np.ones(40), W, 0.7).any()


def test_what_has_no_minimum_gives_no_model_and_says_why() -> None:
    method = Unbiased().apply(DiSMEC())
    assert (method.name, method.variant) == ("DiSMEC", "unbiased")
    with pytest.raises(DivergedError, match=r"no minimum here: for [1-6] of 6 labels"):
        method.fit(make_train())
    method.warm_up(make_train())  # must not end where the fit does, on fewer labels


def test_shards_join_to_the_whole() -> None:
    train = make_train(9)
    # With these A and B every 1/p is 1, and the loss has its minimum.
    train = replace(train, meta={"A": 50.0, "B": 0.0})
    method = Unbiased(steps=10).apply(DiSMEC())
    whole = method.fit(train)
    parts = SparseLinearModel.merge([method.fit(train, shard=(i, 3)) for i in range(3)])
    np.testing.assert_array_equal(whole.weights.toarray(), parts.weights.toarray())


def test_fits_dismec_only() -> None:
    class Other(Method):
        name = "Other"

        def fit_in(self, train: Split, context: FitContext) -> Model:
            raise NotImplementedError

    assert "Other has another" in (Unbiased().misfit(Other()) or "")
    assert Unbiased().misfit(DiSMEC()) is None


def test_loss_figure_at_half_propensity() -> None:
    curves = loss_curves(0.5).set_index("score")
    at = {z: curves.iloc[np.argmin(np.abs(curves.index - z))] for z in (-2.0, -1.0, 2.0)}
    # By hand from PW eqs. 7-9 with p = 1/2.
    assert at[-1.0]["0-1 unbiased"] == 2.0
    assert at[2.0]["0-1 unbiased"] == -1.0
    assert at[-1.0]["0-1 surrogate"] == 3.0
    assert at[2.0]["hinge unbiased"] == pytest.approx(-3.0)
    assert at[-2.0]["hinge unbiased"] == pytest.approx(6.0)
    assert at[-1.0]["hinge surrogate"] == pytest.approx(6.0)
    figure = loss_functions(Results(), 0.5).drawing
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    np.testing.assert_array_equal(drawn["hinge unbiased"].get_ydata(), curves["hinge unbiased"])
