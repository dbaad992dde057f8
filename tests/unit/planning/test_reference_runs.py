"""The committed runs are those of the configurations that they are said to be of."""

from pathlib import Path

import pytest

from benchmarks.common.schema import load_yaml
from benchmarks.data import names
from benchmarks.records.cell import KEY
from benchmarks.records.cells import read_runs
from workflow.config import check, plan
from workflow.planning.observed import recipe_text
from workflow.planning.reference import reference_runs
from workflow.reference import references

ROOT = Path(__file__).resolve().parents[3]
REFERENCES = references()
FILES = [each.runs.relative_to(ROOT / "results/reference").as_posix() for each in REFERENCES]


def jobs_of(reference):
    config = str(reference.config)
    settings = check(load_yaml(config), config)
    return plan(settings, config, names(settings["define"]["datasets"]))


@pytest.mark.parametrize("reference", REFERENCES, ids=FILES)
def test_the_cells_of_a_reference_are_those_of_its_configuration(reference):
    jobs = jobs_of(reference)
    found = read_runs(reference.runs)
    asked = {tuple(getattr(job.cell, name) for name in KEY) for job in jobs}
    assert set(found[KEY].itertuples(index=False, name=None)) == asked
    lacking = found[found["status"] != "ok"]
    assert all(str(reason).startswith("not applicable") for reason in lacking["reason"])
    assert found["commit"].nunique() == 1
    # A cell may be marked for a file in the folder that is no code (records of before that was told
    # apart): then the digest of its code is one that a cell of the same commit has without a mark.
    marked = found[found["dirty"].astype(bool)]
    assert set(marked["code"]) <= set(found.loc[~found["dirty"].astype(bool), "code"])


def test_every_file_of_runs_that_is_shipped_is_learnt_from():
    shipped = (ROOT / "results/reference").rglob("*runs.csv")
    assert sorted(FILES) == sorted(
        path.relative_to(ROOT / "results/reference").as_posix() for path in shipped
    )


def test_each_run_of_the_references_has_the_law_of_its_configurations_recipe():
    learnt, left_out = reference_runs()
    assert left_out == []
    expected = []
    for reference in REFERENCES:
        jobs = {job.cell: job for job in jobs_of(reference)}
        rows = read_runs(reference.runs)
        for row in rows[rows["status"] == "ok"].to_dict("records"):
            job = next(
                job for cell, job in jobs.items() if all(getattr(cell, k) == row[k] for k in KEY)
            )
            if not job.members:
                law = job.base.target.partition(":")[2]
                expected.append((job.cell, law, recipe_text((job.base, *job.variants))))
    assert [(run.cell, run.work.law, run.recipe) for run in learnt] == expected
    # A base that a configuration names after another is of that one's law.
    renamed = {run.cell.base: run.work.law for run in learnt}
    assert renamed["AttentionXML-followed"] == "AttentionXML"
    assert renamed["Joint-glove"] == "Joint"
    assert renamed["Embedding-softmax"] == "Embedding"


def test_rows_without_sizes_take_those_of_the_same_data():
    # Bibtex in runs.csv is of before sizes were recorded; forests/runs.csv counted its words.
    learnt, _ = reference_runs()
    amounts = {
        run.work.cost.terms["node"].amount
        for run in learnt
        if run.cell.dataset == "Bibtex" and run.work.law == "Bonsai"
    }
    assert len(amounts) == 1
