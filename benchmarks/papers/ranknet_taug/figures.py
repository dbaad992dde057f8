"""Figures 1, 2, 4 and 5 of the RankNet+Taug paper, and its Theorem 1, for the data of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import wide
from benchmarks.records.results import METHOD, Results
from benchmarks.render.figure import COLOURS, Figure, panels, running_median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASE, AUGMENTED = "Bonsai", "Taug-ds"
SWEPT = ("n_aug", "tau")
"""Settings of Taug that the paper varies."""
Settings = Mapping[str, Mapping[str, Any]]


def weight_norms(results: Results) -> Figure:
    """Norm of each label's classifier against its frequency rank, for every base (Fig. 1).

    A dot is a label, a line the running median: what the paper shows as a trend.
    """
    parts = list(results.norms.groupby(["dataset", "base"], sort=False))

    def draw(axes: np.ndarray) -> None:
        for axis, ((dataset, base), panel) in zip(axes.flat, parts, strict=False):
            for number, (variant, part) in enumerate(panel.groupby("variant", sort=False)):
                colour, part = COLOURS[number % len(COLOURS)], part.sort_values("rank")
                axis.plot(part["rank"], part["norm"], ".", ms=3, alpha=0.35, color=colour)
                median = running_median(part["norm"].to_numpy())
                axis.plot(part["rank"], median, color=colour, lw=1.8, label=variant)
            axis.set_title(f"{base} on {dataset}", loc="left", fontweight="bold")
            axis.set_xlabel("labels, most frequent first")
            axis.set_ylabel("norm of the weight vector")
            axis.set_yscale("log")  # a variant that diverges must not flatten the others
            axis.legend()

    return Figure(panels(len(parts), 3, draw, (4.6, 3.2)), results.norms)


def figure1(results: Results) -> Figure:
    """Figures 1 and 4: label frequency, weight norms, and those after augmentation, by rank.

    Each dataset that has both variants on the base has a row of panels.
    """
    norms = results.norms[
        (results.norms["base"] == BASE) & results.norms["variant"].isin([PLAIN, AUGMENTED])
    ]
    norms = norms[norms.groupby("dataset")["variant"].transform("nunique") == 2]

    def draw(axes: np.ndarray) -> None:
        for row, (dataset, own) in zip(axes, norms.groupby("dataset", sort=False), strict=True):
            before, after = own[own["variant"] == PLAIN], own[own["variant"] == AUGMENTED]
            content = [
                (f"{dataset}: label frequency", before, "count", True),
                (f"weight norms, {PLAIN}", before, "norm", False),
                (f"weight norms, {AUGMENTED}", after, "norm", False),
            ]
            top = own["norm"].max()
            for axis, (title, part, column, log), colour in zip(
                row, content, COLOURS, strict=False
            ):
                part = part.sort_values("rank")
                axis.plot(part["rank"], part[column], ".", ms=2, alpha=0.4, color=colour)
                if log:
                    axis.set_yscale("log")
                else:
                    axis.plot(part["rank"], running_median(part[column].to_numpy()), color="black")
                    axis.set_ylim(0, top * 1.05 if np.isfinite(top) else 1)
                axis.set_title(title, loc="left", fontweight="bold")
                axis.set_xlabel("labels, most frequent first")

    return Figure(panels(3 * norms["dataset"].nunique(), 3, draw), norms)


def figure2(results: Results) -> Figure:
    """Figure 2: weight norms and metrics as augmentation grows, a row of panels per dataset."""
    sweep = swept_metrics(results.cells, results.settings, "n_aug")
    kept = at_usual(results.settings, "tau")
    norms = results.norms[(results.norms["base"] == BASE) & results.norms["variant"].isin(kept)]
    norms = norms.assign(n_aug=[kept[variant]["n_aug"] for variant in norms["variant"]])

    def draw(axes: np.ndarray) -> None:
        for row, (dataset, metrics) in zip(axes, sweep.groupby("dataset", sort=False), strict=True):
            own = norms[norms["dataset"] == dataset]
            for colour, (n_aug, part) in zip(COLOURS, own.groupby("n_aug"), strict=False):
                part = part.sort_values("rank")
                smooth = running_median(part["norm"].to_numpy())
                row[0].plot(part["rank"], smooth, color=colour, label=f"n_aug = {n_aug:g}")
            row[0].set_title(dataset, loc="left", fontweight="bold")
            row[0].set_xlabel("labels, most frequent first")
            row[0].set_ylabel("norm (running median)")
            if len(own):
                row[0].legend()
            _lines(row[1], metrics, "n_aug", "copies of each document")

    return Figure(panels(2 * sweep["dataset"].nunique(), 2, draw), sweep)


def figure5(results: Results) -> Figure:
    """Figure 5: PSP@k against the splitting threshold, a panel per dataset."""
    sweep = swept_metrics(results.cells, results.settings, "tau")

    def draw(axes: np.ndarray) -> None:
        for axis, (dataset, own) in zip(
            axes.flat, sweep.groupby("dataset", sort=False), strict=False
        ):
            _lines(axis, own, "tau", "splitting threshold")
            axis.set_title(dataset, loc="left", fontweight="bold")

    # Two beside each other can be read on a page, four cannot.
    return Figure(panels(sweep["dataset"].nunique(), 2, draw), sweep)


def theorem1(results: Results) -> Figure:
    """Theorem 1: a dot per label, its weight norm against how often it is in the first five.

    A panel for each dataset (row) and base.
    """
    plain = results.norms[results.norms["variant"] == PLAIN]
    points = plain.merge(results.predicted, on=[*METHOD, "label"])
    datasets, bases = (list(dict.fromkeys(points[column])) for column in ("dataset", "base"))

    def draw(axes: np.ndarray) -> None:
        for row, dataset in zip(axes, datasets, strict=True):
            for axis, base in zip(row, bases, strict=True):
                own = points[(points["dataset"] == dataset) & (points["base"] == base)]
                axis.set_visible(len(own) > 0)
                axis.plot(own["times"], own["norm"], ".", ms=2, alpha=0.4, color=COLOURS[0])
                axis.set_xscale("symlog", linthresh=1)
                axis.set_title(f"{base} on {dataset}", loc="left", fontweight="bold")
                axis.set_xlabel("test documents with the label in the first five")
                axis.set_ylabel("norm of the weight vector")

    return Figure(panels(len(datasets) * len(bases), len(bases), draw), points)


def norm_correlations(norms: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """Theorem 1 measured: Spearman's rank correlation of weight norm and times predicted.

    The frames are :attr:`Results.norms` and :attr:`Results.predicted`; one row comes back per
    dataset, base and variant. The correlation with the training count is given beside it, as
    both may follow from frequency alone.
    """
    both = norms.merge(predicted, on=[*METHOD, "label"], how="left").fillna({"times": 0})
    rows = []
    for key, part in both.groupby(METHOD, sort=False):
        row = dict(zip(METHOD, key, strict=True)) | {"labels": len(part)}
        row["norm_vs_times"] = part["norm"].corr(part["times"], method="spearman")
        row["norm_vs_count"] = part["norm"].corr(part["count"], method="spearman")
        rows.append(row)
    return pd.DataFrame(rows, columns=[*METHOD, "labels", "norm_vs_times", "norm_vs_count"])


def at_usual(settings: Settings, name: str) -> Settings:
    """The variants that share the most frequent value of one setting."""
    values = [setting[name] for setting in settings.values()]
    usual = max(values, key=values.count, default=None)
    return {variant: found for variant, found in settings.items() if found[name] == usual}


def swept_metrics(cells: pd.DataFrame, settings: Settings, over: str) -> pd.DataFrame:
    """Metrics of Taug's variants against one setting, the other at its most frequent value.

    Columns: dataset, ``over``, metric, value.
    """
    kept = at_usual(settings, "tau" if over == "n_aug" else "n_aug")
    rows = [
        (dataset, kept[variant][over], metric, values.get(metric, np.nan))
        for (dataset, base, variant), values in wide(cells).iterrows()
        if base == BASE and variant in kept
        for metric in ("P@5", "PSP@1", "PSP@3", "PSP@5")
    ]
    frame = pd.DataFrame(rows, columns=["dataset", over, "metric", "value"])
    # One setting is no sweep.
    many = frame.groupby("dataset")[over].transform("nunique") > 1
    return frame[many].reset_index(drop=True)


def _lines(axis: Axes, sweep: pd.DataFrame, column: str, label: str) -> None:
    """One line per metric; settings are evenly spaced, as in the paper."""
    settings = sorted(sweep[column].unique())
    for colour, (metric, part) in zip(COLOURS, sweep.groupby("metric", sort=True), strict=False):
        values = part.groupby(column)["value"].mean().reindex(settings)
        axis.plot(range(len(settings)), values, "o-", color=colour, label=metric)
    axis.set_xticks(range(len(settings)), [f"{value:g}" for value in settings])
    axis.set_xlabel(label)
    axis.set_ylabel("percent")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))  # lines may be anywhere inside
