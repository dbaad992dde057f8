"""How long the report of a large run takes to build, and how large it is.

Makes up the results of 200 cells (4 datasets, 5 bases, 5 variants, 2 seeds; 4,000 labels each) that
meet all five papers, builds ``report.html`` from them in a fresh process, and prints seconds and
megabytes beside what is asked of them: 30 s and 8 MB. Making up the results is not counted;
starting Python and reading the files are.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.papers.spec import load_papers
from workflow.studies.made_up_results import write_results

SECONDS = 30.0
LIMIT = 8_000_000
"""Bytes that a page may have to be sent by mail."""

_BUILD = (
    "from pathlib import Path; from workflow.report import Run, build; "
    "build(Run(Path('results'), {}), Path('results/report.html'))"
)


def measure(folder: Path) -> dict[str, float]:
    """Build the report of made-up results in a folder: cells, papers, seconds, bytes."""
    cells = len(write_results(folder))
    root = Path(__file__).resolve().parents[2]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {_BUILD}"],
        cwd=folder,
        check=True,
    )
    seconds = time.perf_counter() - start
    size = (folder / "results/report.html").stat().st_size
    return {"cells": cells, "papers": len(load_papers()), "seconds": seconds, "bytes": size}


def main(argv: list[str]) -> int:
    """The command; 1 if the page is too large or took too long."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed report", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--repeats", type=int, default=3, help="builds; the fastest counts")
    parser.add_argument("--output", type=Path, default=Path("results/speed/report.csv"))
    given = parser.parse_args(argv)
    found = []
    for _ in range(given.repeats):
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(Path(folder)))
    best = min(found, key=lambda row: row["seconds"])
    write_csv(given.output, pd.DataFrame([best]))
    print(
        f"{best['cells']:.0f} cells x {best['papers']:.0f} papers: report.html in "
        f"{best['seconds']:.1f} s (asked for: {SECONDS:.0f}), {best['bytes'] / 1e6:.2f} MB "
        f"(asked for: {LIMIT / 1e6:.0f})"
    )
    return int(best["seconds"] > SECONDS or best["bytes"] > LIMIT)
