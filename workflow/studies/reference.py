"""Writes what a run says of a paper into results/reference: a page, its figures, its values.

``python -m workflow.studies.reference PAPER [PAPER ...] [--results results] [--prefix NAME_]``,
started in the folder of the run, reads its collected files, and of each paper writes

    <paper>.md             what ran and when, the paper's tables and figures redrawn, and every
                           printed value that was measured, with its verdict; the text of
                           <paper>.intro.md, which is written by hand, stands first
    <paper>_<figure>.png   its figures
    compare_<paper>.csv    the printed values on datasets of the run, with verdicts and reasons

and once <prefix>cells.csv (values over all labels), <prefix>intervals.csv, <prefix>runs.csv.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_csv, write_text
from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.papers.artefacts import Artefact, artefacts_of
from benchmarks.papers.spec import load_paper
from benchmarks.papers.verdicts import MEASURED
from benchmarks.records.cells import read_cells, read_runs, write_cells, write_runs
from benchmarks.records.intervals import read_intervals, write_intervals
from benchmarks.render.table import Table, to_markdown

DIGITS = 9
"""Significant digits of the values that are kept: a reference is compared to 1e-6 points."""
SHOWN = ["table", "dataset", "base", "variant", "metric", "printed", "ours", "low", "high"]


def run_in_words(runs: pd.DataFrame) -> str:
    """How many cells ran, at which commits, on what, and how long they took."""
    ok = runs[runs["status"] == "ok"]
    commits = ", ".join(
        "unknown" if pd.isna(commit) else f"{commit[:7]}{' (with uncommitted edits)' * bool(dirty)}"
        for commit, dirty in runs[["commit", "dirty"]].drop_duplicates().itertuples(index=False)
    )
    return (
        f"{len(ok)} of {len(runs)} cells are ok. Commit: {commits}. Processor: "
        f"{', '.join(sorted(set(runs['cpu'].dropna())))}. {ok['cpu_s'].sum() / 3600:.1f} hours of "
        f"processor time, {ok['peak_mb'].max():.0f} MB at most in a cell."
    )


def printed_values(compared: pd.DataFrame) -> Table:
    """The printed values that were measured, with intervals and verdicts."""
    found = compared[(compared["kind"] == "value") & compared["outcome"].isin(MEASURED)]
    found = found.rename(columns={"ours_low": "low", "ours_high": "high"})
    frame = found[[*SHOWN, "seeds", "verdict", "reason"]].fillna(
        {"base": "", "variant": "", "reason": ""}
    )
    frame["seeds"] = [str(int(n)) if pd.notna(n) else "" for n in frame["seeds"]]
    keys = [column for column in frame if column not in ("ours", "low", "high")]
    return Table("Printed values that were measured", frame.reset_index(drop=True), keys)


def page(paper: str, folder: Path, out: Path) -> str:
    """The page of a paper; its figures are copied beside it."""
    loaded = load_paper(paper)
    intro = out / f"{paper}.intro.md"
    compared = pd.read_csv(folder / "compare" / f"{paper}.csv", dtype={"table": str})
    parts = [
        f"# {loaded.short_title}: what a run says of the paper",
        run_in_words(read_runs(folder / "runs.csv")),
        *([intro.read_text(encoding="utf-8").strip()] if intro.exists() else []),
        *(
            _artefact(a, folder, out, paper)
            for a in artefacts_of(paper)
            if a.needs_cells or a.kind == "figure"
        ),
        to_markdown(printed_values(compared)),
    ]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def _artefact(artefact: Artefact, folder: Path, out: Path, paper: str) -> str:
    if artefact.kind == "figure":
        name = artefact.name.removeprefix(f"{paper}_")
        target = f"{paper}_{name}.png"
        shutil.copyfile(folder.parent / "figures" / f"{artefact.name}.png", out / target)
        return f"**{artefact.caption}**\n\n![{artefact.caption}]({target})"
    text = (folder / "tables" / f"{artefact.name}.md").read_text(encoding="utf-8")
    return text.strip() if text.count("\n| ") > 2 else ""  # a header and a rule are no rows


def write_values(papers: Sequence[str], folder: Path, out: Path, prefix: str) -> None:
    """The run's values over all labels, by the default convention and those of the papers."""
    used = {DEFAULT}.union(*(set(load_paper(paper).values["convention"]) for paper in papers))
    cells = read_cells(folder / "cells.csv")
    kept = cells[cells["bin"].fillna("all").eq("all") & cells["convention"].isin(used)].copy()
    for column in ("value", "numerator", "denominator"):
        kept[column] = kept[column].map(lambda value: float(f"{value:.{DIGITS}g}"))
    write_cells(kept, out / f"{prefix}cells.csv")
    write_intervals(read_intervals(folder / "intervals.csv"), out / f"{prefix}intervals.csv")
    write_runs(read_runs(folder / "runs.csv"), out / f"{prefix}runs.csv")


def main(argv: list[str]) -> int:
    """Write the pages and the values."""
    parser = argparse.ArgumentParser(prog="python -m workflow.studies.reference")
    parser.add_argument("papers", nargs="+")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--out", type=Path, default=Path("results/reference"))
    parser.add_argument("--prefix", default="", help="of the files of values")
    options = parser.parse_args(argv)
    folder, out = options.results, options.out
    datasets = set(read_cells(folder / "cells.csv")["dataset"])
    for paper in options.papers:
        write_text(out / f"{paper}.md", page(paper, folder, out))
        compared = pd.read_csv(folder / "compare" / f"{paper}.csv", dtype={"table": str})
        own = compared[compared["our_dataset"].isin(datasets) | (compared["kind"] != "value")]
        write_csv(out / f"compare_{paper}.csv", own)
    write_values(options.papers, folder, out, options.prefix)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
