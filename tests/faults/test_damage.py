"""One byte changed or cut anywhere in a finished run: the same tables, or an error that says where.

The jobs are those that Snakemake plans, with all that it would hand them; their scripts are called
in this process, each if it reads the damaged file. Which files a job reads is what it was seen to
open, whether or not it declares them.
"""

import csv
import itertools
import json
import os
import pickle
import random
import runpy
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import jobs_of_run
import pytest
from workspace import Workspace

from benchmarks.common.digests import DamagedError
from benchmarks.data.errors import DataError
from benchmarks.data.prepared import forget_unavailable
from benchmarks.data.verify import MODE_VARIABLE, RUN_VARIABLE
from workflow.runtime import provenance
from workflow.runtime.seals import remove_damaged

CONFIG = {
    "cells": [
        {"datasets": ["tiny-bow"], "bases": ["LinearSVC"], "variants": ["plain", "PW"]},
        {"datasets": ["tiny-bow"], "bases": ["popularity"]},
    ],
    "top_k": 10,
    "ks": [1, 3, 5],
}
NAMED = (DamagedError, DataError)
CELL_FILES = ("run.json", "predictions.npz", "norms.npz", "metrics.csv", "instance.npz")
PREPARED = ("meta.json", "train.labels.indices.npy", "test.labels.indptr.npy")
LINEAR = "results/runs/tiny-bow/LinearSVC"
MEASURED = ("prepare", "run_cell")
"""Scripts whose files hold times; that they refuse damaged data is tested by itself."""
runs = itertools.count()
opened = []
"""The files that are opened, while somebody wants to know."""
watched = []


def watch(event, arguments):
    if watched and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        opened.append(os.path.abspath(os.fsdecode(arguments[0])))


sys.addaudithook(watch)


@contextmanager
def watching():
    opened.clear()
    watched.append(True)
    try:
        yield opened
    finally:
        watched.clear()


@pytest.fixture(scope="module")
def finished(tmp_path_factory, root):
    """A finished run, the bytes of all its files, and the jobs that made its tables."""
    workspace = Workspace(tmp_path_factory.mktemp("finished"), root)
    config = workspace.configure(CONFIG)
    workspace.run("--cores", "2", config=config)
    folder = workspace.folder
    made = SimpleNamespace(
        folder=folder,
        files=contents(folder),
        jobs=jobs(workspace, config),
        scripts=root / "workflow/scripts",
    )
    record = json.loads((folder / LINEAR / "PW/seed0/run.json").read_text())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        # The report names the commit: that of the run, whatever is committed meanwhile.
        commit = {"commit": record["commit"], "dirty": record["dirty"]}
        monkeypatch.setattr(provenance, "commit", lambda: commit)
        for job in made.jobs:
            new_run(monkeypatch)
            with watching():
                assert called(made, job) is None
                job.reads = {os.path.relpath(path, folder) for path in opened} & set(made.files)
                job.reads -= set(job.snakemake.output)
        yield made


def jobs(workspace, config):
    file = workspace.folder / "jobs.pickle"
    command = [sys.executable, jobs_of_run.__file__, workspace.root / "Snakefile", config, file]
    subprocess.run(command, cwd=workspace.folder, env=workspace.environment, check=True)
    planned = pickle.loads(file.read_bytes())
    return [
        SimpleNamespace(script=script, snakemake=handed, reads=set())
        for script, handed in planned
        if script not in MEASURED
    ]


def contents(folder):
    kept = [p for top in ("results", "figures") for p in (folder / top).rglob("*") if p.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(kept)
        if "logs" not in path.parts and path.suffix != ".lock" and path.name != ".lock"
    }


def new_run(monkeypatch):
    monkeypatch.setenv(RUN_VARIABLE, f"run {next(runs)}")
    monkeypatch.setenv(MODE_VARIABLE, "first")


def called(finished, job):
    """Call a job's script; what its error says, if it ends with one that is meant for users."""
    script = str(finished.scripts / f"{job.script}.py")
    try:
        runpy.run_path(script, {"snakemake": job.snakemake})
    except NAMED as error:
        return str(error)
    return None


def judge(finished, name, content, monkeypatch):
    """Damage one file, and see what every job that reads it does; the tree is then mended."""
    monkeypatch.chdir(finished.folder)
    new_run(monkeypatch)
    Path(name).write_bytes(content)
    outcomes = set()
    try:
        for job in finished.jobs:
            if name not in job.reads:
                continue
            said = called(finished, job)
            if said is not None:
                file = os.path.basename(name).removeprefix(".").removesuffix(".sha256")
                assert file in said or os.path.dirname(name) in said, "another file is named"
                assert "Make it again" in said or "run the same command" in said
                outcomes.add("named")
                continue
            for path in job.snakemake.output:
                same = Path(path).read_bytes() == finished.files[path]
                assert same or path == name, f"{name} was damaged, and {path} has other numbers"
            outcomes.add("same")
        remade = remove_damaged([Path("results"), Path("figures")])
        forget_unavailable("results/data")
        if Path(name).name == "meta.json":
            outcomes.add("remade" if not Path(name).exists() else "same")
        product = name in finished.files and f"{parent_seal(name)}" in finished.files
        if product and content != finished.files[name] and "named" not in outcomes:
            assert outcomes <= {"same"}
            assert Path(name) in remade or Path(name).read_bytes() == finished.files[name]
    finally:
        for path, whole in finished.files.items():
            if not Path(path).exists() or Path(path).read_bytes() != whole:
                Path(path).write_bytes(whole)
    return outcomes


def parent_seal(name):
    return os.path.join(os.path.dirname(name), f".{os.path.basename(name)}.sha256")


def test_an_undamaged_tree_gives_the_same_bytes(finished):
    """Every table, figure and page comes out as the workflow wrote it, the report among them."""
    made = {path for job in finished.jobs for path in job.snakemake.output}
    assert {"results/cells.csv", "results/report.html", "figures/weight_norms.svg"} <= made
    folder, files = finished.folder, finished.files
    assert [name for name in made if (folder / name).read_bytes() != files[name]] == []


def test_every_file_is_looked_at_by_a_job_or_has_a_seal(finished):
    """So no file of a run is left out below, nor by what a damaged tree is held against."""
    read = {name for job in finished.jobs for name in job.reads}
    assert {f"results/data/tiny-bow/{name}" for name in PREPARED} <= read
    for cell in ("LinearSVC/plain", "LinearSVC/PW", "popularity/plain"):
        folder = f"results/runs/tiny-bow/{cell}/seed0"
        assert {f"{folder}/{name}" for name in (*CELL_FILES, "evaluation.json")} <= read
    rest = set(finished.files) - read
    seals = {parent_seal(name) for name in finished.files} & set(finished.files)
    unsealed = {name for name in rest - seals if parent_seal(name) not in finished.files}
    # Which code prepared the data; where it is another, they are prepared again.
    assert unsealed == {"results/data/tiny-bow/code.txt"}


def test_a_byte_changed_or_cut_anywhere(finished, monkeypatch):
    """Every file once, and some again by chance; not hypothesis, whose shrinking would call
    the jobs for minutes where the file and the position say all there is."""
    rng = random.Random(15)
    names = sorted(finished.files)
    for name in [*names, *rng.choices(names, k=30)]:
        whole = finished.files[name]
        position = rng.randrange(len(whole)) if whole else 0
        damaged = bytearray(whole)
        if whole and rng.random() < 0.6:
            damaged[position] ^= rng.randint(1, 255)
        else:
            del damaged[position:]
        judge(finished, name, bytes(damaged), monkeypatch)


@pytest.mark.parametrize("file", [*CELL_FILES, "evaluation.json"])
def test_a_file_of_another_cell_is_named(finished, monkeypatch, file):
    mine, other = (f"{LINEAR}/{variant}/seed0/{file}" for variant in ("PW", "plain"))
    outcomes = judge(finished, mine, finished.files[other], monkeypatch)
    assert "named" in outcomes


def test_a_whole_folder_of_another_cell_is_named(finished, monkeypatch):
    monkeypatch.chdir(finished.folder)
    mine, other = (Path(LINEAR, variant, "seed0") for variant in ("PW", "plain"))
    for file in [*CELL_FILES, "evaluation.json"]:
        shutil.copy(other / file, mine / file)
    collect = next(job for job in finished.jobs if job.script == "collect")
    try:
        with pytest.raises(DamagedError, match=r"PW/seed0/run.json: the record of another cell"):
            runpy.run_path(str(finished.scripts / "collect.py"), {"snakemake": collect.snakemake})
    finally:
        for file in [*CELL_FILES, "evaluation.json"]:
            (mine / file).write_bytes(finished.files[str(mine / file)])


@pytest.mark.parametrize("table", ["cells.csv", "intervals.csv", "compare/pw.csv"])
def test_a_table_cut_at_a_row_is_named_and_made_again(finished, monkeypatch, table):
    """The hardest cut: what is left is a whole table, with fewer rows."""
    name = f"results/{table}"
    lines = finished.files[name].splitlines(keepends=True)
    cut = b"".join(lines[: len(lines) // 2])
    assert list(csv.reader(cut.decode().splitlines()))
    assert judge(finished, name, cut, monkeypatch) == {"named"}
    monkeypatch.chdir(finished.folder)
    Path(name).write_bytes(cut)
    try:
        assert remove_damaged([Path("results")]) == [Path(name)]
    finally:
        for path in (name, parent_seal(name)):
            Path(path).write_bytes(finished.files[path])


def test_a_run_makes_a_damaged_table_again(finished, root):
    workspace = Workspace(finished.folder, root)
    for name in ("results/cells.csv", "results/tables/relative_improvement.md"):
        (finished.folder / name).write_bytes(finished.files[name][:-20])
    done = workspace.run("--cores", "2", config=workspace.configure(CONFIG))
    assert "results/cells.csv is not what was written; it is made again" in done.stderr
    for name in ("results/cells.csv", "results/tables/relative_improvement.md"):
        assert (finished.folder / name).read_bytes() == finished.files[name]
