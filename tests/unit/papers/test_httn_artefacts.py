"""HTTN's tables, figures and claims, drawn from a small run whose predictions are made up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.schema import load_yaml
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import open_prepared
from benchmarks.evaluation.topk import TopK
from benchmarks.papers.artefacts import artefacts_of, write_artefacts
from benchmarks.papers.httn import claims, figures, rows, tables
from benchmarks.papers.httn.comparison import RANKING, TAIL, WHOLE, difference, measured
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS
from benchmarks.records.cell import Cell
from benchmarks.records.cells import collect, write_cells, write_runs
from benchmarks.records.files import write_record
from benchmarks.records.intervals import intervals, write_intervals
from benchmarks.records.results import Results
from workflow.config import check, plan, swept
from workflow.runtime.evaluate import evaluate_cell

QUALITY = {  # (base, variant, seed): how much of the truth is in the scores, on tail labels
    ("HTTN-glove", "plain", 0): 0.9,
    ("HTTN-glove", "H-F", 0): 0.2,
    ("HTTN-glove", "H-F-A", 0): 0.2,
    ("HTTN-glove", "l_tail-15", 0): 0.2,
    ("HTTN-glove", "S-5", 0): 0.2,
    ("HTTN-glove", "S-40", 0): 0.9,
    ("EHTTN-glove", "plain", 0): 1.0,
    ("EHTTN-glove", "member-0", 0): 0.2,
    ("EHTTN-glove", "member-1", 0): 0.5,
    ("Joint-glove", "plain", 0): 0.1,
    ("Joint-glove", "plain", 1): 0.12,
    ("Joint-glove", "plain", 2): 0.1,
    ("HTTN-glove", "plain", 1): 0.88,
    ("HTTN-glove", "plain", 2): 0.9,
    ("BBN-glove", "plain", 0): 0.1,
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
    for number, ((base, variant, seed), quality) in enumerate(QUALITY.items()):
        cell = Cell("tiny-text", base, variant, seed)
        cells.append(cell)
        own = folder / "runs" / cell.path
        own.mkdir(parents=True)
        rng = np.random.default_rng(number)
        known = rng.random(truth.shape) < quality
        top = TopK.from_dense(np.where(known, truth, 0) * 0.8 + 0.1 * rng.random(truth.shape), 60)
        np.savez(own / "predictions.npz", indices=top.indices, scores=top.scores)
        record = {"dataset": cell.dataset, "base": base, "variant": variant, "seed": seed}
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
    expected = cell.query("metric == 'microF1' and convention == 'xc-matlab'")["value"].mean()
    assert value == pytest.approx(expected)
    assert table.printed(2, "microF1").startswith(f"{expected:.2f} [")
    assert (3, "P@5") in table.bold


def test_f1_of_tail_labels_equals_a_plain_count(results):
    data = figures.tail_f1_data(results)
    assert set(data["method"]) == {"Joint", "BBN", "HTTN"}
    train, test = results.training["tiny-text"], results.testing["tiny-text"]
    rarest = rows.tail_labels(train)
    assert train.label_counts()[rarest].max() <= np.sort(train.label_counts())[len(rarest) - 1] + 1
    top = next(top for cell, top in results.rankings() if cell.base == "BBN-glove")
    for line in data[data["method"] == "BBN"].itertuples():
        predicted = {
            row
            for row in range(len(test))
            for label, score in zip(top.indices[row], top.scores[row], strict=True)
            if label == line.label and score > 0.5
        }
        true = set(np.flatnonzero(test.labels[:, line.label].toarray().ravel()))
        assert pytest.approx(200 * len(predicted & true) / (len(predicted) + len(true))) == line.F1


def test_f1_of_tail_labels_is_the_mean_over_seeds(results):
    data = figures.tail_f1_data(results).query("method == 'HTTN'")
    test = results.testing["tiny-text"]
    tops = [t for c, t in results.rankings() if (c.base, c.variant) == ("HTTN-glove", "plain")]
    assert len(tops) == 3
    expected = np.mean([rows.f1_by_label(t, test, data["label"].to_numpy()) for t in tops], axis=0)
    np.testing.assert_allclose(data["F1"], expected)


def plain_tail_ranking(top, test, labels):
    """P@1 and nDCG@5 of tail labels over the documents that carry one, in percent."""
    first, gains = [], []
    for row, carried in enumerate(test.labels[:, labels].toarray() > 0):
        if carried.any():
            own = {int(label) for label in labels[carried]}
            order = [label for label in top.indices[row] if label in set(labels)]
            first.append(order[0] in own)
            dcg = sum(1 / np.log2(2 + n) for n, label in enumerate(order[:5]) if label in own)
            gains.append(dcg / sum(1 / np.log2(2 + n) for n in range(min(5, len(own)))))
    return 100 * np.mean(first), 100 * np.mean(gains)


def test_the_table_of_tail_labels_equals_plain_counts(results):
    table = tables.tail_table(results)
    frame = table.frame.set_index("method")
    assert frame.index.tolist() == ["Joint", "BBN", "HTTN", "EHTTN"]
    assert frame["seeds"].tolist() == ["3", "1", "3", "1"]
    train, test = results.training["tiny-text"], results.testing["tiny-text"]
    labels = rows.tail_labels(train)
    true = test.labels[:, labels].toarray() > 0
    top = next(t for c, t in results.rankings() if c.base == "BBN-glove")
    scores = top.to_sparse(train.n_labels)[:, labels].toarray()
    predicted = scores > 0.5
    assert frame.loc["BBN", "true"] == str(true.sum())
    assert frame.loc["BBN", "predicted"] == str(predicted.sum())
    f1 = 200 * (true & predicted).sum() / (true.sum() + predicted.sum())
    ranked = plain_tail_ranking(top, test, labels)
    np.testing.assert_allclose(frame.loc["BBN", list(tables.ON_TAIL)].astype(float), [f1, *ranked])


@pytest.mark.parametrize("part", [WHOLE, TAIL])
def test_two_methods_are_compared_over_the_seeds_both_have(results, part):
    by_method = measured(results)["tiny-text"]
    joint, ours, ensemble = (by_method[name] for name in ("Joint", "HTTN", "EHTTN"))
    values = {m: [e.values()["microF1"] for e in by_method[m].of(part).values()] for m in by_method}
    found = difference(joint, ours, part, "microF1")
    assert found["difference"] == pytest.approx(np.mean(values["HTTN"]) - np.mean(values["Joint"]))
    single = difference(joint, ensemble, part, "microF1")
    assert single["difference"] == pytest.approx(values["EHTTN"][0] - values["Joint"][0])
    assert found["difference_low"] < found["difference"] < found["difference_high"]


def test_over_all_labels_a_comparison_has_the_values_of_the_cells(results):
    found = measured(results)["tiny-text"]["BBN"].of(WHOLE)[0].values()
    cell = results.cells.query("base == 'BBN-glove' and bin == 'all' and convention == 'xc-matlab'")
    for metric, k in (("microF1", None), ("nDCG", 5)):
        own = cell[(cell["metric"] == metric) & (cell["k"].isna() if k is None else cell["k"] == k)]
        name = metric if k is None else f"{metric}@{k}"
        assert found[name] == pytest.approx(own["value"].item())


def test_a_cut_ranking_has_no_ranking_of_tail_labels(results, monkeypatch):
    cut = [(c, TopK(t.indices[:, :20], t.scores[:, :20])) for c, t in results.rankings()]
    monkeypatch.setattr(results, "rankings", lambda: iter(cut))
    by_method = measured(results)["tiny-text"]
    assert by_method["HTTN"].of(TAIL).keys() == {0, 1, 2}
    assert not by_method["HTTN"].of(RANKING)
    assert difference(by_method["Joint"], by_method["HTTN"], RANKING, "nDCG@5") is None
    assert tables.tail_table(results).frame["tail nDCG@5"].isna().all()


def test_the_time_of_a_dataset_is_that_of_its_cells(results):
    runs = results.runs.copy()
    shares = {"cpu_s": 10.0, "fit_cpu_s": 6.0, "predict_cpu_s": 1.0}
    other = runs.iloc[[0]].assign(base="DiSMEC", cpu_s=1000.0)
    runs = pd.concat([runs.assign(**shares), other.assign(fit_cpu_s=1.0, predict_cpu_s=1.0)])
    runs.iloc[2, runs.columns.get_loc("cpu_s")] = 40.0
    results = Results(results.folder)
    results.__dict__["runs"] = runs
    line = tables.time_table(results).frame.iloc[0]
    cells = len(QUALITY)
    total = 10 * cells + 30
    assert (line["dataset"], line["cells"]) == ("tiny-text", str(cells))
    assert line["minutes"] == pytest.approx(total / 60)
    assert line["fit %"] == pytest.approx(100 * 6 * cells / total)
    assert line["predict %"] == pytest.approx(100 * cells / total)
    assert line["longest cell"] == "HTTN-glove H-F-A"
    assert line["its minutes"] == pytest.approx(40 / 60)


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
    assert judged["HTTN beats BBN over all labels (Tables 2 to 4)", "HTTN"] == HOLDS
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
    assert rows.only("S", found) == {f"S-{n}": n for n in (5, 10, 20, 30, 40, 60)}
    assert set(rows.only("l_tail", found)) == {"l_tail-15", "l_tail-14", "l_tail-754"}
    for dataset in DATASETS:
        own = [job.cell for job in jobs if job.cell.dataset == dataset]
        methods = [
            rows.method_of(cell.base) for cell in own if (cell.variant, cell.seed) == ("plain", 0)
        ]
        assert sorted(methods) == sorted(rows.METHODS), "each method once"
