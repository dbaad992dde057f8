"""What a run says on the terminal: a line per finished cell, a bar, and where the report is.

Snakemake's own lines are kept in its log; warnings and errors stay on the terminal. ``--verbose``
shows everything, ``--quiet all`` nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from tqdm import tqdm

from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.records.cell import KEY, METRICS, RECORD, Cell
from benchmarks.records.cells import metric_names
from benchmarks.records.files import read_record
from workflow.remaining import Law, Remaining

EVALUATE = "evaluate"
"""The rule after which a cell is finished."""
RUN = "run_cell"
"""The rule that takes the time of a cell; its evaluation alone is short."""

HEADLINES = ("P@1", "PSP@5", "PSP@3", "PSP@1")
BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} cells [{elapsed}{postfix}]"


class CellLines(logging.Handler):
    """Listens to Snakemake's events and prints a line when a cell has been scored.

    ``cells`` are scored; those of them that are ``run``, too, make up the time to go.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        run: Iterable[Cell],
        law: Law,
        cores: int,
        folder: Path = Path("results"),
    ) -> None:
        super().__init__()
        self.folder = folder
        self.jobs: dict[int, Cell] = {}
        self.remaining = Remaining(run, law, cores)
        # tqdm's disable=None: a bar on a terminal, none in a file or in CI.
        self.bar = tqdm(
            total=len(cells),
            disable=None,
            leave=False,
            file=sys.stderr,
            dynamic_ncols=True,
            bar_format=BAR,
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one of Snakemake's records."""
        event = str(getattr(record, "event", ""))
        if event == "job_info" and getattr(record, "rule_name", "") == EVALUATE:
            names: Mapping[str, str] = record.wildcards  # type: ignore[attr-defined]
            self.jobs[record.jobid] = Cell(  # type: ignore[attr-defined]
                names["dataset"], names["base"], names["variant"], int(names["seed"])
            )
        elif event == "job_finished":
            cell = self.jobs.pop(record.job_id, None)  # type: ignore[attr-defined]
            if cell is not None:
                found = read_record(cell.file(RECORD, self.folder).parent)
                self.bar.write(line_of(cell, found, self.folder), file=sys.stderr)
                self.remaining.finish(cell, float(found["wall_s"]))
                self.bar.set_postfix_str(words_of(self.remaining.seconds()), refresh=False)
                self.bar.update()

    def close(self) -> None:
        """Take the bar away."""
        self.bar.close()
        super().close()


class OnlyWarnings(logging.Filter):
    """Lets warnings, errors, failed jobs and the news that nothing is to be done through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is for the terminal."""
        event = str(getattr(record, "event", ""))
        if record.levelno >= logging.WARNING or event in ("job_error", "group_error", "error"):
            return True
        return record.getMessage().startswith(NOTHING_TO_BE_DONE_MSG[:20])


def speaks(workflow: Any) -> bool:
    """Whether a run is to speak of cells, and not in Snakemake's words or those of a plugin."""
    manager = workflow.logger_manager
    settings = manager.settings
    quiet = {str(quietness).rpartition(".")[2].lower() for quietness in settings.quiet or ()}
    return not (settings.verbose or "all" in quiet or manager.plugin_handlers)


def hush(workflow: Any) -> None:
    """Keep Snakemake's own lines in its log, from the moment that it is known to be a run."""
    if speaks(workflow):
        for handler in workflow.logger_manager.logger.handlers:
            if handler.name == "DefaultStreamHandler":
                handler.addFilter(OnlyWarnings())


def attach(workflow: Any, law: Law) -> None:
    """Have a run of Snakemake speak of the cells that it is going to score."""
    if not speaks(workflow):
        return
    manager = workflow.logger_manager
    found: dict[str, list[Cell]] = {EVALUATE: [], RUN: []}
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in found:
            n = job.wildcards
            found[job.rule.name].append(Cell(n.dataset, n.base, n.variant, int(n.seed)))
    cells = found[EVALUATE]
    if cells:
        words = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        logs = ", ".join(map(str, manager.get_logfile()))
        print(f"{words} to go; Snakemake's log: {logs}", file=sys.stderr)
        settings = workflow.resource_settings
        cores = settings.cores or settings.nodes or 1
        manager.logger.addHandler(CellLines(cells, found[RUN], law, cores))


def words_of(seconds: float | None) -> str:
    """``about 12 min to go``; empty while nothing is known."""
    if seconds is None:
        return ""
    hours, minutes = seconds / 3600, seconds / 60
    if hours >= 2:
        return f"about {hours:.0f} h to go"
    return f"about {minutes:.0f} min to go" if minutes >= 2 else f"about {seconds:.0f} s to go"


def line_of(cell: Cell, record: Mapping[str, Any], folder: Path) -> str:
    """``demo-bow / DiSMEC / PW / seed 0: ok, 12.3 s, P@1 63.75, PSP@5 40.21``."""
    parts = [f"{cell}: {record['status']}", f"{record['wall_s']:.1f} s", *_headline(cell, folder)]
    if record["reason"]:
        parts.append(record["reason"].splitlines()[0][:160])
    return ", ".join(parts)


def closing_words(folder: Path = Path("results")) -> str:
    """Where the report is and how many cells are ok."""
    report = folder / "report.html"
    runs = pd.read_csv(folder / "runs.csv", usecols=[*KEY, "status"])
    good = int((runs["status"] == "ok").sum())
    words = f"{good} of {len(runs)} cells are ok. The report: {report}"
    return words if good == len(runs) else f"{words}. What failed: snakemake --cores 1 failed"


def _headline(cell: Cell, folder: Path) -> list[str]:
    metrics = pd.read_csv(cell.file(METRICS, folder))
    whole = metrics[(metrics["bin"] == "all") & (metrics["convention"] == DEFAULT)]
    values = dict(zip(metric_names(whole), whole["value"], strict=True))
    found = [name for name in HEADLINES if name in values][:2]
    return [f"{name} {values[name]:.2f}" for name in found]
