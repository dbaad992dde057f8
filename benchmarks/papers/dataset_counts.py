"""A paper's table of datasets as printed, beside what the data say.

A printed value is compared with the prepared data; where those are not at hand, with the card
(counts that every release must have, averages as the publisher states them). A value that
differs gets an explanation: the ones found by looking for it elsewhere (another column of the
same dataset, the same column of another), and the note of the published table.

Which table it is (``role: statistics``), and what its rows and columns are called here, says the
paper's ``paper.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.data.cards import Card, all_cards
from benchmarks.data.facts import label_averages
from benchmarks.data.prepared import SPLITS, prepared_names, read_meta
from benchmarks.data.xc import read_matrix
from benchmarks.papers.spec import Paper
from benchmarks.papers.verdicts import NOT_RUN, OUTSIDE, REPRODUCED
from benchmarks.render.table import MISSING, Table

WITH_TEST = "documents_per_label_with_test"
CUT = "cut, not rounded"
COLUMNS = ["dataset", "card", "quantity", "printed", "found", "from", "verdict", "explanation"]


@dataclass(frozen=True)
class Evidence:
    """What is known of a dataset, and from where: ``data`` or ``card``."""

    values: Mapping[str, float]
    origin: Mapping[str, str]


def evidence(name: str, card: Card | None, data: str | Path) -> Evidence:
    """Facts of a dataset from its prepared folder, or its label matrices, and from its card."""
    known: dict[str, float] = {}
    if card is not None:
        known = {**card.counts, **card.reference, "A": card.A, "B": card.B}
    origin = dict.fromkeys(known, "card")
    found: dict[str, Any] = {}
    folder = Path(data) / name
    matrices = card.label_matrices if card is not None else None
    if (folder / "meta.json").exists():
        found = {k: v for k, v in read_meta(folder).items() if isinstance(v, int | float)}
    elif matrices and (Path(data) / matrices["of"] / "meta.json").exists():
        train, test = (read_matrix(Path(data) / matrices["of"] / matrices[s]) for s in SPLITS)
        found = {"n_train": train.shape[0], "n_test": test.shape[0], "n_labels": train.shape[1]}
        found |= label_averages(train, test)
    known |= found
    origin |= dict.fromkeys(found, "data")
    return Evidence(known, origin)


def compare(paper: Paper, data: str | Path) -> pd.DataFrame:
    """One row for each printed value of a paper's dataset table, with the columns ``COLUMNS``.

    ``dataset`` is the printed name, ``card`` ours; ``from`` is ``data`` or ``card``.
    """
    printed = paper.values[paper.values["role"] == "statistic"]
    quantities = list(dict.fromkeys(printed["our_metric"]))
    cards = all_cards()
    names = dict.fromkeys([*cards, *printed["our_dataset"]])
    everything = {name: evidence(name, cards.get(name), data) for name in names}
    rows = []
    for entry in printed.to_dict("records"):
        name, quantity = entry["our_dataset"], entry["our_metric"]
        own = everything[name]
        value = own.values.get(quantity)
        verdict, remark = judge(entry["value"], value)
        reasons = [remark, entry["note"]]
        if verdict == OUTSIDE:
            reasons = [*_search(entry["value"], quantity, name, everything, quantities), *reasons]
        if quantity == "documents_per_label" and verdict != REPRODUCED:
            reasons = [*_own_arithmetic(printed[printed["dataset"] == entry["dataset"]]), *reasons]
        agrees = verdict == REPRODUCED and not remark
        rows.append(
            {
                "dataset": entry["dataset"],
                "card": name,
                "quantity": quantity,
                "printed": entry["value"],
                "found": _text(value, entry["value"]),
                "from": own.origin.get(quantity, MISSING),
                "verdict": verdict,
                "explanation": "" if agrees else "; ".join(filter(None, reasons)),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def judge(printed: str, value: float | None) -> tuple[str, str]:
    """Verdict and remark on a printed value, at its own precision, rounded or cut."""
    if value is None:
        return NOT_RUN, "not known here"
    wanted = Decimal(printed)
    step = Decimal(1).scaleb(int(wanted.as_tuple().exponent))
    exact = Decimal(repr(float(value)))
    if exact.quantize(step, ROUND_HALF_UP) == wanted:
        return REPRODUCED, ""
    return (REPRODUCED, CUT) if exact.quantize(step, ROUND_DOWN) == wanted else (OUTSIDE, "")


def _search(
    printed: str,
    quantity: str,
    name: str,
    everything: Mapping[str, Evidence],
    quantities: list[str],
) -> list[str]:
    """Where else a value that differs is found."""
    own = everything[name].values
    found = []
    for other in (*quantities, WITH_TEST):
        if other != quantity and judge(printed, own.get(other))[0] == REPRODUCED:
            if other == WITH_TEST:
                found.append(
                    f"counts train and test together; train alone gives {own[quantity]:.2f}"
                )
            elif quantity not in ("A", "B") and other not in ("A", "B"):
                found.append(f"is this dataset's {other}: swapped")
    counts = quantity.startswith("n_")
    if counts:
        right = str(int(own[quantity]))
        same_length = len(printed) == len(right)
        if same_length and sum(a != b for a, b in zip(printed, right, strict=True)) == 1:
            found.append(f"one digit off {int(right):,}: a misprint")
    for other_name, theirs in everything.items():
        # Averages coincide by chance; counts hardly do.
        value = theirs.values.get(quantity)
        if counts and other_name != name and judge(printed, value) == (REPRODUCED, ""):
            found.append(f"is {other_name}'s")
    return found


def _own_arithmetic(rows: pd.DataFrame) -> list[str]:
    """Documents per label must be N x labels per document / L, within the latter's rounding."""
    row = dict(zip(rows["our_metric"], rows["value"], strict=True))
    if not {"labels_per_document", "n_train", "n_labels"} <= set(row):
        return []
    labels = Decimal(row["labels_per_document"])
    half = Decimal(1).scaleb(int(labels.as_tuple().exponent)) / 2
    scale = Decimal(row["n_train"]) / Decimal(row["n_labels"])
    wanted = Decimal(row["documents_per_label"])
    if (labels - half) * scale <= wanted <= (labels + half) * scale:
        return []
    return [f"its own N x labels/document / L is {labels * scale:.2f}"]


def _text(value: float | None, printed: str) -> str:
    if value is None:
        return MISSING
    if float(value).is_integer() and "." not in printed:
        return str(int(value))
    decimals = max(2, -int(Decimal(printed).as_tuple().exponent))
    return f"{value:.{decimals}f}"


def table(paper: Paper, data: str | Path) -> Table:
    """The comparison as a table to print; values that differ are in bold."""
    numbers = [t["table"] for t in paper.spec["tables"] if t["role"] == "statistics"]
    if not numbers:
        raise ValueError(f"{paper.id}: no table of paper.yaml has the role of statistics")
    frame = compare(paper, data)
    marked = frozenset(
        (row, column)
        for row, verdict in enumerate(frame["verdict"])
        if verdict == OUTSIDE
        for column in ("printed", "verdict")
    )
    differing = int((frame["verdict"] == OUTSIDE).sum())
    at_hand = sorted(set(frame.loc[frame["from"] == "data", "card"]))
    which = f"{paper.short_title} Table {', '.join(numbers)}"
    return Table(
        caption=f"{which}: the datasets as printed and as they are",
        frame=frame,
        key_columns=["dataset", "card", "quantity", "from", "verdict", "explanation"],
        bold=marked,
        notes=[
            f"{differing} of {len(frame)} printed values differ. From data: "
            f"{', '.join(at_hand) or 'none at hand'}; the others from their cards."
        ],
    )


def overview(data: str | Path) -> Table:
    """Every prepared dataset in one table."""
    columns = {
        "n_train": "train",
        "n_test": "test",
        "n_features": "features",
        "n_labels": "labels",
        "labels_in_train": "in train",
        "labels_only_in_test": "test only",
        "labels_per_document": "labels/doc",
        "documents_per_label": "docs/label",
        "least_label_count": "least docs/label",
        "tokens_per_document": "tokens/doc",
    }
    rows = []
    for name in prepared_names(data):
        meta = read_meta(Path(data) / name)
        row: dict[str, Any] = {"dataset": name}
        row |= {title: meta.get(key) for key, title in columns.items()}
        row["test docs seen in train"] = meta["duplicates"]["train_test"]
        row["subset of"] = meta.get("subset_of") or ""
        rows.append(row)
    titles = ["dataset", *columns.values(), "test docs seen in train", "subset of"]
    frame = pd.DataFrame(rows, columns=titles)
    for title in columns.values():
        frame[title] = pd.to_numeric(frame[title])
    whole = ["train", "test", "features", "labels", "in train", "test only", "least docs/label"]
    texts = {
        (i, title): MISSING if pd.isna(row[title]) else f"{int(row[title]):,}"
        for i, row in enumerate(frame.to_dict("records"))
        for title in whole
    }
    return Table(
        caption="The datasets at hand",
        frame=frame,
        key_columns=["dataset", "subset of"],
        texts=texts,
    )
