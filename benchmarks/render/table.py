"""Tables of results in four formats: csv with the values, md, tex and html to be read."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import write_csv, write_text

TABLE_FORMATS = ("csv", "md", "tex", "html")
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
    write_csv(f"{stem}.csv", table.frame)
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


def with_interval(value: float, low: float, high: float) -> str:
    """``+1.00 [+0.50, +1.50]``; the blank inside the brackets does not break a line."""
    return f"{value:+.2f} [{low:+.2f},\N{NO-BREAK SPACE}{high:+.2f}]".replace("-", MINUS)


def _rows(
    table: Table, embolden: Callable[[str], str], escape: Callable[[str], str] = str
) -> list[list[str]]:
    rows = []
    for number in range(len(table.frame)):
        row = []
        for column in table.columns:
            text = escape(_one_line(table.printed(number, column)))
            row.append(embolden(text) if (number, column) in table.bold else text)
        rows.append(row)
    return rows


def _one_line(text: str) -> str:
    """A row is one line, whatever a reason holds: line ends of every kind become spaces."""
    return " ".join(line.strip(" \t") for line in text.splitlines())


def _pipes(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _escape_latex(text: str) -> str:
    special = {c: rf"\{c}" for c in "&%$#_{}"}
    special |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {MINUS: "$-$", MISSING: "--", "\N{NO-BREAK SPACE}": "~"}
    return "".join(special.get(c, c) for c in text)
