"""Tables of results in four formats: csv with the values, md, tex and html to be read."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path, write_text
from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.evaluation.statistics import SUMMARY_NAMES, Kind, mean_relative_change
from benchmarks.records.cells import KEY, values_by_cell

PLAIN = "plain"
MISSING = "–"
MINUS = "−"


@dataclass
class Table:
    """A table to be printed: values, how to print them, which to set in bold.

    ``texts`` replaces a value in print: a failed cell says why in place of a number.
    """

    caption: str
    frame: pd.DataFrame
    key_columns: Sequence[str]
    formats: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[tuple[int, str], str] = field(default_factory=dict)
    bold: frozenset[tuple[int, str]] = frozenset()
    notes: Sequence[str] = ()
    hidden: Sequence[str] = ()
    """Columns for the csv alone."""

    @property
    def columns(self) -> list[str]:
        """The columns that are printed."""
        return [column for column in self.frame.columns if column not in self.hidden]

    def printed(self, row: int, column: str) -> str:
        """The text of a cell."""
        if (row, column) in self.texts:
            return self.texts[row, column]
        value = self.frame.iloc[row][column]
        if isinstance(value, float | np.floating):
            if math.isnan(value):
                return MISSING
            return format(value, self.formats.get(column, ".2f")).replace("-", MINUS)
        return str(value)


def write_table(table: Table, stem: str | Path) -> None:
    """Write ``stem``.csv, .md, .tex and .html."""
    with atomic_path(f"{stem}.csv") as temporary:
        table.frame.to_csv(temporary, index=False)
    for suffix, render in {".md": to_markdown, ".tex": to_latex, ".html": to_html}.items():
        write_text(f"{stem}{suffix}", render(table))


def to_markdown(table: Table) -> str:
    """A GitHub-flavoured table."""
    columns = table.columns
    lines = [f"**{table.caption}**", "", _pipes(columns)]
    lines.append(_pipes(["---" if c in table.key_columns else "---:" for c in columns]))
    lines += [
        _pipes([cell.replace("|", "\\|") for cell in row])
        for row in _rows(table, lambda t: f"**{t}**")
    ]
    lines += ["", *table.notes]
    return "\n".join(lines).rstrip() + "\n"


def to_latex(table: Table) -> str:
    """A booktabs table, ready for \\input."""
    columns = table.columns
    align = "".join("l" if c in table.key_columns else "r" for c in columns)
    body = [
        " & ".join(row) + r" \\"
        for row in _rows(table, lambda t: rf"\textbf{{{t}}}", escape=_escape_latex)
    ]
    notes = [rf"\par\footnotesize {_escape_latex(note)}" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escape_latex(table.caption)}}}",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            " & ".join(map(_escape_latex, columns)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def to_html(table: Table) -> str:
    """A fragment for the report; the page brings the style."""
    columns = table.columns
    head = "".join(
        f"<th>{html.escape(c)}</th>"
        if c in table.key_columns
        else f'<th class="num">{html.escape(c)}</th>'
        for c in columns
    )
    previous: tuple[str, ...] | None = None
    lines = []
    for number, row in enumerate(
        _rows(table, lambda t: f"<strong>{t}</strong>", escape=html.escape)
    ):
        group = tuple(str(table.frame.iloc[number][c]) for c in table.key_columns[:-1])
        rule = ' class="group"' if previous is not None and group != previous else ""
        previous = group
        cells = "".join(
            f"<td>{text}</td>" if column in table.key_columns else f'<td class="num">{text}</td>'
            for column, text in zip(columns, row, strict=True)
        )
        lines.append(f"<tr{rule}>{cells}</tr>")
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in table.notes)
    return (
        f'<figure class="table"><figcaption>{html.escape(table.caption)}</figcaption>'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>"
        f"</table>{notes}</figure>\n"
    )


def relative_improvement(
    cells: pd.DataFrame, ks: Sequence[int] = (1, 3, 5), intervals: pd.DataFrame | None = None
) -> Table:
    """PW Table 3's shape: metrics of every method, and the mean change against its plain base.

    Seeds are averaged. The change is PW eq. 30, which counts @1 twice, over propensity-scored
    and over vanilla metrics; with ``intervals`` (see :mod:`benchmarks.records.intervals`) its 95%
    interval over test points follows, and the metrics' own go into the csv.
    """
    names = _columns(ks)
    values = values_by_cell(cells, DEFAULT).reindex(columns=names)
    means = values.groupby(level=KEY[:3], sort=False).mean()
    order = _grouped(cells[KEY[:3]].drop_duplicates().itertuples(index=False, name=None))
    reasons = _failed(cells)
    rows: list[dict[str, object]] = []
    texts: dict[tuple[int, str], str] = {}
    for key in order:
        row: dict[str, object] = dict(zip(KEY[:3], key, strict=True))
        found = dict(means.loc[key]) if key in means.index else dict.fromkeys(names, math.nan)
        row.update(found)
        plain = (*key[:2], PLAIN)
        for kind in SUMMARY_NAMES:
            row[kind] = _change(means, plain, found, kind) if key != plain else math.nan
            if intervals is not None:
                low, high = _interval(intervals, key, SUMMARY_NAMES[kind])
                row |= {f"{kind} low": low, f"{kind} high": high}
                if not math.isnan(low):
                    # The blank inside the brackets does not break a line.
                    text = f"{row[kind]:+.2f} [{low:+.2f},\N{NO-BREAK SPACE}{high:+.2f}]"
                    texts[len(rows), kind] = text.replace("-", MINUS)
        if key in reasons:
            texts[len(rows), names[0]] = reasons[key]
        rows.append(row)
    frame = pd.DataFrame(rows, columns=[*KEY[:3], *names, "PS", "vanilla", *_bounds(intervals)])
    return Table(
        caption="Every method, and its mean relative change (%) against its plain base",
        frame=frame,
        key_columns=KEY[:3],
        formats={"PS": "+.2f", "vanilla": "+.2f"},
        texts=texts,
        bold=_best(frame, names),
        notes=[
            "PS and vanilla: mean relative change over six propensity-scored and six vanilla "
            "metrics (PW eq. 30, @1 counted twice). Bold: best of its base's variants. "
            f"Convention {DEFAULT}; in percent."
            + ("" if intervals is None else " In brackets: 95% interval over test documents.")
        ],
        hidden=_bounds(intervals),
    )


def _grouped(keys: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Datasets, and the bases on each, together, in the order of their first appearance."""
    keys = list(keys)
    datasets = list(dict.fromkeys(key[0] for key in keys))
    bases = list(dict.fromkeys(key[1] for key in keys))
    return sorted(keys, key=lambda key: (datasets.index(key[0]), bases.index(key[1])))


def _bounds(intervals: pd.DataFrame | None) -> list[str]:
    kinds = SUMMARY_NAMES if intervals is not None else ()
    return [f"{kind} {end}" for kind in kinds for end in ("low", "high")]


def _interval(intervals: pd.DataFrame, key: Sequence[str], metric: str) -> tuple[float, float]:
    """Bounds of a change, averaged over seeds; NaN where there is none."""
    rows = intervals[intervals["metric"] == metric]
    for column, value in zip(KEY[:3], key, strict=True):
        rows = rows[rows[column] == value]
    return float(rows["change_low"].mean()), float(rows["change_high"].mean())


def _columns(ks: Sequence[int]) -> list[str]:
    # nDCG@1 is P@1 and PSnDCG@1 is PSP@1: printed once, as in the paper.
    later = [k for k in ks if k != 1]
    return (
        [f"PSP@{k}" for k in ks]
        + [f"PSnDCG@{k}" for k in later]
        + [f"P@{k}" for k in ks]
        + [f"nDCG@{k}" for k in later]
    )


def _change(
    means: pd.DataFrame, plain: tuple[str, str, str], found: Mapping[str, float], kind: Kind
) -> float:
    if plain not in means.index:
        return math.nan
    try:
        return mean_relative_change(dict(means.loc[plain]), found, kind)
    except (KeyError, ZeroDivisionError):
        # Other cut-offs than 1, 3, 5, or a base at zero: eq. 30 has no value.
        return math.nan


def _failed(cells: pd.DataFrame) -> dict[tuple[str, ...], str]:
    bad = cells[cells["status"] != "ok"]
    return {
        tuple(row[:3]): f"{row[3]}: {row[4]}"
        for row in bad[[*KEY[:3], "status", "reason"]].itertuples(index=False, name=None)
    }


def _best(frame: pd.DataFrame, names: Sequence[str]) -> frozenset[tuple[int, str]]:
    marked = set()
    for _, group in frame.groupby(KEY[:2], sort=False):
        if len(group) > 1:
            for name in names:
                printed = group[name].round(2)
                marked |= {(int(i), name) for i in printed.index[printed == printed.max()]}
    return frozenset(marked)


def _rows(
    table: Table, embolden: Callable[[str], str], escape: Callable[[str], str] = str
) -> list[list[str]]:
    rows = []
    for number in range(len(table.frame)):
        row = []
        for column in table.columns:
            text = escape(table.printed(number, column))
            row.append(embolden(text) if (number, column) in table.bold else text)
        rows.append(row)
    return rows


def _pipes(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _escape_latex(text: str) -> str:
    special = {c: rf"\{c}" for c in "&%$#_{}"}
    special |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {MINUS: "$-$", MISSING: "--", "\N{NO-BREAK SPACE}": "~"}
    return "".join(special.get(c, c) for c in text)
