"""The committed runs are those of the configurations that they are said to be of."""

from pathlib import Path

import pytest

from benchmarks.common.schema import load_yaml
from benchmarks.data import names
from benchmarks.records.cell import KEY
from benchmarks.records.cells import read_runs
from workflow.config import check, plan

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("config", "runs"),
    [
        ("config/reference.yaml", "runs.csv"),
        ("config/reference_forests.yaml", "forests/runs.csv"),
        ("benchmarks/papers/glas/config.yaml", "glas_runs.csv"),
        ("benchmarks/papers/httn/config.yaml", "httn_runs.csv"),
        ("benchmarks/papers/tailmix/config.yaml", "deep/runs.csv"),
        ("config/reference_attentionxml.yaml", "attentionxml_runs.csv"),
    ],
)
def test_the_cells_of_a_reference_are_those_of_its_configuration(config, runs):
    settings = check(load_yaml(ROOT / config), config)
    jobs = plan(settings, config, names(settings["define"]["datasets"]))
    found = read_runs(ROOT / "results/reference" / runs)
    asked = {tuple(getattr(job.cell, name) for name in KEY) for job in jobs}
    assert set(found[KEY].itertuples(index=False, name=None)) == asked
    lacking = found[found["status"] != "ok"]
    assert all(str(reason).startswith("not applicable") for reason in lacking["reason"])
    assert found["commit"].nunique() == 1
    # A cell may be marked for a file in the folder that is no code (records of before that was told
    # apart): then the digest of its code is one that a cell of the same commit has without a mark.
    marked = found[found["dirty"].astype(bool)]
    assert set(marked["code"]) <= set(found.loc[~found["dirty"].astype(bool), "code"])
