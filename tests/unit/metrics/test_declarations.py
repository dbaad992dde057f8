"""A metric is one declaration: all else that shows it follows."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import f1_score

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data import load
from benchmarks.data.prepared import write
from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.conventions import CONVENTIONS, interchangeable
from benchmarks.evaluation.declarations import METRICS, Metric
from benchmarks.evaluation.statistics import bootstrap, paired_bootstrap
from benchmarks.evaluation.topk import TopK
from benchmarks.metrics import evaluate, score
from benchmarks.records.cell import Cell
from benchmarks.records.files import write_record
from benchmarks.records.intervals import intervals
from methods import get
from workflow.config import check
from workflow.runtime.evaluate import evaluate_cell

N, L, KS = 100, 12, (1, 3, 5)


def reciprocal_rank(view):
    """1 / rank of the first true label, 0 where it lies beyond k."""
    first = np.where(view.hits.any(axis=1), view.hits.argmax(axis=1) + 1, np.inf)[:, None]
    values = np.where(first <= view.ks, 1 / first, 0.0)
    return values, np.ones_like(values)


@pytest.fixture
def declared(monkeypatch):
    """The one declaration that this file is about."""
    monkeypatch.setitem(METRICS, "RR", Metric("RR", reciprocal_rank))


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    labels = [sparse.csr_matrix(rng.random((N, L)) < 0.2, dtype=np.float32) for _ in range(2)]
    meta = {"name": "made-up", "A": 0.55, "B": 1.5}
    inputs = Inputs(texts=["a document"] * N)
    train, test = (Split(inputs, one, meta) for one in labels)
    return train, test, TopK.from_dense(rng.normal(size=(N, L)) + test.labels.toarray(), k=L)


@pytest.fixture
def cell(problem, tmp_path):
    """Score the ranking as a cell of a run whose record holds the given facts."""
    train, test, top = problem
    write(tmp_path / "data", train, test, train.meta)

    def scored(top=top, ks=KS, threshold=None, **record):
        folder = tmp_path / "made-up/base/plain/seed0"
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "predictions.npz", indices=top.indices, scores=top.scores)
        write_record(folder, {**asdict(Cell.from_path(folder)), "status": "ok", **record})
        paths = folder / "metrics.csv", folder / "instance.npz"
        evaluate_cell(folder, tmp_path / "data", ks, *paths, threshold=threshold)
        return pd.read_csv(paths[0]), paths[1]

    return scored


def mean_reciprocal_rank(top, labels, k, rows):
    """By loops, in percent."""
    total = 0.0
    for i in range(rows):
        ranks = [r for r, label in enumerate(top.indices[i][:k], 1) if labels[i, label]]
        total += 1 / ranks[0] if ranks else 0.0
    return 100 * total / rows


@pytest.mark.parametrize(("convention", "rows"), [("xc-matlab", N), ("httn", 90)])
def test_a_declared_metric_is_scored_and_resampled(declared, problem, convention, rows):
    train, test, top = problem
    values = score(top, test.labels, train.labels, convention=convention)
    evaluation = evaluate(top, test.labels, train.labels, convention=convention)
    frame = evaluation.frame().set_index(["metric", "k"])
    limits = bootstrap(evaluation, resamples=200).set_index("metric")
    changes = paired_bootstrap(evaluation, evaluation, resamples=20).set_index("metric")
    for k in KS:
        expected = mean_reciprocal_rank(top, test.labels.toarray(), k, rows)
        assert values[f"RR@{k}"] == pytest.approx(expected)
        assert frame.loc[("RR", k), "value"] == pytest.approx(expected)
        assert frame.loc[("RR", k), "denominator"] == rows
        assert limits.loc[f"RR@{k}", "low"] < expected < limits.loc[f"RR@{k}", "high"]
        assert changes.loc[f"RR@{k}", "change"] == 0


def test_a_declared_metric_is_in_the_files_of_a_cell(declared, problem, cell):
    _, test, top = problem
    metrics, instance = cell()
    rows = metrics[metrics["metric"] == "RR"]
    assert set(rows["convention"]) == set(CONVENTIONS)
    plain = rows[(rows["convention"] == "xc-matlab") & (rows["bin"] == "all")].set_index("k")
    joined = intervals([instance]).set_index("metric")
    for k in KS:
        expected = mean_reciprocal_rank(top, test.labels.toarray(), k, N)
        assert plain.loc[k, "value"] == pytest.approx(expected)
        assert joined.loc[f"RR@{k}", "value"] == pytest.approx(expected)


def test_without_the_declaration_there_is_no_such_metric(problem):
    train, test, top = problem
    assert not any(name.startswith("RR") for name in score(top, test.labels, train.labels))


def test_a_declaration_says_which_choices_of_a_convention_matter(monkeypatch):
    assert not interchangeable("RR@1", "xc-matlab", "aplc")  # unknown: any choice might matter
    monkeypatch.setitem(METRICS, "RR", Metric("RR", reciprocal_rank))
    assert interchangeable("RR@1", "xc-matlab", "aplc")
    assert not interchangeable("RR@1", "xc-matlab", "httn")
    monkeypatch.setitem(METRICS, "RR", Metric("RR", reciprocal_rank, choices=("fixed_ndcg",)))
    assert not interchangeable("RR@1", "xc-matlab", "aplc")
    monkeypatch.setitem(METRICS, "RR", Metric("RR", reciprocal_rank, needs="propensities"))
    assert not interchangeable("RR@1", "xc-matlab", "glas")


def test_a_metric_over_labels_has_no_points_to_resample(monkeypatch, problem):
    def reached(view):
        """Labels ranked first in some row, right or wrong."""
        return np.bincount(view.top[:, 0], minlength=L) > 0, np.ones(L)

    monkeypatch.setitem(METRICS, "reach", Metric("reach", reached, at_ks=False, average="labels"))
    train, test, top = problem
    evaluation = evaluate(top, test.labels, train.labels)
    assert evaluation.values()["reach"] == 100 * len(set(top.indices[:, 0].tolist())) / L
    assert "reach" not in set(bootstrap(evaluation, resamples=5)["metric"])


def f1_rows(metrics):
    return metrics[metrics["metric"].isin(["microF1", "macroF1", "batchF1"])]


@pytest.mark.parametrize(
    ("threshold", "record"), [(0.5, {}), ("natural", {"decision_threshold": 0.5})]
)
def test_a_threshold_brings_f1_into_a_cell(problem, cell, threshold, record):
    _, test, top = problem
    metrics, instance = cell(threshold=threshold, **record)
    rows = f1_rows(metrics)
    assert set(rows["convention"]) == set(CONVENTIONS)
    assert rows["k"].isna().all()
    predicted, true = top.to_sparse(L).toarray() > 0.5, test.labels.toarray() > 0
    micro = f1_score(true, predicted, average="micro")
    shown = rows[rows["convention"] == "xc-matlab"].set_index("metric")["value"]
    assert shown["microF1"] == pytest.approx(100 * micro)
    assert shown["macroF1"] == pytest.approx(100 * f1_score(true, predicted, average="macro"))
    of_batch = f1_score(true[:90], predicted[:90], average="micro")
    assert shown["batchF1"] == pytest.approx(100 * of_batch)  # one whole batch of 90 rows
    named = set(intervals([instance])["metric"])
    assert {"microF1", "batchF1"} <= named


@pytest.mark.parametrize(
    ("threshold", "why"),
    [("natural", "declares no threshold"), (-9.0, "predict more than 6 labels"), (None, "")],
)
def test_a_cell_without_a_usable_threshold_has_no_f1_and_says_so(
    problem, cell, capsys, threshold, why
):
    _, _, top = problem
    short = TopK(top.indices[:, :6], top.scores[:, :6])
    metrics, _ = cell(short, threshold=threshold, decision_threshold=None)
    assert f1_rows(metrics).empty
    assert not metrics.empty
    said = capsys.readouterr().out
    assert why in said
    assert bool(said) == bool(why)


def test_margins_have_a_threshold_and_reranked_scores_have_none():
    train, _ = load("tiny-bow")
    assert get("LinearSVC").fit(train).decision_threshold == 0
    assert get("LinearSVC", variant="PW").fit(train).decision_threshold == 0
    assert get("LinearSVC", variant="RankNet-simple").fit(train).decision_threshold is None


@pytest.mark.parametrize("threshold", [None, 0.5, -1, "natural"])
def test_a_configuration_may_set_a_threshold(threshold):
    cells = [{"datasets": ["tiny-bow"], "bases": ["random"]}]
    assert check({"cells": cells}, "test")["threshold"] is None
    assert check({"cells": cells, "threshold": threshold}, "test")["threshold"] == threshold
    with pytest.raises(InvalidDocumentError, match="threshold"):
        check({"cells": cells, "threshold": "high"}, "test")
