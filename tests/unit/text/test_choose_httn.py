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
from workflow.studies.choose_httn import TextStudy, best, try_rates, try_transfer

QUICK = {"epochs": 1, "hidden": 8, "size": 12, "dimensions": 10, "max_length": 30}


class Quick(TextStudy):
    """The study with tiny networks."""

    def settings(self, base, **changed):
        return get(base, **QUICK, **changed)


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(choose_httn, "RATES", (0.01, 0.1))
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
    try_rates(study, ["Joint", "DXML"])
    assert seen == [(60, 60, 240)] * 4
    frame = pd.read_csv(study.out)
    assert frame[["base", "learning_rate"]].to_numpy().tolist() == [
        ["Joint", 0.01],
        ["Joint", 0.1],
        ["DXML", 0.01],
        ["DXML", 0.1],
    ]
    try_rates(study, ["Joint", "DXML"])
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


def test_the_best_is_the_first_of_equals():
    frame = pd.DataFrame({"microF1": [1.0, 3.0, 3.0], "fine_tune_rate": [0.1, 0.2, 0.3]})
    assert best(frame)["fine_tune_rate"] == 0.2


def test_the_run_has_what_the_study_chose(root):
    """The committed table and the paper's configuration belong together."""
    frame = pd.read_csv(root / "results/reference/choose_httn.csv")
    bases = load_yaml(root / "benchmarks/papers/httn/config.yaml")["define"]["bases"]
    own = frame[frame["base"] == "Joint"]
    assert set(own["learning_rate"]) == set(choose_httn.RATES)
    rates = {name: base["params"].get("learning_rate") for name, base in bases.items()}
    assert rates.pop("XML-CNN-glove") is None, "another network, with the rate of its recipe"
    assert set(rates.values()) == {best(own)["learning_rate"]}
    after = best(frame[frame["base"] == "HTTN"])
    for base in ("HTTN", "EHTTN"):
        method = get(base, **bases[f"{base}-glove"]["params"])
        found = {name: getattr(method, name) for name in choose_httn.AFTER[0]}
        assert found == {name: after[name] for name in found}
