"""What a paper's folder declares to be drawn from a run: its tables and figures.

``papers/<id>/artefacts.py`` holds ``ARTEFACTS``, a tuple of :class:`Artefact`. The workflow makes
their files and the report shows them; nothing else has to name the paper. Its tables of datasets
(``role: statistics`` in paper.yaml) need no declaration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

from benchmarks.common.atomic import write_text
from benchmarks.papers import dataset_counts
from benchmarks.papers.spec import Folders, Paper, load_paper, paper_folders
from benchmarks.records.results import Results
from benchmarks.render.figure import FIGURE_FORMATS, Figure, write_figure
from benchmarks.render.report import Section
from benchmarks.render.table import TABLE_FORMATS, Table, to_html, write_table

Need = Literal["cells", "intervals", "runs", "norms", "predictions", "instances", "data"]
"""What is read of a run. Norms and predictions are of one seed per method, data are prepared."""

DATASETS = Section(
    "datasets",
    "The datasets",
    "What the data say beside what the papers print of them; a mark and a reason where the "
    "two differ.",
    order=130,
)


@dataclass(frozen=True)
class Artefact:
    """A table or figure, made of what a run left.

    ``caption`` replaces the table's own. ``settings`` are parameters of variants that ``draw``
    looks up in ``Results.settings``. ``section`` is the part of the report it is shown in, one
    named after the paper by default; ``fold`` is the title of a closed block around it.
    """

    name: str
    caption: str
    draw: Callable[[Results], Table | Figure]
    kind: Literal["table", "figure"] = "table"
    needs: tuple[Need, ...] = ()
    settings: tuple[str, ...] = ()
    section: Section | None = None
    fold: str = ""

    @property
    def needs_cells(self) -> bool:
        """Whether anything has to be trained for it."""
        return any(need != "data" for need in self.needs)

    @property
    def files(self) -> list[str]:
        """The files it is written to, the one that the report shows first."""
        if self.kind == "figure":
            return [f"figures/{self.name}.{suffix}" for suffix in FIGURE_FORMATS]
        return [f"results/tables/{self.name}.{suffix}" for suffix in reversed(TABLE_FORMATS)]


GENERAL = (
    Artefact(
        "datasets",
        "",
        lambda results: dataset_counts.overview(results.data),
        needs=("data",),
        section=DATASETS,
    ),
)
"""What is drawn of every run and belongs to no paper."""


def artefacts_of(paper: str, extra: Folders | None = None) -> tuple[Artefact, ...]:
    """What a paper declares, and its tables of datasets; for no paper, what is general.

    ``extra`` are the folders of the user's own papers.
    """
    if not paper:
        return GENERAL
    loaded = load_paper(paper, extra)
    folder = paper_folders(extra)[paper]
    tables = dataset_tables(loaded)
    if not (folder / "artefacts.py").exists():
        return tables
    name = f"benchmarks.papers.{paper}"
    if extra and paper in extra:  # importable as ours are, wherever the folder is
        package = sys.modules.setdefault(name, ModuleType(name))
        package.__path__ = [str(folder)]
    declared: tuple[Artefact, ...] = import_module(f"{name}.artefacts").ARTEFACTS
    return (*tables, *declared)


def dataset_tables(paper: Paper) -> tuple[Artefact, ...]:
    """The paper's printed facts of datasets, if any, checked against the data."""
    if all(table["role"] != "statistics" for table in paper.spec["tables"]):
        return ()
    return (
        Artefact(
            f"datasets_{paper.id}",
            "",
            lambda results: dataset_counts.table(paper, results.data),
            needs=("data",),
            section=DATASETS,
            fold="The papers' dataset tables, checked",
        ),
    )


def all_artefacts(extra: Folders | None = None) -> dict[str, tuple[Artefact, ...]]:
    """The artefacts of every paper by id, those of no paper first under the empty id."""
    return {paper: artefacts_of(paper, extra) for paper in ("", *paper_folders(extra))}


def write_artefacts(artefacts: Iterable[Artefact], results: Results, page: str = "") -> None:
    """Write the files of each, and with ``page`` the tables that have rows as one fragment."""
    parts = []
    for artefact in artefacts:
        made = artefact.draw(results)
        stem = Path(artefact.files[0]).with_suffix("")
        if artefact.kind == "figure" and isinstance(made, Figure):
            write_figure(made, stem)
        elif artefact.kind == "table" and isinstance(made, Table):
            made = replace(made, caption=artefact.caption or made.caption)
            write_table(made, stem)
            parts += [to_html(made)] if len(made.frame) else []
        else:
            raise TypeError(f"{artefact.name}: declared a {artefact.kind}, drawn a {type(made)}")
    if page:
        write_text(page, "\n".join(parts))
