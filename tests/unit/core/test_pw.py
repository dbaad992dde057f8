"""Weights of PW and its relatives against figures worked out by hand."""

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.evaluation.propensity import inverse_propensity
from methods import get
from methods.variants.pw import PW, ClassBalanced, PWcb, PWCostSensitive, class_balance

EURLEX_ROWS = 15_511


def weights(variant, count):
    counts = np.array([count])
    return variant.positive(counts, inverse_propensity(counts, EURLEX_ROWS))[0]


@pytest.mark.parametrize(
    ("count", "inverse_p"), [(0, 12.455), (1, 9.65), (10, 4.74), (100, 2.13), (1000, 1.32)]
)
def test_inverse_propensity_of_eurlex(count, inverse_p):
    found = inverse_propensity(np.array([count]), EURLEX_ROWS)[0]
    assert found == pytest.approx(inverse_p, abs=0.006)
    assert weights(PW(), count) == pytest.approx(2 * found - 1)


@pytest.mark.parametrize(
    ("count", "weight"), [(1, 18.3), (2, 8.1), (10, 1.30), (100, 0.33), (1000, 0.16)]
)
def test_pw_cb_of_eurlex(count, weight):
    """beta = 0.9 turns the weight below 1 from about 14 documents on."""
    assert weights(PWcb(), count) == pytest.approx(weight, abs=0.05 if weight > 5 else 0.005)


def test_class_balance_by_hand():
    # n = 1: 1; n = 2: 0.1 / 0.19; n -> infinity: 0.1.
    found = class_balance(np.array([0, 1, 2, 10_000]), 0.9)
    assert found == pytest.approx([1.0, 1.0, 0.1 / 0.19, 0.1])
    assert weights(ClassBalanced(), 2) == pytest.approx(0.1 / 0.19)


def test_cost_sensitive_order_by_hand():
    """PW eq. 20 at n = 2, p = 0.5: n* = 4, (0.1 / (1 - 0.9^4)) * 2 + 2 - 1."""
    found = PWCostSensitive().positive(np.array([2]), np.array([2.0]))[0]
    assert found == pytest.approx(0.1 / (1 - 0.9**4) * 2 + 1)


def test_orders_do_not_commute():
    counts, inverse_p = np.array([3]), np.array([4.0])
    assert PWCostSensitive().positive(counts, inverse_p) != pytest.approx(
        PWcb().positive(counts, inverse_p)
    )


def test_the_model_says_nothing_below_three_documents():
    with pytest.raises(ValueError, match="at least 3"):
        inverse_propensity(np.array([1]), 2)


def test_variant_weights_multiply_with_those_given():
    train, _ = load("tiny-bow")
    reweighted = get("LinearSVC", variant="PW")
    twice = get("LinearSVC", variant="cb+PW")
    assert (reweighted.variant, twice.variant) == ("PW", "cb+PW")
    both = get("LinearSVC", variant="PW-cb").fit(train)
    assert twice.fit(train).label_norms() == pytest.approx(both.label_norms(), nan_ok=True)
