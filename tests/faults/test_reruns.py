"""A cell depends on its own dataset and method alone: other changes prepare and fit nothing."""

import json

import pytest

TARGET = "results/cells.csv"
TRAINING = {"prepare", "run_cell", "fit_shard"}


@pytest.fixture
def done(workspace, configuration):
    workspace.run("--cores", "1", TARGET, config=workspace.configure(configuration()))
    return workspace


def test_only_what_depends_on_a_change_runs_again(done, configuration):
    def planned(**changes):
        return done.planned(TARGET, config=done.configure(configuration(**changes)))

    assert planned() == {}
    cards = configuration()["define"]["datasets"]
    unused = {"format": "xc", "train": "no.txt", "test": "no.txt"}
    assert planned(define={"datasets": {"unused": unused, **cards}}) == {}
    titled = {"mine": {**cards["mine"], "title": "Three labels"}}
    assert planned(define={"datasets": titled}) == {}

    scored = planned(ks=[1, 2])
    assert not TRAINING & set(scored)
    assert len(scored["evaluate"]) == 2
    assert not TRAINING & set(planned(threshold=0.5))

    cells = planned(top_k=7)
    assert len(cells["run_cell"]) == 2
    assert "prepare" not in cells

    longer = done.read("train.txt").replace("4 3 3", "5 3 3") + "2 0:1\n"
    (done.folder / "train.txt").write_text(longer)
    edited = planned()
    assert edited["prepare"] == ["results/data/mine/meta.json (update)"]
    assert edited["run_cell"] == ["results/runs/mine/popularity/plain/seed0/run.json"]
    done.run("--cores", "1", TARGET, config=done.configure(configuration()))
    assert json.loads(done.read("results/data/mine/meta.json"))["n_train"] == 5
    assert planned() == {}
