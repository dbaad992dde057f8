"""Choosing HTTN's open settings: on documents held out of train, one extractor for many fits."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from benchmarks.common.schema import load_yaml
from benchmarks.data import load
from methods import get
from methods.text.httn import HTTN
from workflow.studies import choose_httn
from workflow.studies.choose_httn import TextStudy, best, kept, try_settings, try_transfer

QUICK = {"epochs": 1, "hidden": 8, "size": 12, "dimensions": 10, "max_length": 30}


class Quick(TextStudy):
    """The study with tiny networks."""

    def settings(self, base, **changed):
        return get(base, **QUICK, **changed)


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(choose_httn, "AFTER", choose_httn.AFTER[:3])
    train, _ = load("tiny-text")
    return Quick(train, 60, 0, tmp_path / "out.csv")


def test_every_fit_is_scored_on_training_documents_held_out(study, monkeypatch):
    seen = []
    real = choose_httn.evaluate

    def watched(top, labels, train_labels, **more):
        seen.append((len(top.indices), labels.shape[0], train_labels.shape[0]))
        return real(top, labels, train_labels, **more)

    monkeypatch.setattr(choose_httn, "evaluate", watched)
    rates = [{"learning_rate": 0.01}, {"learning_rate": 0.1}]
    for base in ("Joint", "DXML"):
        try_settings(study, base, rates)
    assert seen == [(60, 60, 240)] * 4
    frame = pd.read_csv(study.out)
    assert frame[["base", "learning_rate"]].to_numpy().tolist() == [
        ["Joint", 0.01],
        ["Joint", 0.1],
        ["DXML", 0.01],
        ["DXML", 0.1],
    ]
    try_settings(study, "Joint", rates)
    assert len(seen) == 4, "what was measured is not measured again"


def test_settings_after_the_extractor_share_it_and_equal_a_whole_fit(study, monkeypatch):
    trainings, models = [], []
    real, scored = HTTN.trained_head, study.scored
    monkeypatch.setattr(HTTN, "trained_head", lambda *a: trainings.append(1) or real(*a))
    monkeypatch.setattr(study, "scored", lambda model: models.append(model) or scored(model))
    try_transfer(study, 0.01)
    assert (len(trainings), len(models)) == (1, 3)
    last = study.settings("HTTN", learning_rate=0.01, **choose_httn.AFTER[2])
    whole = last.fit(study.fitted, seed=0)
    torch.testing.assert_close(models[2].classifiers[0], whole.classifiers[0], equal_nan=True)


def test_the_best_on_the_tail_is_kept_among_those_that_are_good_on_all_labels():
    frame = pd.DataFrame(
        {
            "base": "Joint",
            "learning_rate": [0.1, 0.2, 0.3, 0.4, 0.5],
            "microF1": [80.0, 79.6, 79.7, 79.7, 79.4],
            "tail microF1": [0.0, 5.0, 5.0, 5.0, 40.0],
        }
    )
    assert best(frame, ["learning_rate"]) == {"learning_rate": 0.3}, "the first of equals"
    assert kept(frame) == {"Joint": {"learning_rate": 0.3}}


def test_what_is_kept_is_the_best_on_average_over_draws():
    draws = {"C": [1, 2, 1, 2], "microF1": 80.0, "tail microF1": [9.0, 6.0, 0.0, 6.0]}
    assert best(pd.DataFrame(draws), ["C"]) == {"C": 2}


def test_the_run_has_what_the_study_chose(root):
    """The committed table and the paper's configuration belong together."""
    chosen = kept(pd.read_csv(root / "results/reference/choose_httn.csv"))
    assert set(chosen) == {"Joint", "HTTN", *choose_httn.RIVALS}
    bases = load_yaml(root / "benchmarks/papers/httn/config.yaml")["define"]["bases"]
    for name, base in bases.items():
        if name.startswith("XML-CNN"):
            assert "learning_rate" not in base["params"], "another network, with its recipe's rate"
            continue
        own = chosen["HTTN"] if base["extends"] == "EHTTN" else chosen.get(base["extends"], {})
        method = get(base["extends"], **base["params"])
        # Where a dataset has fewer epochs, so have the stages that follow them.
        wanted = {**chosen["Joint"], **own}
        if not name.endswith("-glove"):
            wanted = {k: v for k, v in wanted.items() if not k.endswith("epochs")}
        assert {k: getattr(method, k) for k in wanted} == wanted, name


def test_every_setting_that_the_study_tries_was_tried(root):
    frame = pd.read_csv(root / "results/reference/choose_httn.csv")
    own = frame[frame["base"] == "Joint"]
    assert set(own["learning_rate"]) == set(choose_httn.RATES)
    tried = frame[frame["base"] == "HTTN"]
    for _, of_draw in tried.groupby("seed"):
        assert of_draw[list(choose_httn.TRIED)].to_dict("records") == list(choose_httn.AFTER)
    assert tried["seed"].nunique() == 2
    for base, (name, values) in choose_httn.RIVALS.items():
        assert set(values) <= set(frame[frame["base"] == base][name])
