"""Verdicts on the claims of the RankNet+Taug paper, from frames worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers.artefacts import write_artefacts
from benchmarks.papers.ranknet_taug import claims as judge
from benchmarks.papers.ranknet_taug.artefacts import ARTEFACTS
from benchmarks.papers.ranknet_taug.figures import swept_metrics
from benchmarks.papers.ranknet_taug.tables import gains
from benchmarks.papers.run_claims import MIXED, SOME, about_changes, row, summary, verdict
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS, NO_CHANGE, UNDECIDED
from benchmarks.records.results import Results
from benchmarks.render.report import has_rows

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
        (0.1, 2.0, 1, HOLDS),
        (-2.0, -0.1, 1, CONTRADICTED),
        (-1.0, 1.0, 1, UNDECIDED),
        (-2.0, -0.1, -1, HOLDS),
        (0.1, 2.0, -1, CONTRADICTED),
        (np.nan, 1.0, 1, UNDECIDED),
        (0.0, 0.0, 1, NO_CHANGE),
        (0.0, 1.0, 1, UNDECIDED),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, sign, expected) -> None:
    assert verdict(low, high, sign) == expected


def test_claims_about_metrics_take_their_own_sign() -> None:
    found = intervals(**{"PSP@1": (1.0, 3.0), "P@1": (1.0, 3.0), "nDCG@3": (1.0, 3.0)})
    rows = about_changes(found, judge.CHANGES)
    assert [row["verdict"] for row in rows] == [HOLDS, CONTRADICTED]
    assert rows[0]["measured"] == "PSP@1 +2.00 [+1.00, +3.00], 1 seed"


def test_seeds_widen_the_interval_of_a_claim() -> None:
    """Gains of 1 and 3 points with two seeds: t s / sqrt 2 = 12.706, far beyond the documents'."""
    seeds = [intervals(**{"PSP@1": (g - 0.5, g + 0.5)}).assign(seed=g) for g in (1, 3)]
    assert [r["verdict"] for r in about_changes(seeds[0], judge.CHANGES)] == [HOLDS]
    (found,) = about_changes(pd.concat(seeds), judge.CHANGES)
    assert found["verdict"] == UNDECIDED
    assert found["measured"] == f"PSP@1 +2.00 [−10.72, +14.72], {len(seeds)} seeds"


def test_the_summary_counts_pairs_and_nests_k() -> None:
    pairs = {
        ("toy", "Bonsai"): (HOLDS, HOLDS, HOLDS),
        ("toy", "Parabel"): (HOLDS, UNDECIDED, HOLDS),
        ("other", "Bonsai"): (HOLDS, UNDECIDED, CONTRADICTED),
        ("other", "Parabel"): (CONTRADICTED, UNDECIDED, UNDECIDED),
        ("third", "Bonsai"): (UNDECIDED, NO_CHANGE, NO_CHANGE),
        ("third", "Parabel"): (NO_CHANGE, NO_CHANGE, NO_CHANGE),
    }
    rows = [row("up", *pair, "", said) for pair, three in pairs.items() for said in three]
    rows.append(row("alone", "toy", "Bonsai", "", HOLDS))
    counts = summary(pd.DataFrame(rows)).set_index("claim")
    assert list(counts.index) == ["up", "alone"]
    assert counts.loc["up", "pairs"] == 6
    for said in (HOLDS, SOME, MIXED, CONTRADICTED, UNDECIDED, NO_CHANGE):
        assert counts.loc["up", said] == 1
    assert counts.loc["alone", ["pairs", HOLDS]].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("medians", "expected"),
    [
        ({"none": 1.0, "Taug-ds": 2.0}, HOLDS),
        ({"none": 2.0, "Taug-ds": 1.0}, CONTRADICTED),
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
    assert sorted(swept_metrics(cells(), SETTINGS, "n_aug")["n_aug"].unique()) == [0, 4]
    assert sorted(swept_metrics(cells(), SETTINGS, "tau")["tau"].unique()) == [0.1, 0.5]
    assert swept_metrics(cells(), {"Taug-ds": SETTINGS["Taug-ds"]}, "tau").empty
    assert swept_metrics(cells(), {}, "tau").empty


def test_changes_are_printed_with_their_intervals() -> None:
    table = gains(cells(), intervals(**{"PSP@1": (1.0, 3.0)}), "RankNet")
    assert table.printed(0, "+PSP@1") == "+2.00 [+1.00,\N{NO-BREAK SPACE}+3.00]"
    assert table.printed(0, "+PSP@3") == "+2.00"


def test_settings_chosen_by_dataset_are_judged_apart() -> None:
    found = intervals(**{"PSP@1": (1.0, 3.0)}).assign(variant="RankNet-chosen")
    (row,) = about_changes(found, judge.CHANGES)
    assert row["claim"] == "The network, settings chosen here, raises PSP@k"
    renamed = cells().replace({"variant": {"RankNet": "RankNet-chosen"}})
    assert gains(renamed, found, "RankNet").frame.empty
    assert gains(renamed, found, "RankNet-chosen").printed(0, "+PSP@1").startswith("+2.00 [+1.00")


@pytest.mark.parametrize("run", ["whole", "empty"])
def test_every_artefact_is_written_whatever_the_run_has(tmp_path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    results = Results(settings=SETTINGS)
    results.cells, results.intervals = cells(), intervals(**{"PSP@1": (1.0, 3.0)})
    results.norms = norms({"plain": 1.0, **dict.fromkeys(SETTINGS, 2.0)})
    results.predicted = results.norms[["dataset", "base", "variant", "label"]].assign(
        times=results.norms["label"]
    )
    if run == "empty":
        results.settings = {}
        for name in ("cells", "intervals", "norms", "predicted"):
            setattr(results, name, getattr(results, name)[:0])
    drawn = [artefact for artefact in ARTEFACTS if artefact.needs_cells]
    write_artefacts(drawn, results, "page.html")
    for artefact in drawn:
        (table,) = (path for path in artefact.files if path.endswith(".csv"))
        # Nothing was run as F = r f, with settings chosen here, or on the paper's own data; no
        # change by Taug has an interval.
        absent = ("table2", "table2_chosen", "readings", "decoupling")
        whole = run == "whole" and artefact.name.removeprefix("ranknet_taug_") not in absent
        assert has_rows(tmp_path / table) == whole, artefact.name
    assert ("RankNet&#x27;s network raises PSP@k" in (tmp_path / "page.html").read_text()) == (
        run == "whole"
    )
