"""The commands that a reader of the report would type next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from benchmarks.papers.spec import FOLDER, Paper
from benchmarks.records.cell import RECORD, Cell

ROOT = Path(__file__).resolve().parents[2]
WHOLE = ROOT / "config" / "paper.yaml"
"""Everything that all papers print. It takes weeks: nothing to try next."""


def command_of(cell: Cell, configfiles: Sequence[str]) -> str:
    """Runs one cell again, and what is made of it."""
    options = ["--configfile", *configfiles] if configfiles else []
    return " ".join(
        ["snakemake --cores all", *options, "--forcerun", f"results/runs/{cell.path}/{RECORD}"]
    )


def commands_for(paper: Paper) -> str:
    """The run of a paper: its own configuration or, where it has none, the one of those shipped
    that measures most of its values; empty where none does."""
    best = FOLDER / paper.id / "config.yaml"
    if not best.exists():
        shipped = [path for path in sorted((ROOT / "config").glob("*.yaml")) if path != WHOLE]
        best = max(shipped, key=lambda path: _measures(paper, path))
        if not _measures(paper, best):
            return ""
    return f"snakemake --cores all --configfile {best.relative_to(ROOT)}"


def _measures(paper: Paper, config: Path) -> int:
    """How many of a paper's values are of datasets, bases and variants in a configuration."""
    blocks = yaml.safe_load(config.read_text(encoding="utf-8"))["cells"]
    values = paper.values
    found = 0
    for block in blocks:
        named = (
            values["our_dataset"].isin(block["datasets"])
            & values["our_base"].isin(block["bases"])
            & values["our_variant"].isin(block.get("variants", ["plain"]))
        )
        found += int(named.sum())
    return found
