"""``results/report.html``: one self-contained page from tables, figures and cells."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from benchmarks.cells import COMPLETE_LABELS, KEY, PS_ESTIMATE, failures, metric_names
from benchmarks.conventions import DEFAULT
from benchmarks.tables import Table, to_html

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Section:
    """A part of the page: a title, a word of introduction, HTML."""

    key: str
    title: str
    intro: str
    body: str


def render(
    cells: pd.DataFrame,
    runs: pd.DataFrame,
    sections: Sequence[Section],
    facts: Mapping[str, Any],
) -> str:
    """The page: a summary, the given sections, what failed, and how the runs went."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    counts = runs["status"].value_counts() if len(runs) else pd.Series(dtype=int)
    return environment.get_template("report.html.j2").render(
        sections=[*sections, failed_section(cells), runs_section(runs)],
        counts={status: int(count) for status, count in counts.items()},
        n_cells=len(runs),
        datasets=list(runs["dataset"].unique()) if len(runs) else [],
        facts=facts,
    )


def table_section(key: str, title: str, intro: str, fragment: Path) -> Section:
    """A section around a table that was written as an HTML fragment."""
    return Section(key, title, intro, fragment.read_text(encoding="utf-8"))


def figure_section(key: str, title: str, intro: str, svg: Path) -> Section:
    """A section around a figure, drawn in the page itself."""
    # As an image of its own, so that two drawings' ids and styles cannot meet.
    encoded = base64.b64encode(svg.read_bytes()).decode()
    body = (
        f'<figure class="drawing"><img alt="{html.escape(title)}" '
        f'src="data:image/svg+xml;base64,{encoded}"></figure>'
    )
    source = f'<p class="note">Numbers behind it: <code>{html.escape(svg.stem)}.csv</code></p>'
    return Section(key, title, intro, body + source)


def truth_section(cells: pd.DataFrame) -> Section | None:
    """For data that know their complete labels: what was observed, estimated, and is true."""
    kinds = {DEFAULT: "observed", PS_ESTIMATE: "PS estimate", COMPLETE_LABELS: "true"}
    known = cells.loc[cells["convention"] == COMPLETE_LABELS, "dataset"].unique()
    rows = cells[
        cells["dataset"].isin(known)
        & (cells["metric"] == "P")
        & (cells["bin"] == "all")
        & cells["convention"].isin(kinds)
    ]
    if rows.empty:
        return None
    rows = rows.assign(name=metric_names(rows) + " " + rows["convention"].map(kinds))
    wide = rows.pivot_table(index=KEY[:3], columns="name", values="value", sort=False)
    columns = [f"P@{k} {kind}" for k in sorted(rows["k"].unique()) for kind in kinds.values()]
    table = Table(
        caption="Precision on the observed labels, as propensity scoring estimates it, and true",
        frame=wide[columns].reset_index(),
        key_columns=KEY[:3],
        notes=[
            "PS estimate: hits weighted by inverse propensity, without the normaliser of PSP. "
            "Only synthetic data know their complete labels; no method is shown them."
        ],
    )
    return Section(
        "truth",
        "What the missing labels hide",
        "The demo corpora hide labels by the propensity model (PW eq. 3) and remember them: a "
        "prediction that counts as wrong may be a true label that went missing. Propensity "
        "scoring undoes this on average; here one can see how well.",
        to_html(table),
    )


def failed_section(cells: pd.DataFrame) -> Section:
    """Cells that are not ok, each with its reason."""
    bad = failures(cells)
    if bad.empty:
        return Section("failed", "Failed cells", "None: every cell of this run is ok.", "")
    table = Table("Cells that are not ok", bad, KEY)
    intro = "snakemake failed prints the command that reruns just these."
    return Section("failed", "Failed cells", intro, to_html(table))


def runs_section(runs: pd.DataFrame) -> Section:
    """Time and memory of every cell."""
    wanted = [*KEY, "status", "fit_wall_s", "predict_wall_s", "cpu_s", "peak_mb", "threads"]
    frame = runs.reindex(columns=wanted)
    units = {"fit_wall_s": "fit s", "predict_wall_s": "predict s", "cpu_s": "CPU s"}
    frame = frame.rename(columns={**units, "peak_mb": "peak MB"})
    formats = {"peak MB": ".0f"}
    table = Table(
        "Time and memory of each cell, measured around the work alone", frame, KEY, formats
    )
    return Section(
        "runs",
        "How the runs went",
        "Measured on this machine; not comparable across machines.",
        to_html(table),
    )
