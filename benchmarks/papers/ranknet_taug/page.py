"""The RankNet+Taug paper's tables, figures and claims for the datasets of a run, as one section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import write_text
from benchmarks.papers.ranknet_taug import figures as paper
from benchmarks.papers.ranknet_taug.claims import NOTE, claims, differences, summary
from benchmarks.records.cells import read_cells
from benchmarks.render.figure import write_figure
from benchmarks.render.table import MINUS, Table, to_html, write_table

FIGURES = {
    "ranknet_taug_figure1": "Label frequencies and weight norms before and after augmentation "
    "(RankNet+Taug Figs. 1 and 4)",
    "ranknet_taug_figure2": "Weight norms and metrics as augmentation grows (RankNet+Taug Fig. 2)",
    "ranknet_taug_figure5": "Metrics against the threshold between head and tail "
    "(RankNet+Taug Fig. 5)",
    "ranknet_taug_theorem1": "Weight norm against times predicted (RankNet+Taug Theorem 1)",
}
Settings = Mapping[str, Mapping[str, float]]


def gains(frame: pd.DataFrame, intervals: pd.DataFrame, variant: str, caption: str) -> Table:
    """A table of :func:`figures.improvements`, changes with intervals."""
    bounds = differences(intervals, variant)
    texts = {}
    for number, row in enumerate(frame.to_dict("records")):
        for column in frame.columns:
            key = (row["dataset"], row["base"], column.removeprefix("+"))
            if column.startswith("+") and key in bounds.index:
                low, high = bounds.loc[key, ["difference_low", "difference_high"]]
                text = f"{row[column]:+.2f} [{low:+.2f},\N{NO-BREAK SPACE}{high:+.2f}]"
                texts[number, column] = text.replace("-", MINUS)
    signed = {column: "+.2f" for column in frame.columns if column.startswith("+")}
    note = "Changes in points; brackets: 95% interval over test documents."
    # PSnDCG@1 is PSP@1: printed once.
    hidden = ["PSnDCG@1", "+PSnDCG@1"]
    return Table(caption, frame, ["dataset", "base"], signed, texts, notes=[note], hidden=hidden)


def tables(cells: pd.DataFrame, intervals: pd.DataFrame) -> dict[str, Table]:
    """Tables 2 to 6 in the paper's shape, and Table 2 with settings chosen by dataset."""
    found = {
        "ranknet_taug_table2": gains(
            paper.table2(cells),
            intervals,
            "RankNet",
            "Each base, and what RankNet changes (RankNet+Taug Table 2)",
        ),
        "ranknet_taug_table2_chosen": gains(
            paper.table2(cells, "RankNet-chosen"),
            intervals,
            "RankNet-chosen",
            "Each base, and what RankNet changes with settings chosen on the dataset's own "
            "training documents",
        ),
        "ranknet_taug_table3": gains(
            paper.table3(cells),
            intervals,
            "Taug-ds",
            "Bonsai, and what Taug changes (RankNet+Taug Table 3)",
        ),
        "ranknet_taug_table4": Table(
            "PSP of the methods for the tail (RankNet+Taug Table 4)",
            paper.table4(cells),
            ["dataset", "metric"],
        ),
        "ranknet_taug_table5": Table(
            "Vanilla metrics without and with RankNet (RankNet+Taug Table 5)",
            paper.table5(cells),
            ["dataset", "method"],
        ),
        "ranknet_taug_table6": Table(
            "Dropout and swap apart and together, on Bonsai (RankNet+Taug Table 6)",
            paper.table6(cells),
            ["dataset", "method"],
        ),
    }
    return found


def sweep(cells: pd.DataFrame, settings: Settings, over: str, base: str = "Bonsai") -> pd.DataFrame:
    """Metrics of Taug's variants against one setting, the other at its most frequent value.

    Columns: dataset, ``over``, metric, value.
    """
    other = "tau" if over == "n_aug" else "n_aug"
    usual = [setting[other] for setting in settings.values()]
    columns = ["dataset", over, "metric", "value"]
    if not usual:
        return pd.DataFrame(columns=columns)
    kept = max(usual, key=usual.count)
    table = paper.wide(cells)
    rows = []
    for (dataset, its_base, variant), values in table.iterrows():
        setting = settings.get(variant)
        if its_base != base or setting is None or setting[other] != kept:
            continue
        for metric in ("P@5", "PSP@1", "PSP@3", "PSP@5"):
            rows.append((dataset, setting[over], metric, values.get(metric, np.nan)))
    frame = pd.DataFrame(rows, columns=columns)
    # One setting is no sweep.
    many = frame.groupby("dataset")[over].transform("nunique") > 1
    return frame[many].reset_index(drop=True)


def swept_norms(norms: pd.DataFrame, settings: Settings, datasets: Sequence[str]) -> pd.DataFrame:
    """Norms of Bonsai's Taug variants that differ in n_aug, with that column."""
    taus = [setting["tau"] for setting in settings.values()]
    kept = {v: s for v, s in settings.items() if s["tau"] == max(taus, key=taus.count)}
    part = norms[
        norms["variant"].isin(kept) & (norms["base"] == "Bonsai") & norms["dataset"].isin(datasets)
    ]
    return part.assign(n_aug=part["variant"].map(lambda variant: kept[variant]["n_aug"]))


def predicted_frame(
    cells: Sequence[tuple[str, str, str]], files: Sequence[Path], norms: pd.DataFrame
) -> pd.DataFrame:
    """How often each cell with norms puts a label among its first five: one long frame."""
    sizes = norms.groupby("dataset")["label"].max() + 1 if len(norms) else {}
    normed = set(norms[["dataset", "base", "variant"]].itertuples(index=False, name=None))
    frames = []
    for cell, path in zip(cells, files, strict=True):
        if cell not in normed:
            continue
        with np.load(path) as stored:
            indices = stored["indices"]
        size = max(int(sizes[cell[0]]), int(indices.max(initial=-1)) + 1)
        times = paper.times_predicted(indices, size)
        keys = dict(zip(("dataset", "base", "variant"), cell, strict=True))
        frames.append(pd.DataFrame({**keys, "label": np.arange(size), "times": times}))
    columns = ["dataset", "base", "variant", "label", "times"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def write_page(
    cells: Path,
    intervals: Path,
    norms: Path,
    predicted_cells: Sequence[tuple[str, str, str]],
    predictions: Sequence[Path],
    settings: Settings,
    table_folder: Path,
    figure_folder: Path,
) -> None:
    """Write every table, figure and claim, and ``ranknet_taug.html``, the section's body."""
    measured, changes = read_cells(cells), pd.read_csv(intervals)
    by_label = pd.read_csv(norms)
    predicted = predicted_frame(predicted_cells, predictions, by_label)
    correlations = paper.norm_correlations(by_label, predicted)
    judged = claims(changes, by_label, correlations, settings)
    if judged.empty:
        parts = ["<p>No cell of this run has RankNet, Taug or weight norms.</p>"]
    else:
        overview = Table("The claims, and how often each held here", summary(judged), ["claim"])
        whole = Table("Every claim, dataset and base", judged, list(judged.columns), notes=[NOTE])
        write_table(overview, table_folder / "ranknet_taug_summary")
        write_table(whole, table_folder / "ranknet_taug_claims")
        parts = [
            to_html(overview),
            f"<details><summary>{len(judged)} verdicts</summary>{to_html(whole)}</details>",
        ]
    for name, table in tables(measured, changes).items():
        write_table(table, table_folder / name)
        if len(table.frame):
            parts.append(to_html(table))
    if len(correlations):
        columns = ["dataset", "base", "variant"]
        caption = "Rank correlations of weight norm, times predicted, and training count"
        named = correlations.rename(
            columns={
                "norm_vs_times": "norm and times predicted",
                "norm_vs_count": "norm and training count",
            }
        )
        parts.append(to_html(Table(caption, named, columns)))
    draw(measured, by_label, predicted, settings, figure_folder)
    write_text(table_folder / "ranknet_taug.html", "\n".join(parts))


def draw(
    cells: pd.DataFrame,
    norms: pd.DataFrame,
    predicted: pd.DataFrame,
    settings: Settings,
    folder: Path,
) -> None:
    """Write the figures; one without data says so and has an empty CSV."""
    on_bonsai = norms[(norms["base"] == "Bonsai") & norms["variant"].isin(["plain", "Taug-ds"])]
    both = on_bonsai.groupby("dataset")["variant"].transform("nunique") == 2
    on_bonsai = on_bonsai[both]
    write_figure(paper.figure1(on_bonsai), on_bonsai, folder / "ranknet_taug_figure1")
    copies = sweep(cells, settings, "n_aug")
    grown = norms[:0].assign(n_aug=[])
    if len(copies):
        grown = swept_norms(norms, settings, list(copies["dataset"].unique()))
    write_figure(paper.figure2(grown, copies), copies, folder / "ranknet_taug_figure2")
    thresholds = sweep(cells, settings, "tau")
    write_figure(paper.figure5(thresholds), thresholds, folder / "ranknet_taug_figure5")
    keys = ["dataset", "base", "variant", "label"]
    points = norms[norms["variant"] == "plain"].merge(predicted, on=keys)
    write_figure(paper.theorem1(points), points, folder / "ranknet_taug_theorem1")


def has_data(svg: Path) -> bool:
    """Whether a figure shows anything: the CSV beside it has rows."""
    with svg.with_suffix(".csv").open(encoding="utf-8") as lines:
        return sum(1 for _, _ in zip(lines, range(2), strict=False)) > 1
