"""One good dataset, one missing, one malformed and one empty: the run ends with its report."""

import json

import pandas as pd
import pytest
from browser import assert_sound
from workspace import Workspace

from benchmarks.papers.spec import load_papers

pytestmark = pytest.mark.slow
SCRIPT = "<script>document.title='overrun'</script>"


@pytest.fixture(scope="module")
def done(tmp_path_factory, root):
    workspace = Workspace(tmp_path_factory.mktemp("own"), root)
    topics = {"dog": "a dog barks", "rain": "rain falls all day", SCRIPT: "a script of a play"}
    for name, repeats in (("train", 4), ("test", 2)):
        rows = [
            {"text": f"{text} {number}", "labels": [label]}
            for label, text in topics.items()
            for number in range(repeats)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (workspace.folder / f"{name}.jsonl").write_text(lines)
    (workspace.folder / "odd.txt").write_text("2 5 3\n0,2 0:1.0\n1 9:2.0\n")
    (workspace.folder / "empty.txt").touch()
    files = {"train": "train.jsonl", "test": "test.jsonl"}
    datasets = {
        "good": {"format": "jsonl", **files},
        "missing": {"format": "xc", "train": "nowhere.txt", "test": "nowhere.txt"},
        "malformed": {"format": "xc", "train": "odd.txt", "test": "odd.txt"},
        "empty": {"format": "xc", "train": "empty.txt", "test": "empty.txt"},
    }
    block = {"datasets": list(datasets), "bases": ["LinearSVC"], "variants": ["plain", "PW"]}
    config = {"define": {"datasets": datasets}, "cells": [block], "top_k": 3, "ks": [1, 3]}
    path = workspace.configure(config)
    said = workspace.run("--cores", "2", config=path)
    return workspace, said.stdout + said.stderr, path


def test_cells_of_the_good_dataset_are_ok_and_the_others_say_why(done):
    workspace, _, _ = done
    cells = pd.read_csv(workspace.folder / "results/cells.csv")
    status = cells.drop_duplicates(["dataset", "variant"]).set_index("dataset")
    assert set(status.loc["good", "status"]) == {"ok"}
    assert set(status.loc[["missing", "malformed", "empty"], "status"]) == {"skipped"}
    assert "nowhere.txt" in status.loc["missing", "reason"].iloc[0]
    assert "odd.txt, line 3: feature id 9" in status.loc["malformed", "reason"].iloc[0]
    assert "empty.txt" in status.loc["empty", "reason"].iloc[0]


def test_the_console_says_it_first_and_speaks_of_cells(done):
    _, said, _ = done
    assert "missing: there is no file nowhere.txt; its cells will be skipped" in said
    assert "empty: empty.txt is empty; its cells will be skipped" in said
    assert "good / LinearSVC / PW / seed 0: ok" in said
    assert "malformed / LinearSVC / plain / seed 0: skipped" in said
    assert "2 of 8 cells are ok. The report: results/report.html" in said
    assert "8 cells to go; Snakemake's log: " in said
    for own in ("localrule", "Job stats", "Building DAG"):
        assert own not in said, "Snakemake's own lines are in its log"


def test_failed_lists_and_starts_nothing(done):
    workspace, _, path = done
    (workspace.folder / "results/cells.csv").unlink()
    said = workspace.run("--cores", "1", "failed", config=path).stdout
    assert "6 cell(s) failed" in said
    assert not (workspace.folder / "results/cells.csv").exists()


def test_a_cell_that_is_not_configured_ends_in_what_to_type(done):
    workspace, _, path = done
    target = "results/runs/good/DiSMEC/plain/seed0/run.json"
    said = workspace.run("-n", target, config=path, check=False)
    assert "good / DiSMEC / plain / seed 0 is not a cell of" in said.stdout + said.stderr
    assert "Add it under 'cells:'" in said.stdout + said.stderr


def test_the_report_is_titled_by_the_data_and_does_not_speak_of_papers(done):
    page = done[0].read("results/report.html")
    assert "<title>good, missing, malformed, empty</title>" in page
    shown = page.partition("</style>")[2].partition('<script type="application/json"')[0]
    assert "audit" not in shown.lower()
    assert not [paper.title for paper in load_papers() if paper.title in page]
    assert "odd.txt, line 3" in shown


def test_the_report_holds_in_a_browser(done, browser):
    page = done[0].folder / "results/report.html"
    assert_sound(browser, page)
    assert "overrun" not in browser.driver.title
    names = pd.read_csv(done[0].folder / "results/labels/good.csv")["name"]
    assert SCRIPT in set(names)
