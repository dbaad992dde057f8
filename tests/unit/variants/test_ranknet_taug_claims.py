"""Verdicts on the claims of the RankNet+Taug paper, from frames worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers.ranknet_taug import claims as judge
from benchmarks.papers.ranknet_taug.page import has_data, sweep, tables, write_page

SETTINGS = {
    "Taug-ds": {"n_aug": 4, "tau": 0.1},
    "none": {"n_aug": 0, "tau": 0.1},
    "wide": {"n_aug": 4, "tau": 0.5},
}


def intervals(**bounds) -> pd.DataFrame:
    low, high = np.array(list(bounds.values())).T
    frame = pd.DataFrame(
        {
            "metric": list(bounds),
            "difference": (low + high) / 2,
            "difference_low": low,
            "difference_high": high,
        }
    )
    return frame.assign(dataset="toy", base="Bonsai", variant="RankNet", seed=0)


def cells() -> pd.DataFrame:
    rows = [
        ("toy", "Bonsai", variant, 0, metric, k, value + k)
        for variant, value in (("plain", 30.0), ("RankNet", 32.0), *((v, 31.0) for v in SETTINGS))
        for metric in ("P", "nDCG", "PSP", "PSnDCG")
        for k in (1, 3, 5)
    ]
    names = ["dataset", "base", "variant", "seed", "metric", "k", "value"]
    return pd.DataFrame(rows, columns=names).assign(convention="xc-matlab", bin="all", status="ok")


def norms(by_variant) -> pd.DataFrame:
    labels = np.arange(20)
    frames = [
        pd.DataFrame(
            {
                "dataset": "toy",
                "base": "Bonsai",
                "variant": variant,
                "label": labels,
                "count": labels[::-1] + 1,
                "rank": labels + 1,
                "norm": np.where(labels < 2, 99.0, tail),
            }
        )
        for variant, tail in by_variant.items()
    ]
    return pd.concat(frames)


@pytest.mark.parametrize(
    ("low", "high", "sign", "expected"),
    [
        (0.1, 2.0, 1, judge.HOLDS),
        (-2.0, -0.1, 1, judge.FAILS),
        (-1.0, 1.0, 1, judge.OPEN),
        (-2.0, -0.1, -1, judge.HOLDS),
        (0.1, 2.0, -1, judge.FAILS),
        (np.nan, 1.0, 1, judge.OPEN),
        (0.0, 0.0, 1, judge.SAME),
        (0.0, 1.0, 1, judge.OPEN),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, sign, expected) -> None:
    assert judge.verdict(low, high, sign) == expected


def test_claims_about_metrics_take_their_own_sign() -> None:
    found = intervals(**{"PSP@1": (1.0, 3.0), "P@1": (1.0, 3.0), "nDCG@3": (1.0, 3.0)})
    rows = judge.about_metrics(found)
    assert [row["verdict"] for row in rows] == [judge.HOLDS, judge.FAILS]
    assert rows[0]["measured"] == "PSP@1 +2.00 [+1.00, +3.00]"


@pytest.mark.parametrize(
    ("medians", "expected"),
    [
        ({"none": 1.0, "Taug-ds": 2.0}, judge.HOLDS),
        ({"none": 2.0, "Taug-ds": 1.0}, judge.FAILS),
    ],
)
def test_norms_of_the_tail_alone_decide(medians, expected) -> None:
    # The head's norms fall with the tail's rise: they must not count. Another tau neither.
    frame = norms({**medians, "wide": 50.0})
    (row,) = judge.about_norms(frame, SETTINGS)
    assert row["verdict"] == expected
    assert "99" not in row["measured"]
    assert "50" not in row["measured"]


def test_a_sweep_keeps_the_other_setting() -> None:
    assert sorted(sweep(cells(), SETTINGS, "n_aug")["n_aug"].unique()) == [0, 4]
    assert sorted(sweep(cells(), SETTINGS, "tau")["tau"].unique()) == [0.1, 0.5]
    assert sweep(cells(), {"Taug-ds": SETTINGS["Taug-ds"]}, "tau").empty
    assert sweep(cells(), {}, "tau").empty


def test_changes_are_printed_with_their_intervals() -> None:
    table = tables(cells(), intervals(**{"PSP@1": (1.0, 3.0)}))["ranknet_taug_table2"]
    assert table.printed(0, "+PSP@1") == "+2.00 [+1.00,\N{NO-BREAK SPACE}+3.00]"
    assert table.printed(0, "+PSP@3") == "+2.00"


def test_settings_chosen_by_dataset_are_judged_apart() -> None:
    found = intervals(**{"PSP@1": (1.0, 3.0)}).assign(variant="RankNet-chosen")
    (row,) = judge.about_metrics(found)
    assert row["claim"] == "RankNet raises PSP@k, its settings chosen here"
    renamed = cells().replace({"variant": {"RankNet": "RankNet-chosen"}})
    made = tables(renamed, found)
    assert made["ranknet_taug_table2"].frame.empty
    assert made["ranknet_taug_table2_chosen"].printed(0, "+PSP@1").startswith("+2.00 [+1.00")


@pytest.mark.parametrize("run", ["whole", "empty"])
def test_the_page_is_written_whatever_the_run_has(tmp_path, run) -> None:
    measured, changes = cells(), intervals(**{"PSP@1": (1.0, 3.0)})
    by_label = norms({"plain": 1.0, **dict.fromkeys(SETTINGS, 2.0)})
    settings = SETTINGS
    if run == "empty":
        measured, changes, by_label, settings = measured[:0], changes[:0], by_label[:0], {}
    for name, frame in {"cells": measured, "intervals": changes, "norms": by_label}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    np.savez(tmp_path / "predictions.npz", indices=np.arange(20, dtype=np.int32).reshape(4, 5))
    write_page(
        *(tmp_path / f"{name}.csv" for name in ("cells", "intervals", "norms")),
        [("toy", "Bonsai", "plain")],
        [tmp_path / "predictions.npz"],
        settings,
        tmp_path,
        tmp_path,
    )
    text = (tmp_path / "ranknet_taug.html").read_text()
    assert ("No cell of this run" in text) == (run == "empty")
    assert has_data(tmp_path / "ranknet_taug_figure2.svg") == (run == "whole")
    assert (tmp_path / "ranknet_taug_table5.tex").exists()
