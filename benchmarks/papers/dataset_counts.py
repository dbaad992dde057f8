"""Every paper's dataset table as printed, beside what the data say.

A printed value is compared with the prepared data; where those are not at hand, with the card
(counts that every release must have, averages as the publisher states them). A value that
differs gets an explanation: the ones found by looking for it elsewhere (another column of the
same dataset, the same column of another), and the note of the published table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.data.cards import Card, all_cards
from benchmarks.data.facts import label_averages
from benchmarks.data.prepared import read_meta
from benchmarks.data.xc import read_matrix
from benchmarks.render.table import MISSING, Table, write_table

PAPERS = Path(__file__).parent
TABLES = {
    "ranknet_taug": "ranknet_taug_table1.csv",
    "tailmix": "tailmix_table1.csv",
    "pw": "pw_table2.csv",
    "glas": "glas_table5.csv",
    "httn": "httn_table1.csv",
}
TITLES = {
    "ranknet_taug": "RankNet+Taug Table 1",
    "tailmix": "TailMix Table 1",
    "pw": "PW Table 2",
    "glas": "GLaS Table 5",
    "httn": "HTTN Table 1",
}
# The papers' column names, by ours.
QUANTITIES = {
    "n_train": ("n_train",),
    "n_test": ("n_test",),
    "n_features": ("n_features",),
    "n_labels": ("n_labels",),
    "n_words": ("vocab_words_D",),
    "labels_per_document": (
        "avg_labels_per_sample(Lbar)",
        "avg_labels_per_sample",
        "avg_labels_per_point",
        "avg_labels_per_doc",
        "ALpP",
    ),
    "documents_per_label": (
        "avg_samples_per_label(Nbar)",
        "avg_samples_per_label",
        "avg_points_per_label",
        "avg_docs_per_label",
        "APpL",
    ),
    "tokens_per_document": ("avg_tokens", "avg_words_train"),
    "tokens_per_test_document": ("avg_words_test",),
    "A": ("propensity_A",),
    "B": ("propensity_B",),
}
_OURS = {printed: ours for ours, names in QUANTITIES.items() for printed in names}

AGREES, CUT, DIFFERS, UNKNOWN = "agrees", "agrees, cut not rounded", "differs", "not known here"


@dataclass(frozen=True)
class Evidence:
    """What is known of a dataset, and from where: ``data`` or ``card``."""

    values: Mapping[str, float]
    origin: Mapping[str, str]


def evidence(card: Card, data: str | Path) -> Evidence:
    """Facts of a dataset from its prepared folder, or its label matrices, and from its card."""
    known: dict[str, float] = {**card.counts, **card.reference, "A": card.A, "B": card.B}
    origin = dict.fromkeys(known, "card")
    found: dict[str, Any] = {}
    folder = Path(data) / card.name
    matrices = card.label_matrices
    if (folder / "meta.json").exists():
        found = {k: v for k, v in read_meta(folder).items() if isinstance(v, int | float)}
    elif matrices and (Path(data) / matrices["of"] / "meta.json").exists():
        train, test = (read_matrix(Path(data) / matrices["of"] / matrices[s]) for s in _SPLITS)
        found = {"n_train": train.shape[0], "n_test": test.shape[0], "n_labels": train.shape[1]}
        found |= label_averages(train, test)
    known |= found
    origin |= dict.fromkeys(found, "data")
    return Evidence(known, origin)


_SPLITS = ("train", "test")


def compare(paper: str, data: str | Path, papers: Path = PAPERS) -> pd.DataFrame:
    """One row for each printed value of a paper's dataset table.

    Columns: dataset (as printed), card, quantity, printed, found, from, verdict, explanation.
    """
    path = papers / paper / "published" / TABLES[paper]
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; it holds the table as printed")
    printed = pd.read_csv(path, dtype=str, keep_default_na=False)
    cards = {alias: card for card in all_cards().values() for alias in card.aliases.get(paper, ())}
    unknown = sorted(set(printed["dataset"]) - set(cards))
    if unknown:
        raise ValueError(f"{path}: no card says it is {', '.join(unknown)} (aliases: {paper})")
    everything = {card.name: evidence(card, data) for card in all_cards().values()}
    rows = []
    for entry in printed.to_dict("records"):
        card = cards[entry["dataset"]]
        quantity = _OURS[entry["metric"]]
        own = everything[card.name]
        value = own.values.get(quantity)
        verdict = judge(entry["value"], value)
        others = [entry["note"]] if entry["note"] else []
        if verdict == DIFFERS:
            others = [*_search(entry["value"], quantity, card.name, everything), *others]
        if quantity == "documents_per_label" and verdict in (DIFFERS, UNKNOWN):
            others = [*_own_arithmetic(printed[printed["dataset"] == entry["dataset"]]), *others]
        rows.append(
            {
                "dataset": entry["dataset"],
                "card": card.name,
                "quantity": quantity,
                "printed": entry["value"],
                "found": _text(value, entry["value"]),
                "from": own.origin.get(quantity, MISSING),
                "verdict": verdict,
                "explanation": "; ".join(others) if verdict != AGREES else "",
            }
        )
    return pd.DataFrame(rows)


def judge(printed: str, value: float | None) -> str:
    """Whether a printed value is ours at its own precision, rounded or cut."""
    if value is None:
        return UNKNOWN
    wanted = Decimal(printed)
    step = Decimal(1).scaleb(int(wanted.as_tuple().exponent))
    exact = Decimal(repr(float(value)))
    if exact.quantize(step, ROUND_HALF_UP) == wanted:
        return AGREES
    return CUT if exact.quantize(step, ROUND_DOWN) == wanted else DIFFERS


def _search(
    printed: str, quantity: str, name: str, everything: Mapping[str, Evidence]
) -> list[str]:
    """Where else a value that differs can be found."""
    own = everything[name].values
    found = []
    for other in (*QUANTITIES, "documents_per_label_with_test"):
        if other != quantity and judge(printed, own.get(other)) in (AGREES, CUT):
            if other == "documents_per_label_with_test":
                found.append(
                    f"counts train and test together; train alone gives {own[quantity]:.2f}"
                )
            elif quantity not in ("A", "B") and other not in ("A", "B"):
                found.append(f"is this dataset's {other}: swapped")
    counts = quantity.startswith("n_")
    if counts:
        right = str(int(own[quantity]))
        if sum(a != b for a, b in zip(printed, right, strict=False)) == 1:
            found.append(f"one digit off {int(right):,}: a misprint")
    for other_name, theirs in everything.items():
        # Averages coincide by chance; counts hardly do.
        if counts and other_name != name and judge(printed, theirs.values.get(quantity)) == AGREES:
            found.append(f"is {other_name}'s")
    return found


def _own_arithmetic(rows: pd.DataFrame) -> list[str]:
    """Documents a label must be N x labels a document / L, within the rounding of the latter."""
    row = {
        _OURS[metric]: value for metric, value in zip(rows["metric"], rows["value"], strict=True)
    }
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


def table(paper: str, data: str | Path, papers: Path = PAPERS) -> Table:
    """The comparison as a table to print; values that differ are in bold."""
    frame = compare(paper, data, papers)
    marked = frozenset(
        (row, column)
        for row, verdict in enumerate(frame["verdict"])
        if verdict == DIFFERS
        for column in ("printed", "verdict")
    )
    differing = int((frame["verdict"] == DIFFERS).sum())
    at_hand = sorted(set(frame.loc[frame["from"] == "data", "card"]))
    return Table(
        caption=f"{TITLES[paper]}: the datasets as printed and as they are",
        frame=frame,
        key_columns=["dataset", "card", "quantity", "from", "verdict", "explanation"],
        bold=marked,
        notes=[
            f"{differing} of {len(frame)} printed values differ. From data: "
            f"{', '.join(at_hand) or 'none at hand'}; the others from their cards."
        ],
    )


def overview(data: str | Path, names: Sequence[str] | None = None) -> Table:
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
        "tokens_per_document": "tokens/doc",
    }
    rows = []
    for name in names if names is not None else prepared_names(data):
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
    whole = ["train", "test", "features", "labels", "in train", "test only"]
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


def prepared_names(data: str | Path) -> list[str]:
    """Every dataset with labels that is prepared below a folder.

    Vectors have no training documents, and what could not be had has no facts at all; a folder
    of an earlier version that lacks some is made again when a run asks for it.
    """
    wanted = {"n_train", "duplicates"}
    paths = sorted(Path(data).glob("*/meta.json"))
    return [path.parent.name for path in paths if wanted <= set(read_meta(path.parent))]


def write_all(data: str | Path, folder: str | Path) -> None:
    """Write ``datasets_{paper}`` for every paper, and ``datasets`` for what is at hand."""
    for paper in TABLES:
        write_table(table(paper, data), Path(folder) / f"datasets_{paper}")
    write_table(overview(data), Path(folder) / "datasets")
