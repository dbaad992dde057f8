"""A failure is a result: bad methods, bad configurations, a killed run."""

import os
import signal
import subprocess
import time
from base64 import urlsafe_b64encode

import pandas as pd
import psutil
import pytest
from bad_methods import MARKER
from workspace import Workspace

from benchmarks.data.prepared import write_unavailable

BAD = {
    "Raises": ("error", "ValueError in fit: the matrix is singular"),
    "Segfaults": ("error", "killed by SIGSEGV in fit"),
    "Sleeps": ("timeout", "over 8 s, stopped in fit"),
    "Allocates": ("oom", "over 700 MB, stopped in fit"),
    "LeavesChild": ("error", "left 1 process(es) behind, which were ended: "),
}
DEFINITIONS = {name: {"class": f"bad_methods:{name}"} for name in [*BAD, "Slow"]}


@pytest.fixture(scope="module")
def bad_run(workspace):
    config = {
        "cells": [{"datasets": ["tiny-bow"], "bases": [*BAD, "popularity"]}],
        "budget": {"wall_s": 8, "memory_mb": 700},
        "top_k": 10,
        "define": {"bases": DEFINITIONS},
    }
    path = workspace.configure(config)
    workspace.run("--cores", "2", config=path)
    return path


@pytest.mark.parametrize("name", BAD)
def test_a_bad_method_ends_as_a_cell_with_its_reason(bad_run, workspace, name):
    cells = pd.read_csv(workspace.folder / "results/cells.csv")
    rows = cells[cells["base"] == name]
    assert len(rows) == 1
    status, reason = BAD[name]
    assert rows["status"].item() == status
    assert rows["reason"].item().startswith(reason)


def test_table_and_report_still_build(bad_run, workspace):
    table = workspace.read("results/tables/relative_improvement.md")
    report = workspace.read("results/report.html")
    for status, reason in BAD.values():
        assert f"{status}: {reason}" in table
        assert reason in report
    assert "popularity" in table


def test_no_process_is_left_behind(bad_run, workspace):
    processes = psutil.process_iter(["cmdline", "cwd"])
    here = [p.info["cmdline"] for p in processes if p.info["cwd"] == str(workspace.folder)]
    assert here == []
    assert not [p for p in psutil.process_iter(["cmdline"]) if MARKER in (p.info["cmdline"] or [])]


def test_failed_lists_them_with_a_command_that_reruns_just_them(bad_run, workspace):
    said = workspace.run("--cores", "1", "failed", config=bad_run).stdout
    for name, (status, reason) in BAD.items():
        assert f"tiny-bow / {name} / plain / seed 0: {status}: {reason}" in said
    command = said[said.index("--forcerun") :].replace("\\\n", " ").split()
    files = [word for word in command if word.startswith("results/runs")]
    assert len(files) == 5
    again = workspace.planned("--forcerun", *files, config=bad_run)
    assert sorted(again["run_cell"]) == sorted(files)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tresholds": 1}, "unknown key 'tresholds'"),
        ({"budget": {"wall_s": -1}}, "budget.wall_s: -1 should be more than 0"),
        (
            {"cells": [{"datasets": ["tiny-bow"], "bases": ["LinearSCV"]}]},
            "did you mean 'LinearSVC'",
        ),
        ({"cells": [{"datasets": ["none"], "bases": ["random"]}]}, "unknown dataset 'none'"),
        (
            {"cells": [{"datasets": ["tiny-bow"], "bases": ["random"], "variants": ["PW"]}]},
            "take the pair out of its block",
        ),
    ],
)
def test_a_wrong_configuration_stops_before_any_job(tmp_path, root, change, message):
    workspace = Workspace(tmp_path, root)
    good = {"cells": [{"datasets": ["tiny-bow"], "bases": ["random"]}]}
    path = workspace.configure({**good, **change})
    done = workspace.run("--cores", "1", config=path, check=False)
    assert done.returncode != 0
    assert message in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_misfit_can_be_a_cell(tmp_path, root):
    workspace = Workspace(tmp_path, root)
    blocks = [{"datasets": ["tiny-bow"], "bases": ["random"], "variants": ["plain", "PW"]}]
    path = workspace.configure({"cells": blocks, "misfits": "cell", "top_k": 10})
    workspace.run("--cores", "2", "results/cells.csv", config=path)
    cells = pd.read_csv(tmp_path / "results/cells.csv")
    row = cells[cells["variant"] == "PW"]
    assert row["status"].item() == "skipped"
    assert row["reason"].item().startswith("not applicable: PW does not fit random")


def test_a_killed_run_is_continued_by_the_same_command(tmp_path, root):
    config = {
        "cells": [
            {"datasets": ["tiny-bow"], "bases": ["popularity", "LinearSVC"]},
            {"datasets": ["tiny-bow"], "bases": ["Slow"], "seeds": [0, 1, 2]},
        ],
        "top_k": 10,
        "define": {"bases": DEFINITIONS},
    }
    killed, undisturbed = (Workspace(tmp_path / n, root) for n in ("killed", "undisturbed"))
    path = killed.configure(config)
    command = killed.command("--cores", "1", config=path)
    process = subprocess.Popen(
        command,
        env=killed.environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    records = killed.folder / "results/runs"
    deadline = time.monotonic() + 240
    # To this depth and no further: folders below a cell's own come and go while it runs.
    cells = "*/*/*/*"
    while len(finished := list(records.glob(f"{cells}/run.json"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # In the middle of the next cell: the last one's scratch folder outlives its record by a
    # moment, in which Snakemake has not yet heard that it is done and would rightly redo it.
    done = {record.parent for record in finished}
    while not {path.parent for path in records.glob(f"{cells}/.scratch")} - done:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert process.poll() is None, "the run ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    stamps = {record: record.stat().st_mtime_ns for record in finished}
    assert list((killed.folder / ".snakemake/locks").iterdir()), "a kill leaves the lock behind"

    killed.run("--cores", "1", config=path)
    assert {record: record.stat().st_mtime_ns for record in finished} == stamps
    assert len(list(records.rglob("run.json"))) == 5

    undisturbed.run("--cores", "2", "results/cells.csv", config=undisturbed.configure(config))
    assert killed.read("results/cells.csv") == undisturbed.read("results/cells.csv")


def test_reading_the_configuration_changes_no_file(tmp_path, root):
    workspace = Workspace(tmp_path, root)
    cells = [{"datasets": ["tiny-bow"], "bases": ["popularity"]}]
    path = workspace.configure({"cells": cells, "top_k": 10})
    workspace.run("--cores", "1", "results/cells.csv", config=path)
    # What a killed run leaves: a lock, the mark of an unfinished file, a dataset not found.
    record = "results/runs/tiny-bow/popularity/plain/seed0/run.json"
    mark = tmp_path / ".snakemake/incomplete" / urlsafe_b64encode(record.encode()).decode()
    mark.write_text('{"external_jobid": null}')
    lock = tmp_path / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(f"{record}\n")
    write_unavailable(tmp_path / "results/data/Lost", "Lost", "there is no such file")

    def tree():
        # Snakemake's own log and its cache of file times are the only things it may write.
        own = {tmp_path / ".snakemake/log", tmp_path / ".snakemake/iocache"}
        status = {p: p.stat() for p in tmp_path.rglob("*") if not own & {p, p.parent}}
        return {p: p.is_dir() or (s.st_size, s.st_mtime_ns) for p, s in status.items()}

    before = tree()
    assert workspace.planned("results/cells.csv", config=path)["run_cell"] == [record]
    assert tree() == before
    workspace.run("--lint", config=path, check=False)
    assert tree() == before
    workspace.run("--cores", "1", "results/cells.csv", config=path)
    assert not mark.exists()
    assert not (tmp_path / "results/data/Lost").exists()


def test_two_runs_at_once_do_not_touch_each_other_s_locks(tmp_path):
    from workflow.runtime.resume import clear_after_kill

    state = tmp_path / ".snakemake"
    (state / "locks").mkdir(parents=True)
    holder = subprocess.Popen(
        [
            *("flock", "--exclusive", str(state / "tailtables.lock")),
            *("sh", "-c", "echo held; sleep 60"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    lock = state / "locks/0.input.lock"
    lock.write_text("results/cells.csv\n")
    assert not clear_after_kill(state, tmp_path)
    assert lock.exists()
    psutil.Process(holder.pid).children()[0].kill()
    holder.kill()
    holder.wait()
