"""Tables: PW eq. 30 by hand, failures in words, four formats."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers.pw.improvement import relative_improvement
from benchmarks.records.cells import CELL_COLUMNS
from benchmarks.render.table import (
    Table,
    to_html,
    to_latex,
    to_markdown,
    write_table,
)

METRICS = [
    "PSP@1",
    "PSP@3",
    "PSP@5",
    "PSnDCG@3",
    "PSnDCG@5",
    "P@1",
    "P@3",
    "P@5",
    "nDCG@3",
    "nDCG@5",
]


def cells(**variants):
    rows = []
    for variant, values in variants.items():
        key = {"dataset": "d", "base": "b", "variant": variant.replace("_", "-"), "seed": 0}
        if isinstance(values, str):
            rows.append({**key, "status": "timeout", "reason": values})
            continue
        for name, value in zip(METRICS, values, strict=True):
            metric, k = name.split("@")
            rows.append(
                {**key, "status": "ok", "metric": metric, "k": int(k), "value": value}
                | {"convention": "xc-matlab", "bin": "all"}
            )
    return pd.DataFrame(rows).reindex(columns=CELL_COLUMNS).astype({"k": "Int64"})


def test_mean_change_of_the_paper_s_own_row():
    """PW Table 3, EURLex-4K: Original and PW print +3.89 and +0.98."""
    original = [41.20, 45.40, 49.30, 44.30, 46.90, 82.40, 68.50, 57.70, 72.50, 66.70]
    pw = [43.05, 47.39, 50.58, 46.19, 48.37, 82.17, 70.01, 58.77, 73.18, 67.65]
    table = relative_improvement(cells(plain=original, PW=pw))
    row = table.frame.set_index("variant").loc["PW"]
    assert row["PS"] == pytest.approx(3.89, abs=0.01)
    assert row["vanilla"] == pytest.approx(0.98, abs=0.01)
    assert math.isnan(table.frame.set_index("variant").loc["plain", "PS"])


def test_a_failed_cell_says_why_in_every_format(tmp_path):
    table = relative_improvement(cells(plain=[50.0] * 10, PW="over 5 s, stopped in fit"))
    write_table(table, tmp_path / "t")
    for suffix in ("md", "tex", "html"):
        assert "timeout: over 5 s, stopped in fit" in (tmp_path / f"t.{suffix}").read_text()
    back = pd.read_csv(tmp_path / "t.csv")
    assert np.isnan(back.set_index("variant").loc["PW", "P@1"])
    assert np.isnan(back.set_index("variant").loc["PW", "PS"])


def test_no_change_without_a_base():
    table = relative_improvement(cells(plain="over 5 s", PW=[50.0] * 10))
    assert np.isnan(table.frame.set_index("variant").loc["PW", "PS"])


def test_the_best_of_a_base_is_bold_and_ties_share_it():
    best = [60.0] * 9 + [40.0]
    table = relative_improvement(cells(plain=[50.0] * 10, PW=best, PW_cb=best))
    assert (1, "P@1") in table.bold
    assert (2, "P@1") in table.bold
    assert (0, "P@1") not in table.bold
    assert (0, "nDCG@5") in table.bold
    assert "**60.00**" in to_markdown(table)


def test_text_is_escaped():
    table = Table("50% & more", pd.DataFrame({"key": ["a_b|<c>"], "x": [-1.0]}), ["key"])
    assert r"a\_b" in to_latex(table)
    assert r"50\% \& more" in to_latex(table)
    assert "$-$1.00" in to_latex(table)
    assert "&lt;c&gt;" in to_html(table)
    assert r"a_b\|<c>" in to_markdown(table)


def test_a_base_s_variants_stand_together_whatever_the_blocks():
    one, two = cells(plain=[50.0] * 10), cells(PW=[50.0] * 10)
    other = one.assign(dataset="e")
    table = relative_improvement(pd.concat([one, other, two], ignore_index=True))
    assert table.frame["dataset"].tolist() == ["d", "d", "e"]
    assert table.frame["variant"].tolist() == ["plain", "PW", "plain"]
