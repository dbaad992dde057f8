"""Figures 3 to 6 of the HTTN paper, for the data of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.papers.httn import rows
from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import wide
from benchmarks.records.results import Results, joined
from benchmarks.render.figure import COLOURS, Figure, panels

SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "microF1")
ABLATION = {
    ("HTTN", "H-F-A"): "H-F-A",
    ("HTTN", "H-F"): "H-F",
    ("HTTN", PLAIN): "H",
    ("EHTTN", PLAIN): "EH",
}
ON_TAIL = ("Joint", "BBN", "HTTN")


def ablation_data(cells: pd.DataFrame) -> pd.DataFrame:
    """Columns dataset, part (H-F-A, H-F, H, EH), metric, value; datasets with an ablation."""
    found = []
    for (dataset, base, variant), values in wide(cells).iterrows():
        part = ABLATION.get((rows.method_of(base) or "", variant))
        if part is not None:
            found += [(dataset, part, name, values[name]) for name in SHOWN if name in values]
    frame = pd.DataFrame(found, columns=["dataset", "part", "metric", "value"])
    frame = frame.groupby(["dataset", "part", "metric"], sort=False, as_index=False).mean()
    ablated = frame.groupby("dataset")["part"].transform(lambda p: {"H", "H-F"} <= set(p))
    return frame[ablated.astype(bool)].reset_index(drop=True)


def figure3(results: Results) -> Figure:
    """Figure 3: the ablation, a panel per dataset."""
    data = ablation_data(results.cells)

    def draw(axes: np.ndarray) -> None:
        for axis, (dataset, own) in zip(
            axes.flat, data.groupby("dataset", sort=False), strict=False
        ):
            parts = [part for part in ABLATION.values() if part in set(own["part"])]
            metrics = [metric for metric in SHOWN if metric in set(own["metric"])]
            table = own.pivot(index="part", columns="metric", values="value")
            width = 0.8 / len(parts)
            for number, part in enumerate(parts):
                place = np.arange(len(metrics)) + (number - (len(parts) - 1) / 2) * width
                heights = table.loc[part, metrics]
                axis.bar(place, heights, width, color=COLOURS[number], label=part)
            axis.set_xticks(range(len(metrics)), metrics)
            axis.set_ylabel("percent")
            axis.set_title(str(dataset), loc="left", fontweight="bold")
            axis.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1))

    return Figure(panels(data["dataset"].nunique(), 2, draw, (5.0, 3.2)), data)


def tail_f1_data(results: Results) -> pd.DataFrame:
    """Columns dataset, method, label, rank, documents, F1: tail labels that occur in test.

    F1 is the mean over seeds.
    """
    frames = []
    for cell, top in results.rankings():
        method = rows.method_of(cell.base)
        if method not in ON_TAIL or cell.variant != PLAIN:
            continue
        train, test = results.training[cell.dataset], results.testing[cell.dataset]
        tail = rows.tail_labels(train)
        there = test.label_counts()[tail] > 0
        found = {
            "dataset": cell.dataset,
            "method": method,
            "label": tail[there],
            "rank": np.flatnonzero(there) + 1,
            "documents": train.label_counts()[tail[there]],
            "F1": rows.f1_by_label(top, test, tail[there]),
        }
        frames.append(pd.DataFrame(found))
    columns = ["dataset", "method", "label", "rank", "documents", "F1"]
    frame = joined(frames, columns)
    of_label = ["dataset", "method", "label", "rank", "documents"]
    frame = frame.groupby(of_label, sort=False, as_index=False)["F1"].mean()
    compared = frame.groupby("dataset")["method"].transform(lambda m: {"HTTN", "Joint"} <= set(m))
    return frame[compared.astype(bool)].reset_index(drop=True)


def figure4(results: Results) -> Figure:
    """Figure 4: F1 of each tail label by Joint, BBN and HTTN, most frequent label first."""
    data = tail_f1_data(results)

    def draw(axes: np.ndarray) -> None:
        for axis, (dataset, own) in zip(
            axes.flat, data.groupby("dataset", sort=False), strict=False
        ):
            methods = [method for method in ON_TAIL if method in set(own["method"])]
            width = 0.8 / len(methods)
            for number, method in enumerate(methods):
                part = own[own["method"] == method]
                place = np.arange(len(part)) + (number - (len(methods) - 1) / 2) * width
                axis.bar(place, part["F1"], width, color=COLOURS[number], label=method)
            counts = own[own["method"] == methods[0]]["documents"]
            step = max(1, -(-len(counts) // 40))
            axis.set_xticks(np.arange(len(counts))[::step], counts.astype(str)[::step], fontsize=7)
            axis.set_xlabel("training documents of the label")
            axis.set_ylabel("F1, percent")
            axis.set_title(str(dataset), loc="left", fontweight="bold")
            axis.legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))

    return Figure(panels(data["dataset"].nunique(), 1, draw, (9.0, 3.0)), data)


def draws_data(results: Results) -> pd.DataFrame:
    """Columns dataset, S, metric, value: HTTN by the number of head draws."""
    by_variant = rows.only("S", results.settings)
    found = [
        (dataset, by_variant[variant], name, values[name])
        for (dataset, base, variant), values in wide(results.cells).iterrows()
        if rows.method_of(base) == "HTTN" and variant in by_variant
        for name in ("microF1", "nDCG@5")
        if name in values
    ]
    frame = pd.DataFrame(found, columns=["dataset", "S", "metric", "value"])
    return frame.sort_values(["dataset", "metric", "S"], kind="stable").reset_index(drop=True)


def figure5(results: Results) -> Figure:
    """Figure 5: F1 and nDCG by the number of draws S, a panel per dataset."""
    data = draws_data(results)

    def draw(axes: np.ndarray) -> None:
        for axis, (dataset, own) in zip(
            axes.flat, data.groupby("dataset", sort=False), strict=False
        ):
            for colour, (metric, part) in zip(COLOURS, own.groupby("metric"), strict=False):
                axis.plot(part["S"], part["value"], "o-", color=colour, label=metric)
            axis.set_xlabel("draws of head prototypes, S")
            axis.set_ylabel("percent")
            axis.set_title(str(dataset), loc="left", fontweight="bold")
            axis.legend()

    return Figure(panels(data["dataset"].nunique(), 2, draw), data)


def members_data(results: Results) -> pd.DataFrame:
    """Columns dataset, metric, members (how many), min, mean, max, ensemble."""
    members = rows.only("member", results.settings)
    table = wide(results.cells)
    found = []
    for dataset, base in dict.fromkeys(key[:2] for key in table.index):
        own = [variant for variant in members if (dataset, base, variant) in table.index]
        if rows.method_of(base) != "EHTTN" or not own or (dataset, base, PLAIN) not in table.index:
            continue
        values = table.loc[[(dataset, base, variant) for variant in own]]
        for name in (name for name in SHOWN if name in table.columns):
            of = values[name]
            whole = table.loc[(dataset, base, PLAIN), name]
            found.append((dataset, name, len(own), of.min(), of.mean(), of.max(), whole))
    columns = ["dataset", "metric", "members", "min", "mean", "max", "ensemble"]
    return pd.DataFrame(found, columns=columns)


def figure6(results: Results) -> Figure:
    """Figure 6: the ensemble beside its worst, mean and best member, a panel per dataset."""
    data = members_data(results)

    def draw(axes: np.ndarray) -> None:
        for axis, (dataset, own) in zip(
            axes.flat, data.groupby("dataset", sort=False), strict=False
        ):
            kinds = ("min", "mean", "max", "ensemble")
            for number, kind in enumerate(kinds):
                place = np.arange(len(own)) + (number - 1.5) * 0.2
                axis.bar(place, own[kind], 0.2, color=COLOURS[number], label=kind)
            axis.set_xticks(range(len(own)), own["metric"])
            axis.set_ylabel("percent")
            members = own["members"].iloc[0]
            axis.set_title(f"{dataset}, {members} members", loc="left", fontweight="bold")
            axis.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1))

    return Figure(panels(data["dataset"].nunique(), 2, draw, (5.0, 3.2)), data)
