"""Statistics by identity, by known answers and by simulation."""

from __future__ import annotations

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from benchmarks.evaluation.completeness import true_beside_estimate
from benchmarks.evaluation.metrics import Evaluation, evaluate
from benchmarks.evaluation.propensity import inverse_propensity
from benchmarks.evaluation.statistics import (
    bootstrap,
    holm,
    mean_relative_change,
    over_seeds,
    paired_bootstrap,
    seed_spread,
)
from benchmarks.evaluation.topk import TopK


def ratio_metric(numerators, denominators, name="PSP@1", convention="xc-matlab"):
    return Evaluation(
        convention,
        len(numerators),
        {name: np.asarray(numerators, float)},
        {name: np.asarray(denominators, float)},
    )


def some_evaluation(seed, n=60, n_labels=12, strength=1.0):
    rng = np.random.default_rng(7)
    truth = sparse.csr_matrix((rng.random((n, n_labels)) < 0.25).astype(np.float32))
    noise = np.random.default_rng(seed).normal(size=truth.shape)
    return evaluate(TopK.from_dense(noise + strength * truth.toarray(), 12), truth, truth)


def test_the_bootstrap_is_the_plain_one():
    """Draw for draw what a loop over the same generator's draws gives."""
    evaluation = some_evaluation(0)
    frame = bootstrap(evaluation, resamples=200, seed=5).set_index("metric")
    draws = np.random.default_rng(5).integers(0, 60, size=(200, 60), dtype=np.int32)
    for name in ("P@3", "PSnDCG@5"):
        num, den = evaluation.numerators[name], evaluation.denominators[name]
        values = [100 * num[d].sum() / den[d].sum() for d in draws]
        low, high = np.quantile(values, [0.025, 0.975])
        assert frame.loc[name, "low"] == pytest.approx(low)
        assert frame.loc[name, "high"] == pytest.approx(high)


def test_the_bootstrap_depends_on_its_seed_and_on_no_thread(monkeypatch):
    evaluation = some_evaluation(0)
    once = bootstrap(evaluation, resamples=50, seed=1)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    # Other chunks of the draws must not change the stream either.
    monkeypatch.setattr("benchmarks.evaluation.statistics.DRAWS_AT_ONCE", 200)
    again = bootstrap(evaluation, resamples=50, seed=1)
    numba.set_num_threads(threads)
    pd.testing.assert_frame_equal(once, again, check_exact=True)
    assert not once.equals(bootstrap(evaluation, resamples=50, seed=2))


@pytest.mark.parametrize("kind", ["mean", "ratio of sums"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(kind):
    rng = np.random.default_rng(2024)
    held, trials, n = 0, 400, 250
    for trial in range(trials):
        if kind == "mean":
            numerators, denominators, truth = rng.random(n) < 0.3, np.ones(n), 30.0
        else:
            # E[num] / E[den] with heavy-tailed weights, as of rare labels.
            denominators = 1 + rng.exponential(3.0, n)
            numerators, truth = denominators * (rng.random(n) < 0.4), 40.0
        frame = bootstrap(
            ratio_metric(numerators, denominators), resamples=400, seed=trial, level=0.95
        )
        held += bool(frame.low[0] <= truth <= frame.high[0])
    assert 0.92 <= held / trials <= 0.98


def test_paired_intervals_hold_the_true_change_about_as_often_as_they_say():
    rng = np.random.default_rng(11)
    held, trials, n = 0, 400, 250
    for trial in range(trials):
        easy = rng.random(n)  # what makes the two runs agree on a point
        base, variant = easy < 0.5, (easy < 0.5) ^ (rng.random(n) < 0.2)
        # P(variant) = 0.5 whatever the flips, so the true change is 0.
        frame = paired_bootstrap(
            ratio_metric(base, np.ones(n)),
            ratio_metric(variant, np.ones(n)),
            resamples=400,
            seed=trial,
        )
        held += bool(frame.low[0] <= 0.0 <= frame.high[0])
    assert 0.92 <= held / trials <= 0.98


def test_a_run_paired_with_itself_has_no_change():
    frame = paired_bootstrap(some_evaluation(0), some_evaluation(0), resamples=100)
    assert (frame[["change", "low", "high"]] == 0).all(axis=None)
    assert (frame.p == 1).all()


def test_a_much_better_variant_is_seen_as_such():
    base, variant = some_evaluation(0, n=400), some_evaluation(1, n=400, strength=3.0)
    frame = paired_bootstrap(base, variant, resamples=300).set_index("metric")
    assert frame.loc["P@1", "low"] > 0
    assert frame.loc["P@1", "p"] < 0.01
    for kind in ("PS", "vanilla"):
        expected = mean_relative_change(base.values(), variant.values(), kind)
        assert frame.loc[f"mean {kind}", "change"] == pytest.approx(expected)


def pair_of(base, variant, resamples=1000):
    ones = np.ones(len(base))
    frame = paired_bootstrap(
        ratio_metric(base, ones), ratio_metric(variant, ones), resamples=resamples
    )
    return frame.iloc[0]


def test_a_certain_change_has_the_p_of_the_paired_t_test():
    """Against a base that is the same at each point the delta method is exact."""
    variant = np.random.default_rng(3).normal(0.56, 0.1, size=60)
    found = pair_of(np.full(60, 0.5), variant)
    assert found.p == pytest.approx(stats.ttest_rel(variant, np.full(60, 0.5)).pvalue)
    assert found.p < 2 / 1001
    assert holm([found.p, *[0.5] * 299])[0] < 0.05  # a table of 300 tests can reach it


def test_the_p_of_a_certain_change_is_near_that_of_all_sign_flips():
    """Exact p: the share of the 2^16 ways to sign the differences that are as far from 0."""
    rng = np.random.default_rng(5)
    base = rng.uniform(0.3, 0.5, size=16)
    variant = base + rng.normal(0.06, 0.05, size=16)
    gain = variant - base
    signs = 1 - 2 * (np.arange(2**16)[:, None] >> np.arange(16) & 1)
    exact = np.mean(np.abs(signs @ gain) >= abs(gain.sum()) - 1e-12)
    assert exact < 2 / 1001
    assert exact / 3 < pair_of(base, variant).p < exact * 3


def test_a_change_of_few_points_is_not_overstated():
    """Six of 400 points gain, none loses: 2 / 2^6 by all sign flips, not the floor of 2 / 201."""
    found = pair_of(np.full(400, 0.5), 0.5 + 0.5 * (np.arange(400) < 6), resamples=200)
    assert found.low > 0
    assert 2 / 201 < found.p < 2 / 2**6


def test_resamples_on_both_sides_of_zero_still_decide_p():
    base, variant = np.array([0.4, 0.5, 0.6, 0.5]), np.array([0.5, 0.5, 0.5, 0.6])
    draws = np.random.default_rng(0).integers(0, 4, size=(1000, 4), dtype=np.int32)
    below = np.mean(variant[draws].sum(axis=1) - base[draws].sum(axis=1) <= 1e-12)
    assert pair_of(base, variant).p == pytest.approx(2 * (below * 1000 + 1) / 1001, rel=0.05)
    # The same gain everywhere: there is no error to estimate, so the resamples have the word.
    assert pair_of(np.full(4, 0.5), np.full(4, 0.6)).p == pytest.approx(2 / 1001)


def test_the_p_of_ratios_of_sums_keeps_its_level_under_no_change():
    """With heavy weights, as of rare labels: 2% of the tests reach 0.02, where counts cannot."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(1000):
        weights = 1 + rng.exponential(3.0, 200)
        base, variant = (weights * (rng.random(200) < 0.4) for _ in range(2))
        pair = [ratio_metric(numerators, weights) for numerators in (base, variant)]
        found.append(paired_bootstrap(*pair, resamples=39).p[0])  # the least count: 2 / 40
    assert 0.01 <= np.mean(np.array(found) <= 0.02) <= 0.03


def test_pairs_must_share_points_and_convention():
    with pytest.raises(ValueError, match="same test points"):
        paired_bootstrap(some_evaluation(0), some_evaluation(0, n=50))
    with pytest.raises(ValueError, match="conventions differ"):
        paired_bootstrap(
            ratio_metric([1, 0], [1, 1]), ratio_metric([1, 0], [1, 1], convention="aplc")
        )


def test_mean_relative_change_counts_at_1_twice():
    base = {"PSP@1": 10.0, "PSP@3": 10.0, "PSP@5": 10.0, "PSnDCG@3": 10.0, "PSnDCG@5": 10.0}
    assert mean_relative_change(base, {**base, "PSP@1": 13.0}, "PS") == pytest.approx(10.0)
    assert mean_relative_change(base, {**base, "PSP@3": 13.0}, "PS") == pytest.approx(5.0)
    with pytest.raises(KeyError, match=r"P@1, P@3"):
        mean_relative_change(base, base, "vanilla")


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    adjusted = holm([0.5, np.nan, 0.6])
    assert adjusted[[0, 2]] == pytest.approx([1.0, 1.0])
    assert np.isnan(adjusted[1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_the_raw_values_and_bonferroni(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= np.minimum(np.array(p) * len(p), 1) + 1e-12).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_seed_spread():
    spread = seed_spread([1.0, 2.0, 3.0])
    assert (spread.mean, spread.sd, spread.seeds) == (2.0, 1.0, 3)
    assert spread.high - spread.mean == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert np.isnan(seed_spread([5.0]).sd)


def test_seeds_widen_an_interval():
    """s = 1 over three seeds: t s / sqrt 3 = 2.484; with 3 below and 4 above, by Pythagoras."""
    low, high = over_seeds([1.0, 2.0, 3.0], 2.0 - 3.0, 2.0 + 4.0)
    assert 2.0 - low == pytest.approx(np.sqrt(9 + 2.48414**2), rel=1e-5)
    assert high - 2.0 == pytest.approx(np.sqrt(16 + 2.48414**2), rel=1e-5)
    assert over_seeds([2.0], -1.0, 6.0) == (-1.0, 6.0)
    assert over_seeds([2.0, 2.0], -1.0, 6.0) == (-1.0, 6.0)


def test_the_propensity_scored_estimate_is_unbiased_for_the_true_precision():
    """Labels go missing by the model's own propensities: the estimate must recover the truth."""
    rng = np.random.default_rng(0)
    n, n_labels = 4000, 30
    rate = np.linspace(0.02, 0.4, n_labels)
    complete = rng.random((n, n_labels)) < rate
    train_labels = sparse.csr_matrix((rng.random((n, n_labels)) < rate / 2).astype(np.float32))
    weights = inverse_propensity(np.asarray(train_labels.sum(axis=0)).ravel(), n)
    observed = complete & (rng.random(complete.shape) < 1 / weights)
    top = TopK.from_dense(rng.normal(size=complete.shape) + complete, k=5)
    frame = true_beside_estimate(
        top,
        sparse.csr_matrix(observed.astype(np.float32)),
        sparse.csr_matrix(complete.astype(np.float32)),
        train_labels,
    )
    assert frame.estimate.to_numpy() == pytest.approx(frame.true.to_numpy(), rel=0.02)
    assert (frame.observed < 0.97 * frame.true).all()
    with pytest.raises(ValueError, match="missing from the complete"):
        true_beside_estimate(
            top,
            sparse.csr_matrix(np.ones_like(complete, dtype=np.float32)),
            sparse.csr_matrix(complete.astype(np.float32)),
            train_labels,
        )
