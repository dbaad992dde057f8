"""One byte changed or cut anywhere in a finished run: the same tables, or an error that says where.

The steps of the workflow are its own scripts, called in this process with what Snakemake would
hand them; each is called if it reads the damaged file.
"""

import csv
import itertools
import os
import random
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from workspace import Workspace

from benchmarks.common.digests import DamagedError
from benchmarks.data.errors import DataError
from benchmarks.data.prepared import forget_unavailable
from benchmarks.data.verify import MODE_VARIABLE, RUN_VARIABLE
from benchmarks.papers.artefacts import all_artefacts
from benchmarks.papers.spec import paper_folders
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
runs = itertools.count()


class Files(list):
    """Files of a job, in order and by name."""

    def __init__(self, *unnamed, **named):
        several = {key: [v] if isinstance(v, str) else list(v) for key, v in named.items()}
        super().__init__([*unnamed, *(path for paths in several.values() for path in paths)])
        self.named = named
        self.__dict__.update(named)

    def get(self, name, default=None):
        return self.named.get(name, default)


def step(script, reads, makes, **params):
    """A job of the workflow: what it is given, and ``reads``, all that it may look at."""
    log = f"results/logs/{script}.log"
    return SimpleNamespace(
        script=script, input=reads, output=makes, log=[log], wildcards=SimpleNamespace(),
        params=SimpleNamespace(**params), resources=SimpleNamespace(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory, root):
    """A finished run, the bytes of all its files, and the steps that made its tables."""
    workspace = Workspace(tmp_path_factory.mktemp("finished"), root)
    config = workspace.configure(CONFIG)
    workspace.run("--cores", "2", config=config)
    folder = workspace.folder
    return SimpleNamespace(
        folder=folder,
        files=contents(folder),
        steps=steps(config),
        scripts=root / "workflow/scripts",
    )


def contents(folder):
    kept = [p for top in ("results", "figures") for p in (folder / top).rglob("*") if p.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(kept)
        if "logs" not in path.parts and path.suffix != ".lock" and path.name != ".lock"
    }


def steps(config):
    names = [("LinearSVC", "plain"), ("LinearSVC", "PW"), ("popularity", "plain")]
    cells = [f"results/runs/tiny-bow/{base}/{variant}/seed0" for base, variant in names]
    of = {name: [f"{cell}/{name}" for cell in cells] for name in CELL_FILES}
    data = "results/data/tiny-bow/meta.json"
    made = []
    for cell in cells:
        reads = Files(data=data, record=f"{cell}/run.json", predictions=f"{cell}/predictions.npz")
        makes = Files(metrics=f"{cell}/metrics.csv", instance=f"{cell}/instance.npz")
        makes.append(f"{cell}/evaluation.json")
        made.append(step("evaluate", reads, makes, ks=[1, 3, 5], threshold=None))
    tables = {"cells": "results/cells.csv", "runs": "results/runs.csv"}
    reads = Files(records=of["run.json"], metrics=of["metrics.csv"])
    made.append(step("collect", reads, Files(**tables)))
    made.append(step("intervals", Files(*of["instance.npz"]), Files("results/intervals.csv")))
    made.append(step("bins", Files(*of["instance.npz"]), Files("results/bins.csv")))
    named = Files(data=data, predictions=of["predictions.npz"], norms=of["norms.npz"])
    made.append(step("labels", named, Files("results/labels/tiny-bow.csv")))
    made[-1].wildcards.dataset = "tiny-bow"
    papers = list(paper_folders())
    for paper in papers:
        reads = Files(**tables, instances=of["instance.npz"], data=[data], papers=[])
        makes = Files(csv=f"results/compare/{paper}.csv", page=f"results/compare/{paper}.html")
        made.append(step("compare", reads, makes, papers={}))
        made[-1].wildcards.paper = paper
    summary = "results/compare/summary.csv"
    compared = Files(*(f"results/compare/{paper}.csv" for paper in papers))
    made.append(step("compare_summary", compared, Files(summary), papers=papers))
    drawn = []
    for paper, declared in all_artefacts().items():
        for trained in (False, True):
            artefacts = [a for a in declared if a.needs_cells == trained]
            files = [path for artefact in artefacts for path in artefact.files]
            drawn += files
            if not artefacts:
                continue
            seeds = [*of["norms.npz"], *of["predictions.npz"]] if trained else []
            whole = [*tables.values(), "results/intervals.csv"] if trained else []
            page = {"page": [f"results/tables/{paper}.html"]} if trained else {}
            params = {"paper": paper, "papers": {}, "trained": trained, "settings": {}}
            reads = Files(data, *whole, cells=seeds)
            made.append(step("artefacts", reads, Files(*files, **page), ks=[1, 3, 5], **params))
    others = {"intervals": "results/intervals.csv", "bins": "results/bins.csv"}
    others |= {"labels": ["results/labels/tiny-bow.csv"], "audit": "results/audit.csv"}
    reads = Files(*drawn, *compared, **tables, **others)
    made.append(step("report", reads, Files("results/report.html"), papers={}, own_data=[]))
    made[-1].resources.configfiles = str(config)
    return made


def looks_at(job, name):
    """Whether a job reads a file: one of its inputs, or one that lies beside it in a cell's or a
    dataset's folder, or an input's seal."""
    if name in job.output:
        return False  # written anew, whatever it was
    inputs = set(job.input)
    if job.script == "compare" and name.endswith(".npy"):
        return False  # it looks at meta.json alone
    folders = {os.path.dirname(p) for p in inputs if "/runs/" in p or "/data/" in p}
    parent, base = os.path.split(name)
    sealed = os.path.join(parent, base.removeprefix(".").removesuffix(".sha256"))
    marks = {
        f"{os.path.dirname(folder)}/.{os.path.basename(folder)}.verified.json" for folder in folders
    }
    return name in inputs or parent in folders or sealed in inputs or name in marks


def called(finished, job):
    """Call a step; what its error says, if it ends with one that is meant for users."""
    try:
        runpy.run_path(str(finished.scripts / f"{job.script}.py"), {"snakemake": job})
    except NAMED as error:
        return str(error)
    return None


def judge(finished, name, content, monkeypatch):
    """Damage one file, and see what every step that reads it does; the tree is then mended."""
    monkeypatch.chdir(finished.folder)
    monkeypatch.setenv(RUN_VARIABLE, f"run {next(runs)}")
    monkeypatch.setenv(MODE_VARIABLE, "first")
    Path(name).write_bytes(content)
    outcomes = set()
    try:
        for job in finished.steps:
            if not looks_at(job, name):
                continue
            said = called(finished, job)
            if said is not None:
                file = os.path.basename(name).removeprefix(".").removesuffix(".sha256")
                assert file in said or os.path.dirname(name) in said, "another file is named"
                assert "Make it again" in said or "run the same command" in said
                outcomes.add("named")
                continue
            for path in job.output:
                # Pictures hold their date, and the report more of a job than is imitated here.
                if not path.endswith((".png", ".svg", "report.html")):
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


def test_an_undamaged_tree_gives_the_same_bytes(finished, monkeypatch):
    """The steps here are those of the run: every table comes out as the workflow wrote it."""
    made = {path for job in finished.steps for path in job.output}
    tables = {name for name in finished.files if name.endswith(("cells.csv", "intervals.csv"))}
    assert tables <= made
    name = "results/runs/tiny-bow/LinearSVC/PW/seed0/run.json"
    assert judge(finished, name, finished.files[name], monkeypatch) == {"same"}
    data = "results/data/tiny-bow/meta.json"
    assert judge(finished, data, finished.files[data], monkeypatch) == {"same"}


def test_a_byte_changed_or_cut_anywhere(finished, monkeypatch):
    """Every file once, and some again by chance; not hypothesis, whose shrinking would call
    the steps for minutes where the file and the position say all there is."""
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
    mine, other = (f"results/runs/tiny-bow/LinearSVC/{v}/seed0/{file}" for v in ("PW", "plain"))
    outcomes = judge(finished, mine, finished.files[other], monkeypatch)
    assert "named" in outcomes


def test_a_whole_folder_of_another_cell_is_named(finished, monkeypatch):
    monkeypatch.chdir(finished.folder)
    mine, other = (Path(f"results/runs/tiny-bow/LinearSVC/{v}/seed0") for v in ("PW", "plain"))
    for file in [*CELL_FILES, "evaluation.json"]:
        shutil.copy(other / file, mine / file)
    collect = next(job for job in finished.steps if job.script == "collect")
    try:
        with pytest.raises(DamagedError, match=r"PW/seed0/run.json: the record of another cell"):
            runpy.run_path(str(finished.scripts / "collect.py"), {"snakemake": collect})
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
