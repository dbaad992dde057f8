"""Which cells failed, why, and the command that runs just them again."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from benchmarks.records.cell import Cell


def describe(failures: pd.DataFrame, configfiles: Sequence[str]) -> str:
    """The failed cells with their reasons, and how to rerun them."""
    if failures.empty:
        return "No cell failed."
    lines = [f"{len(failures)} cell(s) failed:"]
    files = []
    for dataset, base, variant, seed, status, reason in failures.itertuples(index=False):
        cell = Cell(dataset, base, variant, int(seed))
        lines.append(f"  {cell}: {status}: {reason}")
        lines.append(f"      log: results/logs/runs/{cell.path}.log")
        files.append(f"results/runs/{cell.path}/run.json")
    options = [f"--configfile {' '.join(configfiles)}"] if configfiles else []
    command = ["snakemake --cores all", *options, "--forcerun", *files]
    lines += ["Run just these again:", "  " + " \\\n    ".join(command)]
    return "\n".join(lines)
