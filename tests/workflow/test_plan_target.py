"""The target `plan`: prices before a run, better ones after it, and nothing is run for them."""

import re
from base64 import urlsafe_b64encode

import pandas as pd
import pytest
from workspace import Workspace

from workflow.runtime.submitted import FOLDER, Submissions

CONFIG = {
    "cells": [
        {"datasets": ["tiny-bow"], "bases": ["LinearSVC"], "variants": ["plain", "PW"]},
        {"datasets": ["Amazon-670K"], "bases": ["LinearSVC"]},
        {"datasets": ["EUR-Lex-HTTN"], "bases": ["Joint"]},
    ]
}


@pytest.fixture(scope="module")
def place(tmp_path_factory, root):
    place = Workspace(tmp_path_factory.mktemp("plan"), root)
    place.configure(CONFIG)
    return place


def plan_of(place, *more):
    config = place.folder / "config.yaml"
    said = place.run("--cores", "1", "plan", *more, config=config).stdout
    return said, pd.read_csv(place.folder / "results/plan.csv")


def test_prices_come_before_any_run_and_follow_what_ran(place):
    said, before = plan_of(place)
    assert not (place.folder / "results/runs").exists()
    assert (place.folder / "results/plan.html").stat().st_size > 1000
    # Of LinearSVC nothing is shipped; Joint is scaled from the reference's runs on other data.
    assert before["basis"].tolist() == ["guess", "guess", "guess", "scaled"]
    assert "times the work of RCV1-8K-test / Joint-e2 / plain" in before["source"].iloc[3]
    assert "EUR-Lex-HTTN (1 cells): The authors released code and data for AAPD only." in said
    assert "Amazon-670K (1 cells): not prepared" in said

    config = place.configure({"cells": CONFIG["cells"][:1]})
    place.run("--cores", "1", "results/runs.csv", config=config)
    config = place.configure(CONFIG)
    _, after = plan_of(place, "--config", "plan_hours=1")
    assert after["basis"].tolist() == ["measured here", "measured here", "scaled", "scaled"]
    runs = pd.read_csv(place.folder / "results/runs.csv")
    took = runs["cpu_s"] - runs["warm_up_cpu_s"]
    assert after["seconds"].tolist()[:2] == pytest.approx(took.tolist())
    assert runs["n_train"].tolist() == [300, 300]
    assert "times the work of tiny-bow / LinearSVC / plain" in after["source"].iloc[2]
    assert after["within_hours"].tolist()[:3] == [True, True, False]


def test_a_dry_run_names_what_is_missing(place):
    config = place.configure(CONFIG)
    done = place.run("--dry-run", "--cores", "1", config=config)
    lines = (done.stdout + done.stderr).splitlines()
    missing = [line for line in lines if "missing here: " in line]
    assert [line.partition("here: ")[2].split()[0] for line in missing] == [
        "Amazon-670K",
        "EUR-Lex-HTTN",
    ]


def test_a_job_that_is_out_on_a_cluster_is_run_only_for_a_target_that_needs_it(place):
    config = place.configure({"cells": CONFIG["cells"][:1]})
    cell = "results/runs/tiny-bow/LinearSVC/plain/seed0"
    place.run("--cores", "1", f"{cell}/run.json", config=config)
    outputs = [f"{cell}/{name}" for name in ("run.json", "predictions.npz", "norms.npz")]
    submissions = Submissions(place.folder / FOLDER)
    submissions.add(outputs, "1", "abc", "log")
    # The mark that the submitting process made, with the scheduler's number of the job.
    name = urlsafe_b64encode(outputs[1].encode()).decode()
    mark = place.folder / ".snakemake/incomplete" / name
    mark.parent.mkdir(exist_ok=True)
    mark.write_text('{"external_jobid": "1"}')
    before = (place.folder / cell / "run.json").read_bytes()
    targets = ("plan", "failed", "audit")
    done = place.run("--cores", "1", "--verbose", *targets, config=config)
    planned = re.findall(r"^(\w+) +\d+$", done.stdout + done.stderr, re.MULTILINE)
    assert set(planned) == {*targets, "total"}
    assert mark.exists()
    assert (place.folder / cell / "run.json").read_bytes() == before
    assert submissions.read().keys() == {tuple(outputs)}
    done = place.run("--cores", "1", f"{cell}/run.json", config=config)
    assert "1 jobs of an earlier run" in done.stderr
    assert (place.folder / cell / "run.json").read_bytes() != before
    assert submissions.read() == {}
