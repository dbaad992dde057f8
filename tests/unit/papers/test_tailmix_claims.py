"""Verdicts and tables of the TailMix paper, from frames worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.evaluation.metrics import Evaluation
from benchmarks.papers.artefacts import write_artefacts
from benchmarks.papers.tailmix import claims, tables
from benchmarks.papers.tailmix.artefacts import ARTEFACTS
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS, UNDECIDED
from benchmarks.records.cell import INSTANCE, METRICS, Cell
from benchmarks.records.files import write_evaluation, write_record
from benchmarks.records.intervals import intervals
from benchmarks.records.results import Results

N = 400
HITS = {"plain": 100, "wordMix": 101, "SSMix": 180, "TailMix-nosim": 110, "TailMix": 140}
"""How many of the documents each variant gets right: the first ones, so pairs overlap."""
HOURS = {"plain": 1.0, "wordMix": 1.1, "SSMix": 2.0, "TailMix-nosim": 1.2, "TailMix": 1.5}


def run(tmp_path):
    """The results of a run whose every metric is the share of hits."""
    names = ("P@1", "PSP@1", "PSP@3")
    cells, runs, identities = [], [], []
    for variant, hits in HITS.items():
        cell = Cell("toy", "AttentionXML", variant, 0)
        value = (np.arange(N) < hits).astype(float)
        path = cell.file(INSTANCE, tmp_path)
        path.parent.mkdir(parents=True)
        ones = np.ones(N)
        numerators, denominators = dict.fromkeys(names, value), dict.fromkeys(names, ones)
        Evaluation("xc-matlab", N, numerators, denominators).save(path)
        key = {"dataset": "toy", "base": "AttentionXML", "variant": variant, "seed": 0}
        path.with_name(METRICS).write_text("")
        record = write_record(path.parent, {**key, "device": "cpu"})
        write_evaluation(record, path.with_name(METRICS), path)
        for name in names:
            metric, _, k = name.partition("@")
            value = {"metric": metric, "k": int(k), "value": 100 * hits / N}
            cells.append({**key, **value, "status": "ok", "convention": "xc-matlab", "bin": "all"})
        runs.append({**key, "status": "ok", "fit_cpu_s": 3600 * HOURS[variant]})
        identities.append(cell)
    results = Results(tmp_path, identities)
    results.__dict__["cells"] = pd.DataFrame(cells)
    results.__dict__["runs"] = pd.DataFrame(runs)
    results.__dict__["intervals"] = intervals(c.file(INSTANCE, tmp_path) for c in identities)
    return results


def test_tailmix_is_compared_with_its_base_its_rivals_and_its_parts(tmp_path):
    found = pd.DataFrame(claims.judge(run(tmp_path)))
    verdicts = found.groupby("claim")["verdict"].agg(lambda v: set(v))
    assert verdicts["TailMix raises PSP@k over the plain base (Table 2)"] == {HOLDS}
    assert verdicts["TailMix has a higher PSP@k than wordMix (Table 3)"] == {HOLDS}
    assert verdicts["TailMix has a higher PSP@k than SSMix (Table 3)"] == {CONTRADICTED}
    assert verdicts["Similarity raises PSP@k of TailMix (Table 4, Sim)"] == {HOLDS}
    assert verdicts["TailMix trains faster than SSMix (Table 3)"] == {HOLDS}
    assert not any("hiddenMix" in claim for claim in found["claim"]), "it was not run"
    measured = found.set_index("claim")["measured"]
    assert "90.0 min against 120.0 min" in measured["TailMix trains faster than SSMix (Table 3)"]


def test_a_difference_that_may_be_chance_is_undecided(tmp_path, monkeypatch):
    monkeypatch.setitem(HITS, "wordMix", 139)
    found = pd.DataFrame(claims.judge(run(tmp_path))).set_index("claim")["verdict"]
    assert set(found["TailMix has a higher PSP@k than wordMix (Table 3)"]) == {UNDECIDED}


def test_tables_have_the_rows_that_were_run_with_hours(tmp_path):
    results = run(tmp_path)
    third = tables.table3(results.cells, results.runs).set_index("variant")
    assert list(third.index) == ["plain", "wordMix", "SSMix", "TailMix"]
    assert third.loc["TailMix", "PSP@1"] == 35.0
    assert third.loc["SSMix", tables.HOURS] == 2.0
    fourth = tables.table4(results.cells, results.runs)
    assert fourth[["Sim", "LPG"]].to_numpy().tolist() == [["-", "+"], ["+", "+"]]
    second = tables.table2(results.cells, results.runs)
    assert second["variant"].tolist() == ["plain", "TailMix"]


def test_artefacts_of_a_run_with_and_without_mixups(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = [artefact for artefact in ARTEFACTS if artefact.needs_cells]
    results = run(tmp_path)
    write_artefacts(declared, results)
    assert "wordMix" in (tmp_path / "results/tables/tailmix_table3.md").read_text()
    results.__dict__["cells"] = results.cells[results.cells["variant"] == "plain"]
    results.__dict__["intervals"] = results.intervals[results.intervals["variant"] == "plain"]
    results.__dict__["runs"] = results.runs.head(1)
    write_artefacts(declared, results)
    assert len(tables.table3(results.cells, results.runs)) == 0
