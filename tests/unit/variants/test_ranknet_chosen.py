"""RankNet with chosen settings: by held-out documents, within the loss allowed, the same always."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.evaluation.metrics import score
from benchmarks.evaluation.topk import TopK
from methods import get
from methods._kernels.topk import reordered
from methods.interface import FitContext
from methods.variants import ranknet_chosen
from methods.variants.ranknet import NetworkModel, RankNet
from methods.variants.ranknet_chosen import GRID, UNTRAINED, RankNetChosen, borders, settings

pytestmark = pytest.mark.slow  # compiles the forests' kernels


@pytest.fixture(scope="module")
def train():
    return load("tiny-bow")[0]


@pytest.fixture(scope="module")
def out_of_fold(train):
    base = get("Parabel", max_leaf=10)
    top = RankNet().held_out(base, train, FitContext(seed=0))
    return base.fit(train, seed=0), top


def test_a_choice_at_the_border_of_the_grid_is_told() -> None:
    inside = {"neighbours": 0, "trade_off": 10.0, "margin": 0.0, "rate": 0.01}
    assert borders(inside) == []
    assert borders({**inside, "trade_off": 300.0, "rate": 0.003}) == ["trade_off", "rate"]
    assert borders(UNTRAINED) == []


def test_the_grid_begins_with_the_base_itself() -> None:
    every = list(settings())
    assert every[0] == UNTRAINED
    assert len(every) == 1 + np.prod([len(values) for values in GRID.values()])
    assert len({str(setting) for setting in every}) == len(every)


def test_it_is_the_best_of_a_search_written_out(train, out_of_fold) -> None:
    model, top = out_of_fold
    variant = RankNetChosen(max_loss=2.0)
    order = np.random.default_rng([5, 3]).permutation(len(train))
    n_judges = round(0.2 * len(train))
    judges, learners = np.sort(order[:n_judges]), np.sort(order[n_judges:])
    judged = TopK(top.indices[judges], top.scores[judges])
    found = []
    for setting in settings():
        network = RankNet(**setting).train_network(
            model, TopK(top.indices[learners], top.scores[learners]), train.take(learners), 5
        )
        ranked = reordered(judged.indices, network.rescore(judged), 5)
        values = score(ranked, train.labels[judges], train.labels)
        psp = (values["PSP@1"] + values["PSP@3"] + values["PSP@5"]) / 3
        found.append((psp, values["P@1"], setting))
    allowed = [row for row in found if row[1] >= found[0][1] - 2.0]
    assert variant.choose(model, top, train, 5) == max(allowed, key=lambda row: row[0])[2]


def test_where_all_settings_cost_too_much_the_base_is_left_alone(
    train, out_of_fold, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, top = out_of_fold
    calls = []

    def worse_but_for_the_first(*given: Any, **named: Any) -> dict[str, float]:
        calls.append(given)
        psp = 10.0 + len(calls)
        return {"P@1": 50.0 if len(calls) == 1 else 40.0, **dict.fromkeys(ranknet_chosen.PSP, psp)}

    monkeypatch.setattr(ranknet_chosen, "score", worse_but_for_the_first)
    assert RankNetChosen().choose(model, top, train, 0) == UNTRAINED
    calls.clear()
    assert RankNetChosen(max_loss=10.0).choose(model, top, train, 0) == list(settings())[-1]


def test_a_fit_says_what_was_chosen_and_does_not_depend_on_threads(train, tmp_path) -> None:
    method = get("Parabel", "RankNet-chosen", max_leaf=10)
    one, two = (method.fit(train, seed=1, threads=threads) for threads in (1, 2))
    assert any(note.startswith("RankNet's settings, chosen: ") for note in one.notes)
    np.testing.assert_array_equal(one.W, two.W)
    one.save(tmp_path)
    a, b = (m.predict(train.inputs, 5) for m in (one, NetworkModel.load(tmp_path)))
    np.testing.assert_array_equal(a.indices, b.indices)


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"n_folds": 1}, {"link": "tanh"}])
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RankNetChosen(**wrong)
