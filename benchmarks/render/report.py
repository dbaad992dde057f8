"""``results/report.html``: one self-contained page from tables, figures and cells."""

from __future__ import annotations

import base64
import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.records.cells import COMPLETE_LABELS, KEY, PS_ESTIMATE, failures, metric_names
from benchmarks.render.page import render_page
from benchmarks.render.table import Table, to_html


@dataclass(frozen=True)
class Section:
    """A part of the page: a title, a word of introduction, HTML; the lowest order comes first."""

    key: str
    title: str
    intro: str
    body: str = ""
    order: int = 50


def render(
    cells: pd.DataFrame,
    runs: pd.DataFrame,
    sections: Sequence[Section],
    facts: Mapping[str, Any],
) -> str:
    """The page: a summary, the given sections, what failed, and how the runs went."""
    counts = runs["status"].value_counts() if len(runs) else pd.Series(dtype=int)
    every = [*sections, failed_section(cells), runs_section(runs)]
    return render_page(
        "report",
        sections=sorted(every, key=lambda section: section.order),
        counts={status: int(count) for status, count in counts.items()},
        n_cells=len(runs),
        datasets=list(runs["dataset"].unique()) if len(runs) else [],
        facts=facts,
    )


def fragment(path: Path) -> str:
    """A table that was written as an HTML fragment."""
    return path.read_text(encoding="utf-8")


def drawing(svg: Path, caption: str) -> str:
    """A figure in the page itself: an image of its own, so that two drawings' ids cannot meet."""
    encoded = base64.b64encode(svg.read_bytes()).decode()
    return (
        f'<figure class="drawing"><figcaption>{html.escape(caption)}</figcaption>'
        f'<img alt="{html.escape(caption)}" src="data:image/svg+xml;base64,{encoded}">'
        f'<p class="note">Numbers behind it: <code>figures/{html.escape(svg.stem)}.csv</code></p>'
        "</figure>"
    )


def has_rows(csv: Path) -> bool:
    """Whether there is anything below the header."""
    with csv.open(encoding="utf-8") as lines:
        return sum(1 for _, _ in zip(lines, range(2), strict=False)) > 1


def papers_section(summary: pd.DataFrame) -> Section:
    """How many of each paper's printed values and claims were measured, and held."""
    shown = summary.drop(columns=["in words"]).rename(columns={"kind": "of"})
    table = Table("Verdicts on the printed values and claims", shown, ["paper", "of"])
    links = " · ".join(
        f'<a href="compare/{paper}.html">{paper}</a>' for paper in summary["paper"].unique()
    )
    return Section(
        "papers",
        "The papers' values beside ours",
        "One verdict per printed value. A value counts as measured only on the very dataset, base "
        "and variant it was printed for; everything else says why it was not run.",
        to_html(table) + f'<p class="note">Every value with its verdict: {links}</p>',
        order=110,
    )


def audit_section(audit: pd.DataFrame) -> Section:
    """What the print alone shows to be wrong."""
    found = audit[audit["verdict"].isin(["impossible", "does not follow"])]
    columns = ["paper", "table", "where", "verdict", "printed", "recomputed", "message"]
    table = Table("Prints that cannot be right", found[columns], columns)
    n_sound = int((audit["verdict"] == "ok").sum())
    more = (
        f'<p class="note">{len(audit):,} checks, {n_sound:,} of them passed. '
        'The rest, down to notes: <a href="audit.html">audit.html</a></p>'
    )
    return Section(
        "audit",
        "What the papers' own values show",
        "Averages, improvements and claims recomputed from the printed cells, with the rounding "
        "of each taken into account. This needs no training.",
        f"<details><summary>{len(found)} findings</summary>{to_html(table)}</details>{more}",
        order=120,
    )


def truth_section(cells: pd.DataFrame, leave_out: Collection[str] = ()) -> Section | None:
    """For data that know their complete labels: what was observed, estimated, and is true.

    ``leave_out`` are bases that rank by the observed labels themselves: their estimate means
    nothing.
    """
    kinds = {DEFAULT: "observed", PS_ESTIMATE: "PS estimate", COMPLETE_LABELS: "true"}
    known = cells.loc[cells["convention"] == COMPLETE_LABELS, "dataset"].unique()
    rows = cells[
        cells["dataset"].isin(known)
        & (cells["metric"] == "P")
        & (cells["bin"] == "all")
        & cells["convention"].isin(kinds)
        & ~cells["base"].isin(leave_out)
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
        order=100,
    )


def failed_section(cells: pd.DataFrame) -> Section:
    """Cells that are not ok, each with its reason."""
    bad = failures(cells)
    if bad.empty:
        return Section("failed", "Failed cells", "None: every cell of this run is ok.", order=200)
    table = Table("Cells that are not ok", bad, KEY)
    intro = "`snakemake --cores 1 failed` prints the command that reruns just these."
    return Section("failed", "Failed cells", intro, to_html(table), order=200)


def runs_section(runs: pd.DataFrame) -> Section:
    """Time and memory of every cell."""
    measured = ["fit_wall_s", "predict_wall_s", "cpu_s", "peak_mb", "threads"]
    frame = runs.reindex(columns=[*KEY, "status", *measured, "notes"]).fillna({"notes": ""})
    units = {"fit_wall_s": "fit s", "predict_wall_s": "predict s", "cpu_s": "CPU s"}
    frame = frame.rename(columns={**units, "peak_mb": "peak MB"})
    formats = {"peak MB": ".0f"}
    caption = "Time and memory of each cell, measured around the work alone"
    table = Table(caption, frame, [*KEY, "status", "notes"], formats)
    return Section(
        "runs",
        "How the runs went",
        "Measured on this machine; not comparable across machines.",
        to_html(table),
        order=210,
    )
