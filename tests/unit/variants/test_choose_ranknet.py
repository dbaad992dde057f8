"""Choosing RankNet's settings: by held-out documents, within the loss that is allowed."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.data import load
from workflow.studies import choose_ranknet

pytestmark = pytest.mark.slow  # compiles the forests' kernels


def frame() -> pd.DataFrame:
    rows = [(None, 40.0, 80.0), (0.1, 50.0, 70.0), (0.2, 45.0, 79.0), (0.3, 44.0, 80.0)]
    return pd.DataFrame(rows, columns=["rate", "PSP", "P@1"])


def test_the_best_is_among_those_that_lose_little() -> None:
    assert choose_ranknet.best_setting(frame(), loss=1.5)["rate"] == 0.2
    assert choose_ranknet.best_setting(frame(), loss=0.5)["rate"] == 0.3
    assert choose_ranknet.best_setting(frame(), loss=10.0)["rate"] == 0.1
    with pytest.raises(ValueError, match=r"loses more than -1.0 points"):
        choose_ranknet.best_setting(frame(), loss=-1.0)


def test_the_grid_never_sees_the_test_documents(monkeypatch) -> None:
    train, _ = load("tiny-bow")
    scored = []

    def record(top, labels, train_labels):
        scored.append((len(top.indices), train_labels.shape[0]))
        return dict.fromkeys(choose_ranknet.METRICS, 1.0)

    monkeypatch.setattr(choose_ranknet, "score", record)
    monkeypatch.setattr(choose_ranknet, "GRID", {"rate": [0.01, 0.1]})
    found = choose_ranknet.grid_scores(train, "Parabel", seed=0, threads=1, share=0.2)
    assert len(found) == 3
    kept, fitted = scored[0]
    assert kept + fitted == len(train)
    assert set(scored) == {(kept, fitted)}
