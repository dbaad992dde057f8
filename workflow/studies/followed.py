"""Does our AttentionXML follow its authors' program? Losses by epoch, and the scores at the end.

After ``snakemake --cores 2 --configfile config/reference_attentionxml.yaml``, and in the same
folder, ``python -m workflow.studies.followed`` sets its cells beside
``results/reference/attentionxml_original.csv``, what yourh/AttentionXML e2bbbec gave on a CPU with
the same settings and documents, one seed, and writes ``attentionxml.md``, ``attentionxml.csv`` and
``attentionxml_runs.csv``. It ends with 1 where a loss after the second epoch is further than 5 %
from the authors', or their P@1 outside the range of our seeds widened by its own width.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import write_csv, write_text
from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.records.cell import PLAIN, RECORD, Cell
from benchmarks.records.cells import metric_names, read_cells, read_runs, write_runs
from benchmarks.records.files import read_record
from benchmarks.render.table import Table, to_markdown
from workflow.studies.reference import run_in_words

DATASET, BASE = "EURLex-4K-half", "AttentionXML-followed"
REFERENCE = Path(__file__).parents[2] / "results" / "reference"
LOSS, WITHIN, FROM_EPOCH = "loss", 0.05, 3
SCORES = ["P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5"]
LAST = 10


def beside(original: pd.DataFrame, seeds: dict[int, list[float]], scores: pd.DataFrame) -> Table:
    """A row per epoch's loss and per score of the last epoch: theirs, and ours by seed.

    ``seeds`` holds our losses by epoch, ``scores`` is [metric, seed] in percent.
    """
    rows = []
    for epoch, value in original[original["metric"] == LOSS][["epoch", "value"]].to_numpy():
        ours = [losses[int(epoch) - 1] for losses in seeds.values()]
        rows.append((LOSS, int(epoch), value, *ours, np.mean(ours) / value - 1.0))
    at_end = original[original["epoch"] == LAST].set_index("metric")["value"]
    for metric in SCORES:
        ours = [scores.loc[metric, seed] for seed in seeds]
        rows.append((metric, LAST, at_end[metric], *ours, np.mean(ours) / at_end[metric] - 1.0))
    columns = ["measure", "epoch", "authors", *(f"seed {seed}" for seed in seeds), "mean / theirs"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["mean / theirs"] *= 100.0
    caption = "Mean training loss of each epoch, and test scores after the last"
    return Table(caption, frame, ["measure", "epoch"], formats={"mean / theirs": "+.1f"})


def departures(table: pd.DataFrame) -> list[str]:
    """In words, what lies outside the bounds; empty where ours follows."""
    of_seeds = [column for column in table if column.startswith("seed ")]
    found = []
    losses = table[(table["measure"] == LOSS) & (table["epoch"] >= FROM_EPOCH)]
    for row in losses.to_dict("records"):
        if abs(row["mean / theirs"]) > 100 * WITHIN:
            found.append(f"loss of epoch {row['epoch']}: {row['mean / theirs']:+.1f} %")
    first = table[table["measure"] == "P@1"].iloc[0]
    ours = first[of_seeds].to_numpy(float)
    width = ours.max() - ours.min()
    if not ours.min() - width <= first["authors"] <= ours.max() + width:
        found.append(f"P@1 {first['authors']:.2f} is far from {ours.min():.2f} to {ours.max():.2f}")
    return found


def text(table: Table) -> str:
    """The page's table: losses with five digits, scores with two."""
    frame = table.frame.copy()
    digits = np.where(frame["measure"] == LOSS, 5, 2)
    for column in frame.columns[2:-1]:
        frame[column] = [f"{v:.{d}f}" for v, d in zip(frame[column], digits, strict=True)]
    frame["mean / theirs"] = [f"{value:+.1f} %" for value in frame["mean / theirs"]]
    return to_markdown(Table(table.caption, frame, list(frame.columns)))


def losses_of(seed: int, results: Path) -> list[float]:
    """The mean training losses by epoch that a cell recorded."""
    cell = Cell(DATASET, BASE, PLAIN, seed)
    return list(read_record(cell.file(RECORD, results).parent)["history"][LOSS])


def main(argv: list[str]) -> int:
    """Compare, print, write; 1 where ours does not follow."""
    parser = argparse.ArgumentParser(prog="python -m workflow.studies.followed")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--out", type=Path, default=Path("results/reference"))
    options = parser.parse_args(argv)
    runs = read_runs(options.results / "runs.csv")
    runs = runs[runs["base"] == BASE]
    cells = read_cells(options.results / "cells.csv")
    own = cells[(cells["base"] == BASE) & (cells["bin"] == "all")]
    own = own[own["convention"] == DEFAULT].assign(name=metric_names)
    scores = own.pivot(index="name", columns="seed", values="value")
    losses = {seed: losses_of(seed, options.results) for seed in sorted(runs["seed"])}
    table = beside(pd.read_csv(REFERENCE / "attentionxml_original.csv"), losses, scores)
    found = departures(table.frame)
    said = f"It does not follow: {'; '.join(found)}." if found else "It follows."
    intro = (
        "# AttentionXML beside its authors' program\n\n"
        f"{run_in_words(runs)}\n\n"
        "The authors' program ran with the same settings on the same documents, one seed. Both "
        "stop long before they converge. "
        f"Losses may be {WITHIN:.0%} apart from epoch {FROM_EPOCH} on, and the authors' P@1 must "
        "not lie further outside our seeds than they lie apart. "
        f"**{said}**"
    )
    page = f"{intro}\n\n{text(table)}"
    print(page)
    write_text(options.out / "attentionxml.md", page.rstrip() + "\n")
    write_csv(options.out / "attentionxml.csv", table.frame)
    write_runs(runs, options.out / "attentionxml_runs.csv")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
