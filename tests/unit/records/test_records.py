"""What a run leaves: identities, paths, and each csv through its writer and its reader."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.atomic import write_json
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.records.cell import INSTANCE, KEY, PLAIN, RECORD, Cell, Setup
from benchmarks.records.cells import collect, read_cells, read_runs, write_cells, write_runs
from benchmarks.records.intervals import intervals, read_intervals, write_intervals


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
    write_json(cell.file(RECORD, results), {"device": "cpu"})
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
    write_json(folder / RECORD, {**key, **facts, **rest, "history": {"loss": [3.0, 2.0], "x": []}})
    (folder / "metrics.csv").write_text("metric,k\n")
    _, runs = collect([folder])
    assert runs["loss"].tolist() == [2.0]
    assert "x" not in runs
