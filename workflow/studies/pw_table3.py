"""Why PW Table 3 comes out as it does on EURLex-4K: features, label ids and ranking, one by one.

``python -m workflow.studies.pw_table3`` fits DiSMEC plain, PW and PW-cb under three readings of
the features and scores each under four readings of the predictions:

    features   unit: rows of unit length, what DiSMEC's later release does
               released: the tf-idf step of PW's release, (1 + ln round(v)) ln(N / df) with unit
               rows, values that round to 0 left out, N and df of the test file for the test file
               published: the values of the file as they are
    labels     right, or rotated: the release trains labels in batches of 1000, ids in the order
               of first appearance in train, and the last, shorter batch of size s gives the
               classifier of its label j the id of label (first + j) mod s of the batch
    ranking    plain, or re-ranked: PS metrics on the top 5 with rare labels first (dismec-java)

on the documents that have labels, and prints for each the mean distance, in points, from the ten
metrics that each row of the table prints, and from the values that DiSMEC's own README states for
its plain run; and the mean relative change over the plain row.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.preprocessing import normalize

from benchmarks.common.atomic import write_csv
from benchmarks.data import load
from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.metrics import score
from benchmarks.evaluation.statistics import SUMMARY_METRICS, mean_relative_change
from benchmarks.evaluation.topk import TopK
from benchmarks.papers.spec import load_paper
from methods import get

DATASET = "EURLex-4K"
BATCH = 1000
METRICS = (
    *("PSP@1", "PSP@3", "PSP@5", "PSnDCG@3", "PSnDCG@5"),
    *("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5"),
)
ROWS = {"plain": "Original", "PW": "PW", "PW-cb": "PW-cb"}
README_OF_DISMEC = {"P@1": 82.51, "P@3": 69.48, "P@5": 57.94, "nDCG@3": 72.90, "nDCG@5": 67.05}
"""https://github.com/xmc-aalto/dismec, the expected output of its EURLex run."""
FEATURES = ("unit", "released", "published")


def released_features(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Features after the release's tf-idf step, with the document frequencies of X itself."""
    counts = X.copy()
    counts.data = np.floor(counts.data + 0.5)  # Java's round
    counts.eliminate_zeros()
    frequency = np.bincount(counts.indices, minlength=X.shape[1])
    idf = np.log(X.shape[0] / np.maximum(frequency, 1))
    counts.data = (1.0 + np.log(counts.data)) * idf[counts.indices]
    unit = normalize(counts)
    unit.data = unit.data.round(4)
    return sparse.csr_matrix(unit, dtype=np.float32)


def first_appearance(labels: sparse.csr_matrix) -> np.ndarray:
    """The labels of a training split in the order in which its rows first name them."""
    _, first = np.unique(labels.indices, return_index=True)
    return labels.indices[np.sort(first)]


def rotated(labels: sparse.csr_matrix, batch: int = BATCH) -> np.ndarray:
    """The id that each label's classifier goes by, int64[L]; labels not in train keep theirs."""
    order = first_appearance(labels)
    ids = np.arange(labels.shape[1])
    size = len(order) % batch
    if size:
        last = order[len(order) - size :]
        ids[last] = last[(len(order) - size + np.arange(size)) % size]
    return ids


def renamed(top: TopK, ids: np.ndarray) -> TopK:
    """Predictions with every label replaced by the id given for it."""
    real = top.indices >= 0
    return TopK(
        np.where(real, ids[np.maximum(top.indices, 0)], -1).astype(top.indices.dtype), top.scores
    )


def with_labels(split: Split) -> Split:
    """The documents that have labels, which are all that the release keeps."""
    return split.take(np.flatnonzero(np.diff(split.labels.indptr)))


def printed_rows() -> dict[str, dict[str, float]]:
    """The ten metrics of each row that the table prints for the dataset, by variant."""
    values = load_paper("pw").values
    rows = values[(values["table"] == "3") & (values["our_dataset"] == DATASET)]
    return {
        variant: {
            row.metric: float(row.value)
            for row in rows[rows["variant"] == name].itertuples()
            if row.metric in METRICS
        }
        for variant, name in ROWS.items()
    }


def distance(found: Mapping[str, float], printed: Mapping[str, float], prefix: str = "") -> float:
    """The mean of |found - printed| over the printed metrics whose name starts so."""
    names = [name for name in printed if name.startswith(prefix)]
    return float(np.mean([abs(found[name] - printed[name]) for name in names]))


def readings(
    train: Split, test: Split, features: str, threads: int, variants: Iterable[str] = tuple(ROWS)
) -> list[dict[str, Any]]:
    """A row for each variant, label reading and ranking, with the features given."""
    bows = [split.inputs.bow for split in (train, test)]
    if features == "released":
        bows = [released_features(bow) for bow in bows]
    learn = Split(Inputs(bow=bows[0]), train.labels, train.meta)
    ids = rotated(train.labels)
    rows = []
    for variant in variants:
        model = get("DiSMEC", variant, normalize=features != "published").fit(
            learn, threads=threads
        )
        top = model.predict(Inputs(bow=bows[1]), 5)
        for named, ranked in itertools.product(("right", "rotated"), ("plain", "re-ranked")):
            shown = renamed(top, ids) if named == "rotated" else top
            convention = "dismec-java" if ranked == "re-ranked" else "pyxclib"
            found = score(shown, test.labels, train.labels, convention=convention)
            rows.append(
                {
                    "variant": variant,
                    "features": features,
                    "labels": named,
                    "ranking": ranked,
                    **{name: found[name] for name in METRICS},
                }
            )
    return rows


def compared(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows with their distances from print and their mean relative changes (PW eq. 30).

    A change is over the plain row with the same features and ranking and with right label ids.
    """
    printed = printed_rows()
    plain = {
        (row.get("features"), row.get("ranking")): row
        for row in rows
        if (row["variant"], row.get("labels")) == ("plain", "right")
    }
    for row in rows:
        base = plain.get((row.get("features"), row.get("ranking")))
        for kind in SUMMARY_METRICS:
            change = mean_relative_change(_whole(base), _whole(row), kind) if base else np.nan
            row[f"{kind} change"] = change
        expected = printed[row["variant"]]
        vanilla = {name: value for name, value in expected.items() if not name.startswith("PS")}
        row["vanilla off"] = distance(row, vanilla)
        row["PS off"] = distance(row, expected, "PS")
        is_plain = row["variant"] == "plain"
        row["README off"] = distance(row, README_OF_DISMEC) if is_plain else np.nan
    return pd.DataFrame(rows)


def _whole(row: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a row with the two at 1 that are printed once."""
    return {**row, "nDCG@1": row["P@1"], "PSnDCG@1": row["PSP@1"]}


def main(argv: list[str]) -> int:
    """Fit, score, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.studies.pw_table3",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    parser.add_argument("--out", type=Path, default=Path("results/studies/pw_table3.csv"))
    options = parser.parse_args(argv)
    train, test = (with_labels(split) for split in load(DATASET))
    bow = train.inputs.bow
    assert bow is not None
    small = float((bow.data < 0.5).mean())
    print(f"{small:.1%} of {DATASET}'s values round to 0")
    rows: list[dict[str, Any]] = []
    for features in options.features:
        rows += readings(train, test, features, options.threads)
        frame = compared(rows)
        with pd.option_context("display.width", 250):
            new = frame[frame["features"] == features]
            print(new.round(2).to_string(index=False), flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_csv(options.out, frame)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
