"""Which cells failed, why, and the command that runs just them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.records.cell import KEY, Cell
from benchmarks.records.files import read_record


def read_records(paths: Iterable[str]) -> list[dict[str, Any]]:
    """The ``run.json`` of the cells that have one."""
    return [read_record(Path(path).parent) for path in paths if Path(path).exists()]


def describe(
    records: Sequence[Mapping[str, Any]], configured: int, configfiles: Sequence[str]
) -> str:
    """The failed cells with their reasons, and how to rerun them."""
    options = [f"--configfile {' '.join(configfiles)}"] if configfiles else []
    failures = [record for record in records if record["status"] != "ok"]
    to_come = configured - len(records)
    lines = []
    if to_come:
        run = " ".join(["snakemake --cores all", *options])
        lines.append(f"{to_come} of {configured} cells have not run yet: {run}")
    if not failures:
        return "\n".join([*lines, "No cell failed."])
    lines.append(f"{len(failures)} cell(s) failed:")
    files = []
    for record in failures:
        cell = Cell(*(record[key] for key in KEY))
        lines.append(f"  {cell}: {record['status']}: {record['reason']}")
        lines.append(f"      log: results/logs/runs/{cell.path}.log")
        files.append(f"results/runs/{cell.path}/run.json")
    command = ["snakemake --cores all", *options, "--forcerun", *files]
    lines += ["Run just these again:", "  " + " \\\n    ".join(command)]
    return "\n".join(lines)
