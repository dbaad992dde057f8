"""Statistics over metrics: relative change, bootstrap intervals, paired tests, Holm's correction.

Test points are what is resampled: a metric of a resample is the ratio of the resampled sums of its
numerators and denominators. The spread over seeds is another source of error: where a method ran
with several seeds, :func:`over_seeds` adds it to the interval. Draws come from one generator in a
fixed order and sums run in a fixed order, so an interval depends on the seed and on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numba import njit
from scipy import stats as distributions

from benchmarks.evaluation.declarations import SUMMARY_METRICS, SUMMARY_NAMES, Kind
from benchmarks.evaluation.metrics import Evaluation

RESAMPLES = 1000
LEVEL = 0.95
DRAWS_AT_ONCE = 4_000_000
"""Bounds the memory of the draws; the generator's stream does not depend on it."""


def mean_relative_change(
    base: Mapping[str, float], variant: Mapping[str, float], kind: Kind
) -> float:
    """PW eq. 30: the mean over six metrics of (variant - base) / base, in percent."""
    names = SUMMARY_METRICS[kind]
    missing = sorted({n for n in names if n not in base or n not in variant})
    if missing:
        raise KeyError(f"the mean change of {kind} metrics needs {', '.join(missing)}")
    changes = [(variant[name] - base[name]) / base[name] for name in names]
    return 100.0 * sum(changes) / len(changes)


def bootstrap(
    evaluation: Evaluation, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> pd.DataFrame:
    """Percentile intervals over test points: metric, value, low, high (percent).

    Metrics that are sums over labels (coverage, macro-F1) have no points to resample and are
    left out.
    """
    names = list(evaluation.numerators)
    (sums,) = _resampled_sums([evaluation], names, resamples, seed)
    draws = _ratios(*sums)
    low, high = percentiles(draws, level)
    values = evaluation.values()
    return pd.DataFrame(
        {"metric": names, "value": [values[name] for name in names], "low": low, "high": high}
    )


def paired_bootstrap(
    base: Evaluation,
    variant: Evaluation,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Relative change of a variant over its base, in percent of the base, with intervals.

    Both are scored on the same resampled points. Columns: metric, base, variant, change, low,
    high, p (two-sided, of no change: :func:`_two_sided`), and difference, difference_low,
    difference_high in points.
    Where all six metrics of PW eq. 30 were measured, its means are added as ``mean PS`` and
    ``mean vanilla`` (which have no difference).
    """
    if base.convention != variant.convention:
        raise ValueError(f"conventions differ: {base.convention} and {variant.convention}")
    names = [name for name in base.numerators if name in variant.numerators]
    sizes = {len(e.numerators[names[0]]) for e in (base, variant)}
    if len(sizes) > 1:
        raise ValueError(f"a paired test needs the same test points, not {sorted(sizes)} of them")
    base_sums, variant_sums = _resampled_sums([base, variant], names, resamples, seed)
    base_draws, variant_draws = _ratios(*base_sums), _ratios(*variant_sums)
    changes = _relative(base_draws, variant_draws)
    at_base, at_variant = base.values(), variant.values()
    observed = _relative(
        np.array([at_base[n] for n in names]), np.array([at_variant[n] for n in names])
    )
    rows = list(names)
    averaged: list[Sequence[str]] = [[name] for name in names]
    difference_low, difference_high = percentiles(variant_draws - base_draws, level)
    for kind, terms in SUMMARY_METRICS.items():
        if set(terms) <= set(names):
            columns = [names.index(term) for term in terms]
            rows.append(SUMMARY_NAMES[kind])
            averaged.append(terms)
            changes = np.column_stack([changes, changes[:, columns].mean(axis=1)])
            observed = np.append(observed, observed[columns].mean())
    low, high = percentiles(changes, level)
    no_difference = [np.nan] * (len(rows) - len(names))
    return pd.DataFrame(
        {
            "metric": rows,
            "base": [at_base.get(name, np.nan) for name in rows],
            "variant": [at_variant.get(name, np.nan) for name in rows],
            "change": observed,
            "low": low,
            "high": high,
            "p": _two_sided(changes, observed, _standard_errors(base, variant, averaged), *sizes),
            "difference": [at_variant.get(n, np.nan) - at_base.get(n, np.nan) for n in rows],
            "difference_low": [*difference_low, *no_difference],
            "difference_high": [*difference_high, *no_difference],
        }
    )


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's step-down adjustment over a table; NaN (no test) stays NaN and does not count."""
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


@dataclass(frozen=True)
class Spread:
    """One metric over seeds: mean, standard deviation and t interval (both NaN for one seed)."""

    mean: float
    sd: float
    low: float
    high: float
    seeds: int


def seed_spread(values: Sequence[float], level: float = LEVEL) -> Spread:
    """How much a metric moves between seeds on the same test points."""
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        raise ValueError("the spread over seeds needs at least one value")
    mean = float(x.mean())
    if len(x) == 1:
        return Spread(mean, float("nan"), float("nan"), float("nan"), 1)
    sd = float(x.std(ddof=1))
    half = float(distributions.t.ppf(0.5 + level / 2, len(x) - 1)) * sd / np.sqrt(len(x))
    return Spread(mean, sd, mean - half, mean + half, len(x))


def over_seeds(
    values: Sequence[float], low: float, high: float, level: float = LEVEL
) -> tuple[float, float]:
    """An interval of the mean of some seeds' values, test points and seeds both being drawn.

    ``low`` and ``high`` are the seeds' mean bounds over test points. All seeds share these points,
    so their part of the variance stays as it is; that between seeds is divided by their number:
    half^2 = half(points)^2 + (t s / sqrt(seeds))^2, on each side. One seed: as given.
    """
    spread = seed_spread(values, level)
    if spread.seeds == 1 or spread.sd == 0:
        return low, high
    half = spread.high - spread.mean
    return (
        spread.mean - float(np.hypot(spread.mean - low, half)),
        spread.mean + float(np.hypot(high - spread.mean, half)),
    )


def _resampled_sums(
    evaluations: Sequence[Evaluation], names: Sequence[str], resamples: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numerators and denominators, each [resample, metric], summed over the same draws."""
    columns = [e.numerators[name] for e in evaluations for name in names]
    columns += [e.denominators[name] for e in evaluations for name in names]
    # Most denominators are one and the same array of ones: summed once.
    distinct: dict[bytes, int] = {}
    place = [distinct.setdefault(c.tobytes(), len(distinct)) for c in columns]
    first = [place.index(d) for d in range(len(distinct))]
    points = np.ascontiguousarray(np.stack([columns[c] for c in first], axis=1))
    n = len(points)
    if not n:
        raise ValueError("there are no test points to resample")
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, points.shape[1]))
    at_once = max(1, DRAWS_AT_ONCE // n)
    for start in range(0, resamples, at_once):
        block = min(at_once, resamples - start)
        draws = rng.integers(0, n, size=(block, n), dtype=np.int32)
        _sum_draws(points, draws, sums[start : start + block])
    every = sums[:, place]
    m = len(names)
    half = m * len(evaluations)
    return [
        (every[:, i * m : (i + 1) * m], every[:, half + i * m : half + (i + 1) * m])
        for i in range(len(evaluations))
    ]


@njit(cache=True)
def _sum_draws(points, draws, out):  # type: ignore[no-untyped-def]
    """Sum the drawn rows of ``points``, one resample to a row of ``out``."""
    n_points, n_columns = points.shape
    count = np.empty(n_points, dtype=np.int64)
    for b in range(draws.shape[0]):
        count[:] = 0
        for j in range(draws.shape[1]):
            count[draws[b, j]] += 1
        out[b, :] = 0.0
        for i in range(n_points):
            if count[i]:
                for c in range(n_columns):
                    out[b, c] += count[i] * points[i, c]


def _ratios(numerators: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    out = np.full(numerators.shape, np.nan)
    return 100.0 * np.divide(numerators, denominators, out=out, where=denominators > 0)


def _relative(base: np.ndarray, variant: np.ndarray) -> np.ndarray:
    out = np.full(base.shape, np.nan)
    return 100.0 * np.divide(variant - base, base, out=out, where=base != 0)


def percentiles(draws: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of the central ``level`` of the draws, over the first axis."""
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return low, high


def _standard_errors(
    base: Evaluation, variant: Evaluation, averaged: Sequence[Sequence[str]]
) -> np.ndarray:
    """Standard error of the mean relative change of each group of metrics, by the delta method.

    A ratio of sums R = sum(a) / sum(b) moves by (a_i - R b_i) / mean(b) with point i, the relative
    change V / B - 1 by (dV_i - V/B dB_i) / B; the error is that of the mean of these terms.
    """

    def moves(evaluation: Evaluation, name: str) -> tuple[float, np.ndarray]:
        a, b = evaluation.numerators[name], evaluation.denominators[name]
        ratio = a.sum() / b.sum()
        return ratio, (a - ratio * b) / b.mean()

    def of_change(name: str) -> np.ndarray:
        (b, by_base), (v, by_variant) = moves(base, name), moves(variant, name)
        return 100.0 * (by_variant - v / b * by_base) / b

    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (np.mean([of_change(name) for name in names], axis=0) for names in averaged)
        return np.array([x.std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.nan for x in terms])


def _two_sided(
    changes: np.ndarray, observed: np.ndarray, errors: np.ndarray, points: int
) -> np.ndarray:
    """p of no change, by how many resamples fall on either side of zero (never exactly 0).

    Where none falls on the other side, the resamples only say that p is at most 2 / (n + 1), too
    coarse for Holm over hundreds of tests. There p is that of the t test of the observed change
    with its delta-method error: nearly the paired t test for a mean, and larger than the floor for
    a change that rests on a few points alone. An error of 0 says nothing: the floor stays.
    """
    n = len(changes)
    below = (np.sum(changes <= 0, axis=0) + 1) / (n + 1)
    above = (np.sum(changes >= 0, axis=0) + 1) / (n + 1)
    p = np.minimum(2 * np.minimum(below, above), 1.0)
    known = (np.minimum(below, above) <= 1 / (n + 1)) & (errors > 1e-9 * np.abs(observed))
    t = np.divide(np.abs(observed), errors, out=np.zeros(len(p)), where=known)
    analytic = np.maximum(2 * distributions.t.sf(t, max(points - 1, 1)), np.finfo(float).tiny)
    return np.where(np.isnan(changes).any(axis=0), np.nan, np.where(known, analytic, p))
