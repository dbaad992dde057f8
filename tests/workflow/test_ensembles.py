"""Ensembles in a run: members are cells, and the ensemble is made from them."""

import json

import numpy as np
import pandas as pd
from workspace import Workspace

from benchmarks.common.schema import validate
from benchmarks.evaluation.topk import TopK
from methods.variants.ensemble import average
from workflow.config import check, plan
from workflow.runtime.cell import RUN_SCHEMA

TWO = {"extends": "ensemble", "params": {"members": 2}}


def test_members_are_planned_once_and_as_the_configuration_says():
    variants = ["ensemble", "ensemble-2+PW", "RankNet+ensemble"]
    config = {
        "cells": [
            {
                "datasets": ["tiny-bow"],
                "bases": ["DiSMEC"],
                "variants": variants,
                "seeds": [1],
                "shards": 2,
            },
            {"datasets": ["tiny-bow"], "bases": ["DiSMEC"], "seeds": [4]},
        ],
        "define": {"variants": {"ensemble-2": TWO}},
    }
    jobs = plan(check(config, "test"), "test", ["tiny-bow"])
    planned = {(job.cell.variant, job.cell.seed): job for job in jobs}
    assert list(planned) == [
        *[("plain", 3), ("plain", 4), ("plain", 5), ("ensemble", 1)],
        *[("PW", 2), ("PW", 3), ("ensemble-2+PW", 1), ("RankNet+ensemble", 1)],
    ]
    assert [m.seed for m in planned["ensemble", 1].members] == [3, 4, 5]
    assert [m.variant for m in planned["ensemble-2+PW", 1].members] == ["PW", "PW"]
    assert planned["RankNet+ensemble", 1].members == ()
    assert planned["ensemble", 1].shards == 1
    assert planned["plain", 3].shards == 2
    assert planned["plain", 4].shards == 1, "its own block says so"


def test_a_run_holds_the_cells_of_members_and_ensemble(tmp_path, root):
    workspace = Workspace(tmp_path, root)
    cells = [{"datasets": ["tiny-bow"], "bases": ["tree"], "variants": ["plain", "ensemble-2"]}]
    tree = {"extends": "FastXML", "params": {"n_trees": 1}}
    define = {"bases": {"tree": tree}, "variants": {"ensemble-2": TWO}}
    path = workspace.configure({"cells": cells, "define": define, "top_k": 10})
    workspace.run("--cores", "1", "results/cells.csv", "results/intervals.csv", config=path)
    table = pd.read_csv(tmp_path / "results/cells.csv")
    assert set(table["status"]) == {"ok"}
    found = table[["variant", "seed"]].drop_duplicates().itertuples(index=False, name=None)
    assert sorted(found) == [("ensemble-2", 0), ("plain", 0), ("plain", 1)]
    folder = tmp_path / "results/runs/tiny-bow/tree"

    def predictions(name):
        with np.load(folder / name / "predictions.npz") as stored:
            return TopK(stored["indices"], stored["scores"])

    wanted = average([predictions("plain/seed0"), predictions("plain/seed1")], 10)
    np.testing.assert_array_equal(predictions("ensemble-2/seed0").indices, wanted.indices)
    record = json.loads((folder / "ensemble-2/seed0/run.json").read_text())
    validate(record, RUN_SCHEMA, "the ensemble's record")
    assert record["params"]["ensemble"] == {"members": 2, "seeds": [0, 1]}
    assert workspace.planned("results/cells.csv", config=path) == {}
