"""What a run leaves: identities, paths, and each csv through its writer and its reader."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from benchmarks.evaluation.metrics import Evaluation
from benchmarks.records.cell import INSTANCE, KEY, METRICS, PLAIN, Cell, Setup
from benchmarks.records.cells import collect, read_cells, read_runs, write_cells, write_runs
from benchmarks.records.files import write_evaluation, write_record
from benchmarks.records.intervals import (
    differences_over,
    intervals,
    read_intervals,
    write_intervals,
)
from benchmarks.records.results import Results


def test_a_cell_is_its_path():
    cell = Cell("EURLex-4K", "Bonsai", "RankNet+Taug", 3)
    assert cell.path == "EURLex-4K/Bonsai/RankNet+Taug/seed3"
    assert Cell.from_path(f"results/runs/{cell.path}") == cell
    assert Cell.from_path(cell.file(INSTANCE, "elsewhere").parent) == cell
    assert Setup("EURLex-4K", "Bonsai", "RankNet+Taug").cell(3) == cell


def saved(results, cell, hits):
    path = cell.file(INSTANCE, results)
    path.parent.mkdir(parents=True)
    Evaluation("xc-matlab", len(hits), {"P@1": hits}, {"P@1": np.ones(len(hits))}).save(path)
    path.with_name(METRICS).write_text("")
    record = write_record(path.parent, {**asdict(cell), "device": "cpu"})
    write_evaluation(record, path.with_name(METRICS), path)
    return path


def test_a_change_is_taken_over_the_plain_cell_of_the_same_seed(tmp_path):
    plain, better = np.array([1.0, 0, 0, 0]), np.array([1.0, 1, 0, 0])
    files = [
        saved(tmp_path, Cell("D", "B", PLAIN, 0), plain),
        saved(tmp_path, Cell("D", "B", "V", 0), better),
        saved(tmp_path, Cell("D", "B", "V", 1), better),  # has no plain cell
    ]
    write_intervals(intervals(files), tmp_path / "intervals.csv")
    found = read_intervals(tmp_path / "intervals.csv").set_index(KEY)
    assert found["value"].tolist() == [25.0, 50.0, 50.0]
    assert found.loc[("D", "B", "V", 0), "change"] == pytest.approx(100.0)
    assert found.loc[("D", "B", "V", 0), "difference"] == pytest.approx(25.0)
    assert found.loc[[("D", "B", PLAIN, 0), ("D", "B", "V", 1)], "change"].isna().all()


def test_variants_of_one_base_are_compared_seed_by_seed(tmp_path):
    plain, one, other = (
        np.array(hits, float) for hits in ([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0])
    )
    files = [saved(tmp_path, Cell("D", "B", PLAIN, 0), plain)]
    files += [saved(tmp_path, Cell("D", "B", "V", seed), one) for seed in (0, 1)]
    files += [
        saved(tmp_path, Cell("D", base, "W", seed), other) for base in "BC" for seed in (0, 2)
    ]
    found = differences_over(files, "V").set_index(KEY)["difference"]
    assert found.to_dict() == {("D", "B", PLAIN, 0): -25.0, ("D", "B", "W", 0): 25.0}
    against_plain = intervals(files).set_index([*KEY, "metric"])
    assert against_plain.loc[("D", "B", "W", 0, "P@1"), "difference"] == 50.0
    assert differences_over(files, "nothing").empty
    results = Results(tmp_path, [Cell.from_path(path.parent) for path in files])
    again = results.differences_over("V").set_index(KEY)["difference"]
    assert again.to_dict() == found.to_dict()


def test_frames_come_back_as_they_were_written(tmp_path):
    key = dict(zip(KEY, ("D", "B", PLAIN, 0), strict=True))
    cells = pd.DataFrame([{**key, "k": 1, "value": 0.1 + 0.2}, {**key, "k": None, "value": 0.5}])
    write_cells(cells.assign(reason=None), tmp_path / "cells.csv")
    back = read_cells(tmp_path / "cells.csv")
    assert back["value"].tolist() == cells["value"].tolist()
    assert back["k"].tolist() == [1, pd.NA]
    write_runs(pd.DataFrame([{**key, "wall_s": 1 / 3}]), tmp_path / "runs.csv")
    assert read_runs(tmp_path / "runs.csv")["wall_s"].tolist() == [1 / 3]


def test_the_last_value_of_a_fit_s_history_is_in_runs(tmp_path):
    folder = tmp_path / "runs/D/B/plain/seed0"
    folder.mkdir(parents=True)
    key = dict(zip(KEY, ("D", "B", PLAIN, 0), strict=True))
    facts = {"status": "ok", "reason": "", "wall_s": 1.0, "cpu_s": 1.0, "peak_mb": 1.0}
    facts |= {"threads": 1, "commit": None, "dirty": None, "code": "", "data": ""}
    rest = {"phases": {}, "budget": {}, "node": {"cpu": ""}}
    history = {"history": {"loss": [3.0, 2.0], "x": []}}
    (folder / METRICS).write_text("metric,k\n")
    (folder / INSTANCE).write_bytes(b"")
    record = write_record(folder, {**key, **facts, **rest, **history})
    write_evaluation(record, folder / METRICS, folder / INSTANCE)
    _, runs = collect([folder])
    assert runs["loss"].tolist() == [2.0]
    assert "x" not in runs
