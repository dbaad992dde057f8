"""Which reading of RankNet is nearest to print, and Taug's parts, from frames made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers.ranknet_taug import decoupling, readings
from benchmarks.papers.spec import load_paper
from benchmarks.records.results import Results

BASES = ("FastXML", "Bonsai", "Parabel")


@pytest.fixture(scope="module")
def printed() -> pd.DataFrame:
    return readings.printed_changes(load_paper("ranknet_taug"))


def run(printed: pd.DataFrame, off: dict[str, float], bases=BASES) -> Results:
    """A run on EURLex-4K whose variants change every metric by print and ``off`` points more."""
    rows, bounds = [], []
    own = printed[(printed["dataset"] == "EURLex-4K") & printed["base"].isin(bases)]
    for entry in own.itertuples():
        metric, k = entry.metric.split("@")
        key = {"dataset": entry.dataset, "base": entry.base, "seed": 0}
        # The baseline is not the printed one: changes must not notice, values must.
        before = entry.before + 0.25
        for variant, change in {
            "plain": 0.0,
            **{v: entry.change + x for v, x in off.items()},
        }.items():
            value = {**key, "variant": variant, "metric": metric, "k": int(k)}
            rows.append({**value, "value": before + change})
            low, high = change - 0.5, change + 0.5
            middle = {"difference": change, "difference_low": low, "difference_high": high}
            if variant != "plain":
                bounds.append({**key, "variant": variant, "metric": entry.metric, **middle})
    results = Results()
    cells = pd.DataFrame(rows).assign(convention="xc-matlab", bin="all", status="ok")
    vars(results).update(cells=cells, intervals=pd.DataFrame(bounds))
    return results


def test_printed_changes_are_those_of_both_tables(printed) -> None:
    own = printed[printed["dataset"] == "EURLex-4K"]
    assert len(own) == 30  # three bases: five propensity-scored and five vanilla metrics
    key = own.set_index(["base", "metric"])["change"]
    assert key["FastXML", "PSP@1"] == 7.78
    assert key["FastXML", "P@1"] == pytest.approx(72.40 - 70.64)
    assert key["Parabel", "nDCG@5"] == pytest.approx(65.34 - 66.53)


def test_the_nearest_reading_is_named_with_all_distances(printed) -> None:
    results = run(printed, {"RankNet-simple": 0.25, "RankNet": -1.5, "RankNet-overfitted": 2.0})
    table = readings.readings(results)
    means = table.frame[table.frame["dataset"] == readings.MEAN].set_index("reading")
    assert means["changes"].round(3).to_dict() == {
        "F = r f": 0.25,
        "network, out-of-fold scores": 1.5,
        "network, in-sample scores": 2.0,
    }
    assert means.loc["F = r f", "values"] == pytest.approx(0.5)  # half of it the baseline's
    assert table.notes[0] == (
        "Tables 2 and 5 were made with F = r f, as far as 30 printed changes tell: its mean "
        "distance from them is 0.25 points. The others, on the pairs of dataset and base that they "
        "share with it: network, out-of-fold scores 1.50 against 0.25 on 3; network, in-sample "
        "scores 2.00 against 0.25 on 3. It is the nearest on 3 of 3 pairs."
    )
    first = table.frame.iloc[0]
    assert (first["base"], first["reading"]) == ("FastXML", "as printed")
    assert first["+P@1"] == pytest.approx(1.76)
    assert table.printed(1, "+PSP@1") == "+8.03 [+7.53,\N{NO-BREAK SPACE}+8.53]"


def test_a_reading_without_all_pairs_is_compared_on_those_it_has(printed) -> None:
    whole = run(printed, {"RankNet-simple": 0.5})
    part = run(printed, {"RankNet-simple": 0.25, "RankNet": 2.0}, ("Bonsai",))
    cells = pd.concat([whole.cells[whole.cells["base"] != "Bonsai"], part.cells])
    found = readings.distances(cells, printed)
    assert len(found) == 4
    average = readings.means(found).set_index("variant")
    assert average["pairs"].to_dict() == {"RankNet-simple": 3, "RankNet": 1}
    assert average.loc["RankNet", ["shared", "nearest"]].tolist() == pytest.approx([2.0, 0.25])
    assert "2.00 against 0.25 on 1. It is the nearest on 3 of 3" in readings.sentence(found)
    alone = found[found["variant"] == "RankNet"]
    assert readings.sentence(alone) == "Fewer than two readings were run."


def test_decoupling_stands_apart_from_the_copies() -> None:
    metrics = list(decoupling.SHOWN)
    middle = np.arange(len(metrics), dtype=float)
    frame = pd.DataFrame(
        {"metric": metrics, "difference": middle, "difference_low": middle - 1}
    ).assign(difference_high=middle + 1, dataset="toy", base="Bonsai", seed=0)
    results = Results(
        settings={
            "Taug-ds": {"n_aug": 4, "tau": 0.1},
            "bare": {"n_aug": 0, "tau": 0.1},
            "wide": {"n_aug": 0, "tau": 0.5},
            "more": {"n_aug": 8, "tau": 0.1},
        }
    )
    both = pd.concat([frame.assign(variant=v) for v in ("bare", "Taug-ds", "wide")])
    counts = np.array([0, 3, 40])
    training = {"toy": SimpleNamespace(label_counts=lambda: counts)}
    vars(results).update(intervals=both, training=training)
    table = decoupling.decoupling(results)
    assert table.frame["Taug"].tolist() == ["decoupling alone", "with copies"]
    assert table.frame["least docs/label"].tolist() == ["3", "3"]
    assert table.frame["labels below 5 docs"].tolist() == ["1", "1"]
    assert table.printed(0, "+PSP@3") == "+1.00 [+0.00,\N{NO-BREAK SPACE}+2.00]"
