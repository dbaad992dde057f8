"""HTTN's tables, figures and claims, drawn from a small run whose predictions are made up."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common.schema import load_yaml
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import open_prepared
from benchmarks.evaluation.topk import TopK
from benchmarks.papers.artefacts import artefacts_of, write_artefacts
from benchmarks.papers.httn import claims, figures, rows, tables
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS
from benchmarks.records.cell import Cell
from benchmarks.records.cells import collect, write_cells, write_runs
from benchmarks.records.files import write_record
from benchmarks.records.intervals import intervals, write_intervals
from benchmarks.records.results import Results
from workflow.config import check, plan, swept
from workflow.runtime.evaluate import evaluate_cell

QUALITY = {  # (base, variant): how much of the truth is in the scores, on tail labels
    ("HTTN-glove", "plain"): 0.9,
    ("HTTN-glove", "H-F"): 0.2,
    ("HTTN-glove", "H-F-A"): 0.2,
    ("HTTN-glove", "l_tail-15"): 0.2,
    ("HTTN-glove", "S-5"): 0.2,
    ("HTTN-glove", "S-40"): 0.9,
    ("EHTTN-glove", "plain"): 1.0,
    ("EHTTN-glove", "member-0"): 0.2,
    ("EHTTN-glove", "member-1"): 0.5,
    ("Joint-glove", "plain"): 0.1,
    ("BBN-glove", "plain"): 0.1,
}
NOTHING = {"S": None, "l_tail": None, "member": None}
SETTINGS = {
    "l_tail-15": {**NOTHING, "l_tail": 15},
    "S-5": {**NOTHING, "S": 5},
    "S-40": {**NOTHING, "S": 40},
    "member-0": {**NOTHING, "member": 0},
    "member-1": {**NOTHING, "member": 1},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("httn") / "results"
    data = folder / "data" / "tiny-text"
    ensure("tiny-text", root=folder / "data")
    truth = open_prepared(data)[1].labels.toarray()
    cells = []
    for number, ((base, variant), quality) in enumerate(QUALITY.items()):
        cell = Cell("tiny-text", base, variant, 0)
        cells.append(cell)
        own = folder / "runs" / cell.path
        own.mkdir(parents=True)
        rng = np.random.default_rng(number)
        known = rng.random(truth.shape) < quality
        top = TopK.from_dense(np.where(known, truth, 0) * 0.8 + 0.1 * rng.random(truth.shape), 60)
        np.savez(own / "predictions.npz", indices=top.indices, scores=top.scores)
        record = {"dataset": cell.dataset, "base": base, "variant": variant, "seed": 0}
        record |= {"status": "ok", "reason": "", "phases": {}, "budget": {}, "device": "cpu"}
        record |= dict.fromkeys(["wall_s", "cpu_s", "peak_mb", "threads"], 1)
        record |= {"commit": "", "dirty": False, "code": "", "data": "", "node": {"cpu": ""}}
        np.savez(own / "norms.npz", norms=np.full(60, np.nan, np.float32))
        write_record(own, record)
        evaluate_cell(own, data, (1, 3, 5), own / "metrics.csv", own / "instance.npz", 0.5)
    folders = [folder / "runs" / cell.path for cell in cells]
    measured, runs = collect(folders)
    write_cells(measured, folder / "cells.csv")
    write_runs(runs, folder / "runs.csv")
    write_intervals(intervals(own / "instance.npz" for own in folders), folder / "intervals.csv")
    return Results(folder, cells, SETTINGS)


def test_methods_are_known_by_prefix():
    assert rows.method_of("XML-CNN-glove") == "XML-CNN"
    assert rows.method_of("HTTN") == "HTTN"
    assert rows.method_of("HTTNs") is None
    assert rows.method_of("DiSMEC") is None


def test_the_table_has_the_papers_rows_in_its_order(results):
    table = tables.results_table(results)
    names = ["Joint", "BBN", "HTTN", "EHTTN", "HTTN, l_tail = 15"]
    assert table.frame["method"].tolist() == names
    value = table.frame.set_index("method").loc["HTTN", "microF1"]
    cell = results.cells.query("base == 'HTTN-glove' and variant == 'plain' and bin == 'all'")
    expected = cell.query("metric == 'microF1' and convention == 'xc-matlab'")["value"].item()
    assert value == pytest.approx(expected)
    assert table.printed(2, "microF1").startswith(f"{expected:.2f} [")
    assert (3, "P@5") in table.bold


def test_f1_of_tail_labels_equals_a_plain_count(results):
    data = figures.tail_f1_data(results)
    assert set(data["method"]) == {"Joint", "BBN", "HTTN"}
    train, test = results.training["tiny-text"], results.testing["tiny-text"]
    tail = rows.tail_labels(train)
    assert train.label_counts()[tail].max() <= np.sort(train.label_counts())[len(tail) - 1] + 1
    top = next(top for cell, top in results.rankings() if cell.base == "HTTN-glove")
    for line in data[data["method"] == "HTTN"].itertuples():
        predicted = {
            row
            for row in range(len(test))
            for label, score in zip(top.indices[row], top.scores[row], strict=True)
            if label == line.label and score > 0.5
        }
        true = set(np.flatnonzero(test.labels[:, line.label].toarray().ravel()))
        assert pytest.approx(200 * len(predicted & true) / (len(predicted) + len(true))) == line.F1


def test_members_and_draws(results):
    members = figures.members_data(results)
    assert set(members["members"]) == {2}
    assert (members["min"] <= members["mean"]).all()
    assert (members["max"] < members["ensemble"]).all()
    draws = figures.draws_data(results)
    assert draws[draws["metric"] == "microF1"]["S"].tolist() == [5, 40]


def test_claims_are_judged_as_the_run_was_made_up(results):
    judged = {(line["claim"], line["base"]): line["verdict"] for line in claims.judge(results)}
    assert judged["HTTN beats Joint on tail labels (Fig. 4)", "HTTN"] == HOLDS
    assert judged["HTTN ranks tail labels better than Joint (not printed)", "HTTN"] == HOLDS
    assert judged["The ensemble beats its best member (Fig. 6)", "EHTTN-glove"] == HOLDS
    assert judged["More head labels help HTTN (sec. 4.2)", "HTTN-glove"] == CONTRADICTED
    assert judged["Few draws of head prototypes cost F1 (Fig. 5)", "HTTN-glove"] == HOLDS
    assert judged["Fine-tuning helps: without it HTTN is worse (Fig. 3)", "HTTN-glove"] == HOLDS


def test_everything_declared_is_written(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = artefacts_of("httn")
    write_artefacts([a for a in declared if a.needs_cells], results, "page.html")
    for artefact in declared:
        if artefact.needs_cells:
            assert all((tmp_path / path).stat().st_size for path in artefact.files)
    assert "l_tail = 15" in (tmp_path / "page.html").read_text()


DATASETS = ("Reuters-21578", "RCV1-8K-test", "EURLex-4.3K-part")


def test_the_papers_run_is_valid_and_its_sweeps_are_found(root):
    source = root / "benchmarks/papers/httn/config.yaml"
    jobs = plan(check(load_yaml(source), str(source)), str(source), DATASETS)
    found = swept(jobs, rows.SWEPT)
    assert rows.only("S", found) == {f"S-{n}": n for n in (5, 10, 20, 40, 60)}
    assert set(rows.only("l_tail", found)) == {"l_tail-15", "l_tail-14", "l_tail-754"}
    for dataset in DATASETS:
        own = [job.cell for job in jobs if job.cell.dataset == dataset]
        methods = [rows.method_of(cell.base) for cell in own if cell.variant == "plain"]
        assert sorted(methods) == sorted(rows.METHODS), "each method once"
