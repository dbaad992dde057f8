"""Junk, damage and forged marks in the state of a run: nothing foreign is deleted, all goes on."""

import json
from base64 import urlsafe_b64encode

import pytest

from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import forget_unavailable, open_prepared, read_meta, write_unavailable
from workflow.runtime import resume
from workflow.runtime.resume import clear_after_kill

DAMAGED = [b"", b"{", b'{"format": 1', b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"\0" * 100]


@pytest.fixture(autouse=True)
def _drop_locks(monkeypatch):
    monkeypatch.setattr(resume, "_held", [])


@pytest.fixture
def place(tmp_path):
    """A working directory with a result, and a folder beside it that is nobody's business."""
    for name in ("work/results/runs", "work/results/deep", "work/figures", "outside/folder"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("work/results/cells.csv", "work/config.yaml", "outside/file", "outside/folder/x"):
        (tmp_path / name).write_text("kept")
    return tmp_path


def mark(place, output, content=b'{"external_jobid": null}'):
    encoded = urlsafe_b64encode(output.encode()).decode()
    parts = [encoded[start : start + 200] for start in range(0, len(encoded), 200)]
    names = [*(f"@{part}" for part in parts[:-1]), parts[-1]] if encoded else ["empty"]
    path = (place / "work/.snakemake/incomplete").joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def clear(place):
    assert clear_after_kill(place / "work/.snakemake", place / "work")


def contents(place):
    found = {p for p in place.rglob("*") if ".snakemake" not in p.parts and not p.is_dir()}
    return {str(p.relative_to(place)) for p in found}


@pytest.mark.parametrize(
    "forged",
    [
        "{outside}/file",
        "{outside}/folder",
        "../outside/file",
        "results/../../outside/file",
        "results/../config.yaml",
        "results/link/file",
        "results/link/folder",
        "./../outside/folder",
        "config.yaml",
        "results",
        "results/",
        ".",
        "..",
        "/",
        "results/a\0b",
        "results/" + "n" * 300,
    ],
)
def test_a_forged_mark_deletes_nothing(place, forged):
    (place / "work/results/link").symlink_to(place / "outside")
    before = contents(place)
    mark(place, forged.format(outside=place / "outside"))
    clear(place)
    assert contents(place) == before


def test_a_link_is_removed_and_not_what_it_leads_to(place):
    (place / "work/results/link").symlink_to(place / "outside/folder")
    made = mark(place, "results/link")
    clear(place)
    assert not (place / "work/results/link").is_symlink()
    assert (place / "outside/folder/x").exists()
    assert not made.exists()


def test_results_may_be_on_another_disk(place):
    (place / "work/results").rename(place / "disk")
    (place / "work/results").symlink_to(place / "disk")
    mark(place, "results/cells.csv")
    clear(place)
    assert not (place / "disk/cells.csv").exists()


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_mark_still_says_which_output_is_unfinished(place, content):
    long = f"results/deep/{'d' * 200}/run.json"
    (place / "work" / long).parent.mkdir()
    (place / "work" / long).write_text("half")
    marks = [mark(place, name, content) for name in (long, "results/cells.csv")]
    clear(place)
    assert not (place / "work" / long).exists()
    assert not (place / "work/results/cells.csv").exists()
    assert not any(made.exists() for made in marks)


def test_junk_beside_the_marks_is_left_alone(place):
    folder = place / "work/.snakemake/incomplete"
    (folder / "@a/@b").mkdir(parents=True)
    names = ["migration_underway", "é", "a b", "====", "@a/@b/c", "x" * 200, ".hidden"]
    for name in names:
        (folder / name).write_bytes(b"\xff")
    (folder / "dangling").symlink_to(place / "nowhere")
    (place / "work/.snakemake/locks/0.lock").mkdir(parents=True)
    before = contents(place)
    clear(place)
    assert contents(place) == before
    assert all((folder / name).exists() for name in names)


def test_a_job_that_a_cluster_still_runs_is_left_to_snakemake(place):
    made = mark(place, "results/cells.csv", b'{"external_jobid": "17"}')
    clear(place)
    assert made.exists()
    assert (place / "work/results/cells.csv").exists()


def test_an_output_that_a_cluster_works_on_is_kept(place):
    (place / "work/results/runs/run.json").write_text("half")
    kept, dead = (mark(place, f"results/{name}") for name in ("runs/run.json", "cells.csv"))
    assert clear_after_kill(place / "work/.snakemake", place / "work", {"results/runs/run.json"})
    assert kept.exists()
    assert (place / "work/results/runs/run.json").exists()
    assert not dead.exists()
    assert not (place / "work/results/cells.csv").exists()


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_meta_is_prepared_again(tmp_path, content):
    folder = ensure("tiny-bow", tmp_path)
    checksum = read_meta(folder)["checksum"]
    write_unavailable(tmp_path / "Lost", "Lost", "there is no such file")
    (tmp_path / "odd/meta.json").mkdir(parents=True)
    (folder / "meta.json").write_bytes(content)
    with pytest.raises(ValueError, match="meta.json: no JSON object.*Delete .* prepared again"):
        open_prepared(folder)
    forget_unavailable(tmp_path)
    assert not (folder / "meta.json").exists()
    assert not (tmp_path / "Lost").exists()
    assert read_meta(ensure("tiny-bow", tmp_path))["checksum"] == checksum


def test_a_run_goes_on_past_damage(workspace, configuration):
    target = "results/cells.csv"
    path = workspace.configure(configuration())
    workspace.run("--cores", "1", target, config=path)
    before = workspace.read(target)
    (workspace.folder / "results/data/mine/meta.json").write_bytes(b'{"format"')
    (workspace.folder / "results/data/other").mkdir()
    (workspace.folder / "results/data/other/meta.json").write_bytes(b"\xff")
    (workspace.folder / ".snakemake/incomplete/junk").write_bytes(b"\xff")
    again = (target, "--forcerun", "results/runs/mine/popularity/plain/seed0/run.json")
    workspace.planned(*again, config=path)
    assert workspace.read("results/data/mine/meta.json") == '{"format"', "a dry run changes nothing"
    workspace.run("--cores", "1", *again, config=path)
    assert workspace.read(target) == before
    assert json.loads(workspace.read("results/data/mine/meta.json"))["n_train"] == 4
