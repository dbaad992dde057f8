"""A run by setup: means over seeds, and the sentences and checks that are made of them."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.evaluation import statistics
from benchmarks.records.cell import PLAIN, Cell, Setup
from benchmarks.records.labels import FACTS, FOUND, movements, read_labels
from benchmarks.records.summary import Estimate, Summary, over_seeds
from benchmarks.render.views import answer, cost, quality
from benchmarks.render.views.numbers import bracket, data, seconds, signed


def test_means_over_seeds_are_those_of_one_setup_at_a_time():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"name": np.repeat(["a", "b", "c"], [1, 3, 2]), "v": rng.normal(size=6)})
    frame["low"], frame["high"] = frame["v"] - 0.3, frame["v"] + 0.5
    found = over_seeds(frame, ["name"], [("v", "low", "high")])
    for name, part in frame.groupby("name"):
        low, high = statistics.over_seeds(part["v"], part["low"].mean(), part["high"].mean())
        assert found.loc[name].tolist() == pytest.approx([part["v"].mean(), low, high, len(part)])


def test_the_mean_over_datasets_has_the_interval_of_independent_ones():
    mean = answer.mean_of([Estimate(2.0, 1.0, 4.0, 1), Estimate(4.0, 4.0, 7.0, 3)])
    assert mean == pytest.approx((3.0, 2.5, 3.0 + math.hypot(2.0, 3.0) / 2, 1))
    assert not answer.mean_of([]).known


@pytest.mark.parametrize(
    ("ps", "vanilla", "kind"),
    [
        ((1, 0.5, 2), (0, -1, 1), "gain"),
        ((1, 0.5, 2), (-2, -3, -1), "trade"),
        ((-1, -2, -0.5), (1, 0.5, 2), "loss"),
        ((1, -0.5, 2), (-2, -3, -1), "cost"),
        ((1, -0.5, 2), (1, 0.5, 2), "unclear"),
    ],
)
def test_a_variant_is_judged_by_its_intervals(ps, vanilla, kind):
    assert answer.kind_of(Estimate(*ps), Estimate(*vanilla)) == kind
    assert kind in answer.KINDS


@pytest.fixture
def summary():
    key = {"dataset": "D", "base": "B"}
    cells, changes = [], []
    for variant, value in ((PLAIN, 10.0), ("V", 12.0), ("W", 12.0)):
        for metric, k in (("P", 1), ("PSP", 1)):
            row = {**key, "variant": variant, "seed": 0, "status": "ok", "metric": metric, "k": k}
            cells.append({**row, "bin": "all", "convention": "xc-matlab", "value": value})
            interval = {
                "metric": f"{metric}@1",
                "value": value,
                "low": value - 1,
                "high": value + 1,
            }
            moved = {"change": 20.0, "change_low": -15.0, "change_high": 50.0}
            moved |= {"difference": 2.0, "difference_low": -1.5, "difference_high": 5.0}
            changes.append({**row, **interval, **(moved if variant != PLAIN else {})})
    cells.append({**key, "variant": "X", "seed": 0, "status": "timeout", "reason": "over 1 s"})
    bins = pd.DataFrame(columns=["dataset", "base", "variant", "metric", "bin", "value"])
    frame = pd.DataFrame(cells).astype({"k": "Int64"})
    return Summary(frame, pd.DataFrame(changes), bins)


def test_other_cut_offs_have_a_headline_of_their_own(summary):
    assert summary.headline("PS") == "PSP@1"
    assert summary.headline("vanilla") == "P@1"
    assert summary.variants() == [Setup("D", "B", "V"), Setup("D", "B", "W")]
    first, second = answer.sentences(Summary(summary.cells, summary.intervals, _no_bins()), str)
    assert {first["variant"], second["variant"]} == {"V", "W"}
    assert first["kind"] == "unclear"
    assert first["tail"] is None


def _no_bins():
    columns = ["dataset", "base", "variant", "metric", "bin", "value", "low", "high", "bound"]
    columns += ["difference", "difference_low", "difference_high"]
    return pd.DataFrame(columns=columns).astype(dict.fromkeys(columns[5:], float))


def test_checks_name_what_failed_and_what_is_equal(summary):
    runs = pd.DataFrame(
        [
            {**row, "wall_s": 1.0, "budget_wall_s": 9.0, "peak_mb": 95.0, "budget_memory_mb": 100.0}
            for row in summary.cells[["dataset", "base", "variant", "seed", "status", "reason"]]
            .drop_duplicates()
            .to_dict("records")
        ]
    ).assign(commit="c", dirty=True, cpu="a CPU")
    found = quality.checks(summary, runs, str)
    assert found[0].what == "timeout: B X on D, seed 0"
    assert found[0].severity == "failed"
    said = " ".join(check.what for check in found)
    for words in (
        "equal rows: B V on D and B W on D",
        "close to its budget",
        "uncommitted changes",
    ):
        assert words in said


def test_a_method_that_does_not_beat_the_guess_is_named(summary):
    """V lies 2 points above a guess of 10, within the intervals of 1 point each; W 3 points."""
    guess = {"base": "guess", "variant": PLAIN}
    plain = summary.intervals["variant"] == PLAIN
    intervals = pd.concat([summary.intervals, summary.intervals[plain].assign(**guess)])
    of_w = (intervals["variant"] == "W") & (intervals["metric"] == "P@1")
    intervals.loc[of_w, ["value", "low", "high"]] += 1.0
    cells = summary.cells[summary.cells["variant"] == PLAIN].assign(**guess)
    joined = Summary(pd.concat([summary.cells, cells]), intervals, summary.bins)
    runs = joined.cells[["dataset", "base", "variant", "seed", "status", "reason"]]
    runs = runs.drop_duplicates()

    def named(guess):
        found = quality.checks(joined, runs, str, leave_out=["guess"], guess=guess)
        return [check.what for check in found if check.what.startswith("no better than")]

    assert named("guess") == [f"no better than guess: B {v} on D" for v in (PLAIN, "V")]
    assert named("not in this run") == []


def test_numbers_are_written_for_readers_and_for_the_page():
    assert signed(-2.44) == "−2.4"
    assert signed(math.nan) == "–"
    assert bracket(Estimate(1.0, -0.5, 2.0)) == "[−0.5,\N{NO-BREAK SPACE}+2.0]"
    assert [seconds(s) for s in (0.04, 12.3, 90.0, 7200.0)] == ["0.0 s", "12 s", "1.5 min", "2.0 h"]
    assert data({"a": (math.nan, np.float64(1.23456789), True, "x")}) == {
        "a": [None, 1.2346, True, "x"]
    }


def test_labels_that_moved_are_listed_by_how_far(tmp_path):
    frame = pd.DataFrame(
        [[i, name, "tail", 9, 2, 5] for i, name in enumerate("abcd")], columns=FACTS
    )
    frame[f"{FOUND}B/plain"] = [0, 5, 2, 2]
    frame[f"{FOUND}B/V"] = [1, 1, 5, 2]
    found = movements(frame, "B/plain", "B/V", most=1)
    assert found["gained"]["name"].tolist() == ["c"]
    assert found["lost"]["name"].tolist() == ["b"]


def test_label_names_stay_text(tmp_path):
    names = ["NA", "007", "", '<b>,"x"']
    frame = pd.DataFrame({"label": range(4), "name": names, f"{FOUND}B/V": [1.0, None, 2, 3]})
    frame.to_csv(tmp_path / "labels.csv", index=False)
    back = read_labels(tmp_path / "labels.csv")
    assert back["name"].tolist() == names
    assert math.isnan(back[f"{FOUND}B/V"][1])


def test_the_shards_of_a_cell_count_for_what_it_took(summary):
    row = {"dataset": "D", "base": "B", "seed": 0, "status": "ok", "wall_s": 9.0, "peak_mb": 1.0}
    row |= {"fit_wall_s": 40.0, "fit_cpu_s": 40.0, "cpu_s": 50.0, "warm_up_cpu_s": 5.0}
    # V is fitted in shards: its own process merges and predicts, and compiled nothing.
    sharded = {**row, "cpu_s": 3.0, "warm_up_cpu_s": None, "merge_cpu_s": 1.0}
    runs = pd.DataFrame([{**row, "variant": PLAIN}, {**sharded, "variant": "V"}])
    planned = {Cell("D", "B", variant, 0): 10.0 for variant in (PLAIN, "V")}
    rows = cost.cost_rows(summary, runs, planned, lambda setup: setup.variant)
    found = {row["id"]: (row["numbers"]["CPU"], row["numbers"]["ratio"]) for row in rows}
    assert found == {PLAIN: (50.0, 4.5), "V": (43.0, pytest.approx(4.3))}
    # A file in which no cell has shards has no such column.
    rows = cost.cost_rows(summary, runs.iloc[:1].drop(columns="merge_cpu_s"), planned, str)
    assert rows[0]["numbers"]["ratio"] == 4.5
