"""What differs between two runs is told by size: beyond an interval, within it, new, gone."""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.records.cell import KEY
from workflow.diff import (
    BEYOND,
    GONE,
    NAMED,
    NEW,
    SAME,
    STATUS,
    TOLERATED,
    UNKNOWN,
    WITHIN,
    compare_runs,
    main,
    read_tolerances,
    read_values,
)


def cells(**values):
    rows = []
    for cell, own in values.items():
        key = dict(zip(KEY, ("D", cell, "plain", 0), strict=True))
        if own is None:
            rows.append({**key, "status": "error", "reason": "it broke"})
            continue
        for metric, value in own.items():
            name, k = metric.split("_")
            row = {**key, "status": "ok", "metric": name, "k": int(k), "value": value}
            rows.append({**row, "convention": "xc-matlab", "bin": "all"})
    return pd.DataFrame(rows)


def intervals(frame, half):
    named = frame.dropna(subset="metric")
    name = named["metric"] + "@" + named["k"].astype(int).astype(str)
    return named[KEY].assign(
        metric=name, value=named["value"], low=named["value"] - half, high=named["value"] + half
    )


@pytest.fixture
def files(tmp_path):
    def write(name, frame, half=None):
        folder = tmp_path / name
        folder.mkdir()
        frame.to_csv(folder / "cells.csv", index=False)
        if half is not None:
            intervals(frame, half).to_csv(folder / "intervals.csv", index=False)
        return str(folder / "cells.csv")

    return write


BEFORE = {"one": {"P_1": 50.0, "P_3": 40.0}, "two": {"P_1": 30.0}, "three": {"P_1": 9.0}}


def test_the_same_run_twice_differs_in_nothing(files, capsys):
    path = files("a", cells(**BEFORE), half=1.0)
    assert main([path, path]) == 0
    assert capsys.readouterr().out.strip() == "4 equal"


def test_every_kind_of_difference_is_told(files, capsys):
    after = {"one": {"P_1": 52.0, "P_3": 40.4, "P_5": 7.0}, "two": None, "four": {"P_1": 1.0}}
    pair = files("a", cells(**BEFORE), half=1.0), files("b", cells(**after))
    assert main(list(pair)) == 1
    said = capsys.readouterr().out
    for line in (
        "D / one / plain / seed 0, P@1: 50.00 -> 52.00, allowed -1.00 to +1.00",
        "D / one / plain / seed 0, P@3: 40.00 -> 40.40",
        "D / one / plain / seed 0, P@5: - -> 7.00",
        "D / two / plain / seed 0: ok -> error",
        "D / three / plain / seed 0: ok -> -",
        "D / four / plain / seed 0: - -> ok",
    ):
        assert line in said
    for kind in (BEYOND, WITHIN, NEW, GONE, STATUS):
        assert f"{kind}:" in said


def test_without_an_interval_a_tolerance_decides(files, capsys):
    pair = [files("a", cells(one={"P_1": 50.0})), files("b", cells(one={"P_1": 50.05}))]
    assert main(pair) == 0
    assert f"1 {UNKNOWN}" in capsys.readouterr().out
    assert main([*pair, "--tolerance", "0.1"]) == 0
    assert f"1 {WITHIN}" in capsys.readouterr().out


def test_a_small_reference_keeps_values_and_intervals(files, tmp_path, capsys):
    path = files("a", cells(**BEFORE), half=1.0)
    small = str(tmp_path / "reference.csv")
    assert main([path, "--write", small]) == 0
    assert main([small, files("b", cells(**{**BEFORE, "one": {"P_1": 51.5, "P_3": 40.5}}))]) == 1
    said = capsys.readouterr().out
    assert said.startswith("1 beyond its interval, 1 within its interval, 2 equal")


def test_what_a_csv_loses_in_digits_is_no_difference():
    a, b = (cells(one={"P_1": value}).assign(name="P@1") for value in (50.0, 50.0 + 1e-12))
    found = compare_runs(*(f.assign(low=None, high=None, reason="") for f in (a, b)))
    assert found["what"].tolist() == [SAME]


def test_a_file_that_is_none_is_refused(tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    assert main([str(path), str(path)]) == 2
    assert "is no cells.csv: it has no column dataset" in capsys.readouterr().err


def tolerate(path, *rows):
    frame = pd.DataFrame(rows, columns=[*NAMED, "points", "cause"])
    frame.to_csv(Path(path).with_name("tolerances.csv"), index=False)


def test_a_move_within_its_recorded_tolerance_is_told_apart_and_allowed(files, capsys):
    after = {**BEFORE, "one": {"P_1": 50.04, "P_3": 40.2}}
    pair = files("a", cells(**BEFORE), half=1.0), files("b", cells(**after))
    assert main([*pair, "--exact"]) == 1, "nothing is recorded: two runs of a code are equal"
    assert "2 within its interval" in capsys.readouterr().out
    tolerate(pair[0], ("D", "one", "*", "P", 0.05, "sums are split by the processor's vectors"))
    assert main([*pair, "--exact"]) == 1, "0.2 is more than 0.05"
    said = capsys.readouterr().out
    assert f"1 within its interval, 1 {TOLERATED}, 2 equal" in said
    tolerate(
        pair[0], ("D", "one", "*", "*", 0.05, "sums"), ("*", "one", "plain", "P", 0.3, "a near tie")
    )
    assert main([*pair, "--exact"]) == 0, "the largest that names a cell counts"
    assert main([*pair]) == 0


def test_a_tolerance_covers_no_other_cell_and_no_lost_one(files):
    after = {**BEFORE, "two": {"P_1": 30.01}}
    pair = files("a", cells(**BEFORE), half=1.0), files("b", cells(**after))
    tolerate(pair[0], ("D", "one", "*", "*", 5.0, "another cell's"))
    assert main([*pair, "--exact"]) == 1
    tolerate(pair[0], ("D", "two", "*", "Cov", 5.0, "another metric's"))
    assert main([*pair, "--exact"]) == 1
    lost = files("c", cells(one=BEFORE["one"]))
    tolerate(pair[0], ("*", "*", "*", "*", 100.0, "everything"))
    assert main([pair[0], lost]) == 1


def test_a_tolerance_without_a_cause_is_refused(files, capsys):
    path = files("a", cells(**BEFORE), half=1.0)
    tolerate(path, ("D", "one", "*", "*", 0.05, None))
    assert main([path, path]) == 2
    assert "cause" in capsys.readouterr().err


def test_the_committed_tolerances_name_cells_of_the_references(root):
    folder = root / "results/reference"
    named = pd.concat([read_values(folder / f"{name}.csv") for name in ("demo", "smoke")])
    for row in read_tolerances(folder / "tolerances.csv").to_dict("records"):
        keys = [key for key in NAMED[:3] if row[key] != "*"]
        assert (named[keys] == [row[key] for key in keys]).all(axis=1).any(), row
        assert 0 < row["points"] < 5


def test_what_a_reference_does_not_keep_is_not_called_new(files, capsys):
    frame = cells(**BEFORE)
    more = pd.concat([frame, frame.assign(convention="pyxclib"), frame.assign(bin="tail")])
    pair = files("a", frame, half=1.0), files("b", more)
    assert main(list(pair)) == 0
    assert capsys.readouterr().out.strip() == "4 equal"
    assert main([pair[1], pair[0]]) == 1, "values that went are told"
