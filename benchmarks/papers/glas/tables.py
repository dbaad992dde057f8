"""Tables 1, 2 and 4 of the GLaS paper and its Theorem 2.1, from the collected cells of a run.

``cells`` and ``runs`` are the frames of ``cells.csv`` and ``runs.csv``; the column ``train_P@1`` of
the latter is measured by the fit itself, on its training documents. Seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.papers.spec import load_paper
from benchmarks.records.cell import KEY, PLAIN
from benchmarks.records.cells import wide
from benchmarks.records.results import METHOD

BASE, OWN = "Embedding", "GLaS"
TEST_COUNTS = "glas"
"""The convention whose propensities come from the test set, as the paper's appendix D has it."""
TRAIN_P1 = "train_P@1"
EPOCHS = 10
"""Of the base as it is, and at most in the paper (sec. 4)."""
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")

ABLATION: Mapping[str, Sequence[str]] = {
    "regulariser": (PLAIN, OWN, "spread-out", "gravity", "Laplacian"),
    "weight (lambda)": ("lambda-1", "lambda-10", OWN, "lambda-1000"),
    "keep (rho)": ("keep-1.0", OWN, "keep-0.6"),
    "batch": (OWN, "batch-1024", "batch-4096"),
    "dimension": ("dim-256", "dim-512", OWN),
    "embedding": (OWN, "relu"),
    "scale of the term": (OWN, "scale-labels", "drawn-uniformly"),
}
"""Rows of Table 1 by what is varied; GLaS itself is the setting that all others change."""


def ablation(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 1: what is varied, the variant, and metrics; for each dataset with two values of it."""
    table = wide(cells)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        for varied, variants in ABLATION.items():
            there = [v for v in variants if (dataset, BASE, v) in table.index]
            if len(there) < 2:
                continue
            for variant in there:
                values = table.loc[(dataset, BASE, variant)].reindex(METRICS)
                rows.append({"dataset": dataset, "varied": varied, "variant": variant, **values})
    return pd.DataFrame(rows, columns=["dataset", "varied", "variant", *METRICS])


def gaps(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2, one row per cell that knows its training accuracy.

    Columns dataset, base, variant, seed, train, test (P@1) and gap, their difference.
    """
    if TRAIN_P1 not in runs:
        return pd.DataFrame(columns=[*KEY, "train", "test", "gap"])
    train = runs.dropna(subset=[TRAIN_P1])[[*KEY, TRAIN_P1]].rename(columns={TRAIN_P1: "train"})
    scored = cells[
        (cells["metric"] == "P")
        & (cells["k"] == 1)
        & (cells["bin"] == "all")
        & (cells["convention"] == DEFAULT)
    ]
    test = scored[[*KEY, "value"]].rename(columns={"value": "test"})
    found = train.merge(test, on=KEY)
    return found.assign(gap=found["train"] - found["test"])


def gap_table(cells: pd.DataFrame, runs: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    """Table 2: mean accuracies and gap of each method, and the gap's change over the plain base.

    The change is in percent of the plain base's gap: the paper prints -34 % for AmazonCat-13K.
    """
    found = gaps(cells, runs)
    found = found[found["variant"].isin(variants)]
    columns = ["train", "test", "gap"]
    means = found.groupby(METHOD, sort=False)[columns].mean().reset_index()
    means.insert(3, "seeds", found.groupby(METHOD, sort=False)["seed"].count().to_numpy())
    plain = means[means["variant"] == PLAIN].set_index(METHOD[:2])["gap"]
    before = [
        plain.get((d, b), np.nan) for d, b in zip(means["dataset"], means["base"], strict=True)
    ]
    means["change of gap %"] = 100.0 * (means["gap"] / np.array(before) - 1.0)
    means.loc[means["variant"] == PLAIN, "change of gap %"] = np.nan
    return means


def sources_of_propensity(cells: pd.DataFrame, dataset: str = "EURLex-4K") -> pd.DataFrame:
    """Table 4's block of a dataset beside ours, under train and under test propensities.

    The paper's label counts come from the test set. What the other methods' columns print there is
    PSnDCG of the repository, not PSP, so both are given.
    """
    values = load_paper("glas").values
    printed = values[(values["table"] == "4") & (values["our_dataset"] == dataset)]
    tables = {"train": wide(cells, DEFAULT), "test": wide(cells, TEST_COUNTS)}
    rows = []
    for entry in printed.itertuples():
        key = (dataset, entry.our_base, entry.our_variant)
        if key not in tables["train"].index:
            continue
        row = {"method": entry.base, "metric": entry.metric, "printed": float(entry.value)}
        graded = entry.metric.replace("PSP", "PSnDCG")
        for metric, name in ((entry.metric, "PSP"), (graded, "PSnDCG")):
            for source, table in tables.items():
                row[f"{name}, {source}"] = table.loc[key].get(metric, np.nan)
        nearest = min(list(row)[3:], key=lambda name: abs(row[name] - row["printed"]))
        rows.append({**row, "nearest": nearest, "off by": row[nearest] - row["printed"]})
    return pd.DataFrame(rows)


def by_dimension(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Theorem 2.1 measured: training and test P@1 of bases named ``<base>-d<dimension>``."""
    found = gaps(cells, runs)
    means = found.groupby(METHOD, sort=False)[["train", "test"]].mean().reset_index()
    sizes = means["base"].str.extract(r"-d(\d+)$", expand=False)
    means = means[sizes.notna()].assign(dimension=sizes.dropna().astype(int))
    columns = ["dataset", "variant", "dimension", "train", "test"]
    return means[columns].sort_values(columns[:3]).reset_index(drop=True)


def by_epoch(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 1: training and test P@1 after so many epochs, from bases ``<base>-e<epochs>``.

    Each point is a fit of its own, so that no method sees a test document before it is scored. The
    base itself is the last point; datasets with one point only are left out.
    """
    found = gaps(cells, runs)
    found = found[found["variant"].isin([PLAIN, OWN])]
    named = found["base"].str.extract(rf"^{BASE}-e(\d+)$", expand=False)
    named = named.mask(found["base"] == BASE, str(EPOCHS))
    found = found[named.notna()].assign(epochs=named.dropna().astype(int))
    means = found.groupby(["dataset", "variant", "epochs"])[["train", "test"]].mean().reset_index()
    return means[means.groupby("dataset")["epochs"].transform("nunique") > 1]
