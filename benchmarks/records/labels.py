"""``labels/<dataset>.csv``: what each method finds of every label, with the label's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.data.prepared import open_prepared, read_meta
from benchmarks.evaluation.bins import DECILES, PARTS, frequency_bins
from benchmarks.records.cell import NORMS, PREDICTIONS, Cell
from benchmarks.records.files import cell_file

K = 5
FACTS = ["label", "name", "part", "decile", "train", "test"]
FOUND, NORM = f"found@{K} ", "norm "
"""What the columns of a method, ``base/variant``, begin with."""


def labels(dataset: str, cells: Iterable[Cell], results: str | Path = "results") -> pd.DataFrame:
    """One row per label: its name, bin and counts, and for each method what it found.

    ``found@5 BASE/VARIANT`` is the number of test documents that have the label and get it among
    their first five, averaged over seeds; ``norm BASE/VARIANT`` the norm of its classifier (first
    seed), where the method has one. A dataset that is unavailable has no rows.
    """
    folder = Path(results, "data", dataset)
    if "unavailable" in read_meta(folder):
        return pd.DataFrame(columns=FACTS)
    train, test = open_prepared(folder)
    counts = train.label_counts()
    of_label = frequency_bins(counts).of_label
    frame = pd.DataFrame(
        {
            "label": np.arange(len(counts)),
            "name": label_names(folder, len(counts)),
            "part": [PARTS[part] for part in of_label[:, 0]],
            "decile": np.where(of_label[:, 1] >= 0, of_label[:, 1] - len(PARTS) + 1, 0),
            "train": counts,
            "test": test.label_counts(),
        }
    )
    assert len(DECILES) >= frame["decile"].max()
    methods: dict[str, list[Cell]] = {}
    for cell in cells:
        methods.setdefault(f"{cell.base}/{cell.variant}", []).append(cell)
    columns: dict[str, np.ndarray] = {}
    for method, seeds in methods.items():
        found = [_found(cell, test.labels, results) for cell in seeds]
        ran = [one for one in found if one is not None]
        if not ran:
            continue
        columns[FOUND + method] = np.mean(ran, axis=0)
        with np.load(_file(seeds[0], NORMS, results)) as stored:
            norms = np.asarray(stored["norms"])
        if len(norms) == len(counts) and not np.isnan(norms).all():
            columns[NORM + method] = norms
    return pd.concat([frame, pd.DataFrame(columns)], axis=1)


def read_labels(path: str | Path) -> pd.DataFrame:
    """A file of :func:`labels`; names stay text, even ``NA`` or ``007``."""
    columns = pd.read_csv(path, nrows=0).columns
    missing = {column: [""] for column in columns if column != "name"}
    return pd.read_csv(path, dtype={"name": str}, keep_default_na=False, na_values=missing)


def label_names(folder: Path, n_labels: int) -> list[str]:
    """The names of a prepared dataset's labels; their numbers where it has none."""
    path = folder / "labels.txt"
    names = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return names[:n_labels] if len(names) > n_labels else [f"label {i}" for i in range(n_labels)]


def movements(
    frame: pd.DataFrame, before: str, after: str, most: int
) -> Mapping[str, pd.DataFrame]:
    """The labels that a method gained and lost most of, against another: documents found.

    Keys ``gained`` and ``lost``, the largest first; columns of :data:`FACTS`, before, after.
    """
    pair = frame[FACTS].assign(before=frame[FOUND + before], after=frame[FOUND + after])
    change = pair["after"] - pair["before"]
    order = change.abs().sort_values(ascending=False, kind="stable").index
    pair, change = pair.loc[order], change.loc[order]
    return {"gained": pair[change > 0].head(most), "lost": pair[change < 0].head(most)}


def _file(cell: Cell, name: str, results: str | Path) -> Path:
    return cell_file(cell.file(name, results).parent, name)


def _found(cell: Cell, truth: sparse.csr_matrix, results: str | Path) -> np.ndarray | None:
    """In how many documents each label is rightly among the first five; None if the cell failed."""
    with np.load(_file(cell, PREDICTIONS, results)) as stored:
        head = np.asarray(stored["indices"])[:, :K]
    if not len(head) or (head < 0).all():
        return None
    rows = np.repeat(np.arange(len(head)), head.shape[1])[(head >= 0).ravel()]
    shape = truth.shape
    given = sparse.csr_matrix((np.ones(len(rows)), (rows, head[head >= 0])), shape=shape)
    return np.asarray(given.multiply(truth).sum(axis=0)).ravel()
