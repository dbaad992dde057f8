"""Intervals of the parts that bins of labels have in a metric, and of a variant's change in them.

As in :mod:`benchmarks.evaluation.statistics` test points are drawn, the same ones for a variant
and its base, since the draws depend on the seed and the number of points alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import DRAWS_AT_ONCE, LEVEL, RESAMPLES, percentiles


def columns_of(evaluation: Evaluation) -> list[tuple[str, str]]:
    """(metric, bin) of each column of ``evaluation.bin_points``."""
    return [(metric, name) for metric, parts in evaluation.by_bin.items() for name in parts]


def resampled_bins(evaluation: Evaluation, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """Each bin's part of each metric in percent, float64[resamples, columns]."""
    points = evaluation.bin_points
    assert points is not None
    metrics = list(evaluation.by_bin)
    denominators = np.stack([evaluation.denominators[metric] for metric in metrics], axis=1)
    n, n_bins = len(denominators), points.shape[1] // len(metrics)
    rng = np.random.default_rng(seed)
    transposed = points.T.tocsr()
    out = np.empty((resamples, points.shape[1]))
    at_once = max(1, DRAWS_AT_ONCE // n)
    for start in range(0, resamples, at_once):
        block = min(at_once, resamples - start)
        draws = rng.integers(0, n, size=(block, n), dtype=np.int32)
        counts = np.stack([np.bincount(draw, minlength=n) for draw in draws]).astype(np.float64)
        below = np.repeat(counts @ denominators, n_bins, axis=1)
        above = (transposed @ counts.T).T
        ratio = np.full(above.shape, np.nan)
        np.divide(above, below, out=ratio, where=below > 0)
        out[start : start + block] = 100.0 * ratio
    return out


def bin_intervals(
    evaluation: Evaluation,
    draws: np.ndarray,
    base: Evaluation | None = None,
    base_draws: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row per metric and bin: its part of the metric with its interval, in percent.

    ``bound`` is the largest part that a ranking could reach; with a ``base``, ``difference`` and
    its interval are the change over it in points.
    """
    below = [evaluation.denominators[metric].sum() for metric, _ in columns_of(evaluation)]
    keys = columns_of(evaluation)
    low, high = percentiles(draws, LEVEL)
    frame = pd.DataFrame(keys, columns=["metric", "bin"])
    values = [evaluation.by_bin[metric][name] for metric, name in keys]
    bounds = [evaluation.bin_bounds[metric][name] for metric, name in keys]
    frame["value"] = 100.0 * np.divide(values, below)
    frame["low"], frame["high"] = low, high
    frame["bound"] = 100.0 * np.divide(bounds, below)
    if base is not None and base_draws is not None:
        before = np.divide([base.by_bin[metric][name] for metric, name in keys], below)
        frame["difference"] = frame["value"] - 100.0 * before
        frame["difference_low"], frame["difference_high"] = percentiles(draws - base_draws, LEVEL)
    return frame
