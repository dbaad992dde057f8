"""Tables and figures of the RankNet+Taug paper, from the collected cells and the weight norms.

All are pure functions of frames. ``cells`` is the long frame of results: dataset, base, variant,
seed, metric, k, convention, bin, value. Seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.render.figure import COLOURS, STYLE, running_median

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASES = ("FastXML", "Bonsai", "Parabel")
PROPENSITY_SCORED = ("PSP@1", "PSP@3", "PSP@5", "PSnDCG@1", "PSnDCG@3", "PSnDCG@5")
PLAIN_METRICS = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5")
ABLATION = ("PSP@1", "PSP@3", "PSP@5", "PSnDCG@3", "PSnDCG@5")
CONVENTION = "xc-matlab"
FOR_THE_TAIL = {
    "PfastreXML": ("PfastreXML", "plain"),
    "Bonsai": ("Bonsai", "plain"),
    "RankNet (Bonsai)": ("Bonsai", "RankNet"),
    "RankNet+Taug (Bonsai)": ("Bonsai", "RankNet+Taug"),
}
"""Columns of Table 4 that can be run, beside the plain base."""
NOTHING = "no cell of this run has what is drawn here"


def wide(cells: pd.DataFrame, convention: str = CONVENTION) -> pd.DataFrame:
    """One row a (dataset, base, variant), one column a metric such as ``PSP@3``; seeds averaged."""
    part = cells
    if "convention" in part:
        part = part[part["convention"] == convention]
    if "bin" in part:
        part = part[part["bin"] == "all"]
    part = part[part["k"].notna()]
    names = part["metric"].astype(str) + "@" + part["k"].astype(int).astype(str)
    return part.assign(name=names).pivot_table(
        index=["dataset", "base", "variant"], columns="name", values="value", aggfunc="mean"
    )


def improvements(
    cells: pd.DataFrame,
    variant: str,
    metrics: Sequence[str],
    bases: Sequence[str] = BASES,
    convention: str = CONVENTION,
) -> pd.DataFrame:
    """Each base's metrics without a variant, and by how many points the variant changes them.

    Columns: dataset, base, ``<metric>``, ``+<metric>``, and the mean change over the metrics of
    each family (``+PSP``, ``+PSnDCG``), as the paper's column "Avg.". Pairs of which one half is
    missing are left out.
    """
    table = wide(cells, convention)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        for base in bases:
            plain, changed = (dataset, base, "plain"), (dataset, base, variant)
            if plain not in table.index or changed not in table.index:
                continue
            before, after = table.loc[plain], table.loc[changed]
            row: dict[str, object] = {"dataset": dataset, "base": base}
            row |= {name: before.get(name, np.nan) for name in metrics}
            changes = {name: after.get(name, np.nan) - row[name] for name in metrics}
            row |= {f"+{name}": change for name, change in changes.items()}
            for family in dict.fromkeys(name.partition("@")[0] for name in metrics):
                own = [changes[name] for name in metrics if name.startswith(f"{family}@")]
                row[f"+{family}"] = float(np.mean(own))
            rows.append(row)
    return pd.DataFrame(rows)


def table2(cells: pd.DataFrame, variant: str = "RankNet") -> pd.DataFrame:
    """Table 2: what re-ranking changes in PSP@k and PSnDCG@k, for each base."""
    return improvements(cells, variant, PROPENSITY_SCORED)


def table3(cells: pd.DataFrame, variant: str = "Taug-ds", base: str = "Bonsai") -> pd.DataFrame:
    """Table 3: what decoupled tail augmentation changes in PSP@k and PSnDCG@k."""
    return improvements(cells, variant, PROPENSITY_SCORED, bases=(base,))


def table4(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 4: PSP@k of the methods for the tail, a column each; a row a dataset and k."""
    table = wide(cells)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        there = {
            name: table.loc[(dataset, *key)]
            for name, key in FOR_THE_TAIL.items()
            if (dataset, *key) in table.index
        }
        # A comparison needs one of the paper's own and something beside it.
        if len(there) < 2 or not any("RankNet" in name for name in there):
            continue
        for metric in PROPENSITY_SCORED[:3]:
            row: dict[str, object] = {"dataset": dataset, "metric": metric}
            row |= {
                name: there[name].get(metric, np.nan) if name in there else np.nan
                for name in FOR_THE_TAIL
            }
            rows.append(row)
    return pd.DataFrame(rows, columns=["dataset", "metric", *FOR_THE_TAIL])


def table5(cells: pd.DataFrame, variant: str = "RankNet") -> pd.DataFrame:
    """Table 5: P@k and nDCG@k of each base with and without re-ranking, row by row."""
    table = wide(cells)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        for base in BASES:
            for name in ("plain", variant):
                if (dataset, base, name) in table.index:
                    values = table.loc[(dataset, base, name)]
                    label = base if name == "plain" else f"{variant} {base}"
                    row = {"dataset": dataset, "method": label}
                    rows.append(row | {m: values.get(m, np.nan) for m in PLAIN_METRICS})
    return pd.DataFrame(rows)


def table6(cells: pd.DataFrame, base: str = "Bonsai") -> pd.DataFrame:
    """Table 6: dropout and swap apart and together."""
    table = wide(cells)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        for variant in ("plain", "Taug-d", "Taug-s", "Taug-ds"):
            if (dataset, base, variant) in table.index:
                values = table.loc[(dataset, base, variant)]
                row = {"dataset": dataset, "method": "baseline" if variant == "plain" else variant}
                rows.append(row | {m: values.get(m, np.nan) for m in ABLATION})
    return pd.DataFrame(rows)


def norm_correlations(norms: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """Theorem 1 measured: Spearman's rank correlation of weight norm and times predicted.

    ``norms`` has dataset, base, variant, label, norm (and count); ``predicted`` has dataset, base,
    variant, label, times: in how many test documents' top k the label is. The correlation with
    the training count is given beside it, as both may follow from frequency alone.
    """
    keys = ["dataset", "base", "variant", "label"]
    both = norms.merge(predicted, on=keys, how="left").fillna({"times": 0})
    rows = []
    for (dataset, base, variant), part in both.groupby(keys[:3], sort=False):
        row = {"dataset": dataset, "base": base, "variant": variant, "labels": len(part)}
        row["norm_vs_times"] = part["norm"].corr(part["times"], method="spearman")
        if "count" in part:
            row["norm_vs_count"] = part["norm"].corr(part["count"], method="spearman")
        rows.append(row)
    return pd.DataFrame(rows)


def times_predicted(indices: np.ndarray, n_labels: int, k: int = 5) -> np.ndarray:
    """In how many rows' top k each label is, int64[L]."""
    head = indices[:, :k]
    return np.bincount(head[head >= 0], minlength=n_labels).astype(np.int64)


def figure1(norms: pd.DataFrame, plain: str = "plain", augmented: str = "Taug-ds") -> Figure:
    """Figures 1 and 4: label frequency, weight norms, and those after augmentation, by rank.

    ``norms`` has dataset, variant, rank (1 is the most frequent), count and norm, for one base;
    each dataset has a row of panels.
    """

    def draw(axes: np.ndarray) -> None:
        for row, (dataset, own) in zip(axes, norms.groupby("dataset", sort=False), strict=True):
            before, after = own[own["variant"] == plain], own[own["variant"] == augmented]
            panels = [
                (f"{dataset}: label frequency", before, "count", True),
                (f"weight norms, {plain}", before, "norm", False),
                (f"weight norms, {augmented}", after, "norm", False),
            ]
            top = own["norm"].max()
            for axis, (title, part, column, log), colour in zip(row, panels, COLOURS, strict=False):
                part = part.sort_values("rank")
                axis.plot(part["rank"], part[column], ".", ms=2, alpha=0.4, color=colour)
                if log:
                    axis.set_yscale("log")
                else:
                    axis.plot(part["rank"], running_median(part[column].to_numpy()), color="black")
                    axis.set_ylim(0, top * 1.05 if np.isfinite(top) else 1)
                axis.set_title(title, loc="left", fontweight="bold")
                axis.set_xlabel("labels, most frequent first")

    return _figure(norms["dataset"].nunique(), 3, draw)


def figure2(norms: pd.DataFrame, sweep: pd.DataFrame) -> Figure:
    """Figure 2: weight norms and metrics as augmentation grows, a row of panels a dataset.

    ``norms`` has dataset, n_aug, rank and norm; ``sweep`` has dataset, n_aug, metric (such as
    ``PSP@1``), value.
    """
    datasets = list(dict.fromkeys(sweep["dataset"]))

    def draw(axes: np.ndarray) -> None:
        for row, dataset in zip(axes, datasets, strict=True):
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
            _lines(row[1], sweep[sweep["dataset"] == dataset], "n_aug", "copies of each document")

    return _figure(len(datasets), 2, draw)


def figure5(sweep: pd.DataFrame) -> Figure:
    """Figure 5: PSP@k against the splitting threshold, a panel for each dataset.

    ``sweep`` has dataset, tau, metric, value.
    """
    datasets = list(dict.fromkeys(sweep["dataset"]))

    def draw(axes: np.ndarray) -> None:
        for axis in axes.flat[len(datasets) :]:
            axis.set_visible(False)
        for axis, dataset in zip(axes.flat, datasets, strict=False):
            _lines(axis, sweep[sweep["dataset"] == dataset], "tau", "splitting threshold")
            axis.set_title(dataset, loc="left", fontweight="bold")

    # Two beside each other can be read on a page, four cannot.
    return _figure(-(-len(datasets) // 2), min(2, len(datasets)), draw)


def theorem1(points: pd.DataFrame) -> Figure:
    """Theorem 1: a dot a label, its weight norm against how often it is in the first five.

    ``points`` has dataset, base, norm, times; a panel for each dataset (row) and base.
    """
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

    return _figure(len(datasets), len(bases), draw)


def _lines(axis: Axes, sweep: pd.DataFrame, column: str, label: str) -> None:
    """One line a metric; settings are evenly spaced, as in the paper."""
    settings = sorted(sweep[column].unique())
    for colour, (metric, part) in zip(COLOURS, sweep.groupby("metric", sort=True), strict=False):
        values = part.groupby(column)["value"].mean().reindex(settings)
        axis.plot(range(len(settings)), values, "o-", color=colour, label=metric)
    axis.set_xticks(range(len(settings)), [f"{value:g}" for value in settings])
    axis.set_xlabel(label)
    axis.set_ylabel("percent")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))  # lines may be anywhere inside


def _figure(n_rows: int, n_columns: int, draw: Callable[[np.ndarray], None]) -> Figure:
    """A grid of panels, or a word that there is nothing to draw."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows, columns = max(n_rows, 1), max(n_columns, 1)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(1 + 4.2 * columns, 3.2 * rows), squeeze=False
        )
        if n_rows and n_columns:
            draw(axes)
        else:
            for axis in axes.flat:
                axis.set_axis_off()
            axes[0, 0].text(0.5, 0.5, NOTHING, ha="center")
        figure.tight_layout()
    return figure
