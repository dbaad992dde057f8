"""The HTTN paper redrawn: tables 2 to 4, figures 1 and 3 to 6, its claims."""

from __future__ import annotations

from benchmarks.papers.artefacts import DATASETS, Artefact, Need
from benchmarks.papers.httn import claims, correlation, figures, rows, tables
from benchmarks.papers.run_claims import claim_tables
from benchmarks.render.report import Section

SECTION = Section(
    "httn",
    "HTTN, table by table",
    "The paper's tables and figures redrawn for the datasets of this run, and its claims judged "
    "on them.",
    order=60,
)
NEEDS: tuple[Need, ...] = ("cells", "intervals", "predictions", "instances")
"""With instances the predictions of every seed are there, not of the first alone."""


def _figure(number: int, caption: str) -> Artefact:
    draw = getattr(figures, f"figure{number}")
    name, caption = f"httn_figure{number}", f"{caption} (HTTN Fig. {number})"
    return Artefact(name, caption, draw, "figure", NEEDS, rows.SWEPT, SECTION)


ARTEFACTS = (
    Artefact(
        "label_distributions",
        "Label frequencies and correlations (HTTN Fig. 1)",
        correlation.label_distributions,
        kind="figure",
        needs=("data",),
        section=DATASETS,
    ),
    *claim_tables(
        "httn",
        claims.judge,
        claims.NOTE,
        needs=NEEDS,
        settings=rows.SWEPT,
        section=SECTION,
    ),
    Artefact(
        "httn_tables",
        "HTTN and its baselines (HTTN Tables 2 to 4)",
        tables.results_table,
        needs=NEEDS,
        settings=rows.SWEPT,
        section=SECTION,
    ),
    Artefact(
        "httn_tail",
        "Tail labels alone, of every method (not printed)",
        tables.tail_table,
        needs=NEEDS,
        section=SECTION,
    ),
    _figure(3, "What attention, fine-tuning and the ensemble add"),
    _figure(4, "F1 of single tail labels"),
    _figure(5, "HTTN by the number of draws of head prototypes"),
    _figure(6, "The ensemble beside its worst, mean and best member"),
    Artefact(
        "httn_time",
        "Where the time goes (not printed)",
        tables.time_table,
        needs=("runs",),
        section=SECTION,
    ),
)
