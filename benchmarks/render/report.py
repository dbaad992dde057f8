"""Sections of the report that tables and figures declare, and how these stand on its page."""

from __future__ import annotations

import base64
import html
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import COMPLETE_LABELS, KEY, PS_ESTIMATE, metric_names
from benchmarks.render.table import Table, to_html


@dataclass(frozen=True)
class Section:
    """A part of the page: a title, a word of introduction, HTML; the lowest order comes first."""

    key: str
    title: str
    intro: str
    body: str = ""
    order: int = 50


def fragment(path: Path) -> str:
    """A table that was written as an HTML fragment."""
    return path.read_text(encoding="utf-8")


HEAVY = 250_000
"""Bytes from which a drawing of very many points is shown as pixels."""


def drawing(svg: Path, caption: str) -> str:
    """A figure in the page itself: an image of its own, so that two drawings' ids cannot meet."""
    heavy = svg.stat().st_size > HEAVY
    shown, kind = (svg.with_suffix(".png"), "png") if heavy else (svg, "svg+xml")
    encoded = base64.b64encode(shown.read_bytes()).decode()
    return (
        f'<figure class="drawing"><figcaption>{html.escape(caption)}</figcaption>'
        f'<img alt="{html.escape(caption)}" src="data:image/{kind};base64,{encoded}">'
        f'<p class="note">Numbers behind it: <code>figures/{html.escape(svg.stem)}.csv</code></p>'
        "</figure>"
    )


def has_rows(csv: Path) -> bool:
    """Whether there is anything below the header."""
    with csv.open(encoding="utf-8") as lines:
        return sum(1 for _, _ in zip(lines, range(2), strict=False)) > 1


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
    keys = ["method", *(["dataset"] if len(known) > 1 else [])]
    frame = wide[columns].reset_index()
    frame["method"] = frame["base"] + (" " + frame["variant"]).where(frame["variant"] != PLAIN, "")
    seeds = rows.drop_duplicates(KEY).groupby(KEY[:3]).size()
    table = Table(
        caption="Precision on the observed labels, as propensity scoring estimates it, and true",
        frame=frame[[*keys, *columns]],
        key_columns=keys,
        notes=[
            "PS estimate: hits weighted by inverse propensity, without the normaliser of PSP. "
            "Only synthetic data know their complete labels; no method is shown them. "
            f"Means over seeds ({seeds.min()} or more); the intervals of the observed values are "
            "those of P in the table of methods, the other two have none."
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
