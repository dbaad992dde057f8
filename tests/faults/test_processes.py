"""Nothing escapes: detached processes, shared memory, full disks, temporary files of the dead."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from benchmarks.common import atomic
from benchmarks.common.atomic import atomic_path, sweep, temporary_folder, write_text
from workflow.runtime import cell as cell_module
from workflow.runtime import child, disk, launch, resume
from workflow.runtime.resume import clear_scratch, hold, wait_and_hold
from workflow.runtime.supervisor import KEEPER, Exit, supervise

# A command that starts a process in a session of its own, whose parent ends at once.
DETACHES = """
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]])
    os._exit(0)
time.sleep(600)
"""
SUPERVISES = """
import os, sys
from pathlib import Path
from workflow.runtime.supervisor import supervise
command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
supervise(command, wall_s=600, memory_mb=2000, log=Path(sys.argv[3]), environment=os.environ)
"""


def marked(marker):
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if marker in (process.info["cmdline"] or [])]


def wait_until(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_detached_processes_end_with_a_killed_supervisor(tmp_path, root, number):
    marker = f"marker-{os.getpid()}-{number.name}"
    arguments = [SUPERVISES, DETACHES, marker, str(tmp_path / "log")]
    supervisor = subprocess.Popen([sys.executable, "-c", *arguments], cwd=root)
    sleeper = "import time; time.sleep(600)"
    wait_until(lambda: any(sleeper in p.info["cmdline"] for p in marked(marker)))
    supervisor.send_signal(number)
    supervisor.wait()
    wait_until(lambda: not marked(marker))


def test_detached_processes_end_though_the_keeper_was_killed(tmp_path):
    marker = f"marker-{os.getpid()}-keeper"

    killed = []

    def kill_the_keeper():
        if not killed and any("import time" in p.info["cmdline"][2][:11] for p in marked(marker)):
            # Runners of tests have other children, too.
            alive = [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE]
            (keeper,) = (child for child in alive if str(KEEPER) in child.cmdline())
            killed.append(keeper)
            keeper.kill()

    ended = supervise(
        [sys.executable, "-c", DETACHES, marker],
        wall_s=120,
        memory_mb=1000,
        log=tmp_path / "log",
        environment=os.environ,
        on_poll=kill_the_keeper,
    )
    assert ended.code == -signal.SIGKILL
    assert marked(marker) == []


def run(tmp_path, code, memory_mb):
    return supervise(
        [sys.executable, "-c", code],
        wall_s=120,
        memory_mb=memory_mb,
        log=tmp_path / "log",
        environment=os.environ,
    )


IDLE_FORKS = """
import os, time
held = b"x" * (300 * 2**20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
for _ in range(4):
    os.wait()
"""
SHARED = """
import mmap, time
held = mmap.mmap(-1, 900 * 2**20)
for start in range(0, len(held), 2**20):
    held[start : start + 2**20] = bytes([1]) * 2**20
time.sleep(600)
"""


def test_pages_that_forks_share_count_once(tmp_path):
    """Resident sizes add up to 1,500 MB; what is held is 300."""
    ended = run(tmp_path, IDLE_FORKS, memory_mb=700)
    assert (ended.code, ended.stopped_for) == (0, None)
    assert 300 < ended.peak_mb < 700


def test_shared_anonymous_memory_is_seen(tmp_path):
    ended = run(tmp_path, SHARED, memory_mb=700)
    assert ended.stopped_for == "memory"


def test_what_forks_write_to_counts_for_each(tmp_path):
    writes = IDLE_FORKS.replace("        time.sleep(1.5)", "        held += b'y'; time.sleep(600)")
    ended = run(tmp_path, writes, memory_mb=700)
    assert ended.stopped_for == "memory"


def test_a_full_disk_in_a_method_is_a_cell_with_that_reason(run_odd):
    record = run_odd("FillsDisk")
    assert record["status"] == "error"
    assert record["reason"] == (
        "no space left on the disk, in fit; free some and run the cell again"
    )


@pytest.fixture
def run_odd(request):
    return request.getfixturevalue("run")


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_too_full_for_the_outcome_is_told_by_the_exit_code(tmp_path, monkeypatch):
    (tmp_path / "spec.json").write_text("{}")
    monkeypatch.setattr(child, "faulthandler", Mock())  # pytest has replaced stderr
    monkeypatch.setattr(child, "run", lambda *_: {})
    monkeypatch.setattr(child, "write_json", full)
    assert child.main([str(tmp_path / "spec.json")]) == disk.EXIT_CODE
    ended = Exit(disk.EXIT_CODE, None, 1.0, 1.0, 1.0)
    outcome = launch._explain(ended, tmp_path, {})
    assert outcome["reason"].startswith("no space left on the disk, in start")


def test_a_disk_that_is_full_when_results_are_written_leaves_a_record(run_odd, cell, monkeypatch):
    whole = cell_module.finish
    calls = []

    def full_at_first(*arguments):
        calls.append(arguments)
        return full() if len(calls) == 1 else whole(*arguments)

    monkeypatch.setattr(cell_module, "finish", full_at_first)
    record = run_odd("Odd", how="wide-types")
    assert record["status"] == "error"
    assert record["reason"].startswith("no space left on the disk, in writing the results")
    assert not (cell / ".scratch").exists()


def test_temporary_files_of_dead_processes_are_swept(tmp_path, monkeypatch):
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from benchmarks.common.atomic import atomic_folder, atomic_path\n"
        "a = atomic_path(Path(sys.argv[1], 'deep/cells.csv')); a.__enter__()\n"
        "b = atomic_folder(Path(sys.argv[1], 'data')); (b.__enter__() / 'x').write_text('x')\n"
        "os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path.cwd())
    assert done.returncode == 9
    write_text(tmp_path / "deep/.cells.csv.sha256", "a seal")
    write_text(tmp_path / "deep/.mine.tmp", "somebody's")
    with atomic_path(tmp_path / "live.csv") as living:
        swept = sweep(tmp_path)
        assert living.exists()
    assert [path.parent.name for path in swept if path.suffix == ".csv"] == ["deep"]
    assert len(swept) == 2
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".cells.csv.sha256", ".mine.tmp", "live.csv"]


def test_temporary_files_of_other_machines_are_left_for_two_days(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_machine", lambda: "abcdef")
    with temporary_folder(tmp_path, "x") as made:
        monkeypatch.undo()
        assert sweep(tmp_path) == []
        old = time.time() - 3 * 24 * 3600
        os.utime(made, (old, old))
        assert sweep(tmp_path) == [made]


def test_scratch_goes_unless_somebody_works_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "_held", [])
    for name in ("live", "dead"):
        (tmp_path / f"d/b/{name}/seed0/.scratch").mkdir(parents=True)
    hold(tmp_path / "d/b/live/seed0/.lock")
    (tmp_path / "d/b/dead/seed0/.lock").write_text("1\n")
    clear_scratch(tmp_path)
    assert (tmp_path / "d/b/live/seed0/.scratch").exists()
    assert not (tmp_path / "d/b/dead/seed0/.scratch").exists()


def test_a_lock_is_waited_for_and_its_holder_named(tmp_path, capfd):
    held = ["flock", "--exclusive", str(tmp_path / ".lock"), "sh", "-c", "echo held; sleep 1"]
    holder = subprocess.Popen(held, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    (tmp_path / ".lock").write_text("4711\n")
    assert wait_and_hold(tmp_path / ".lock")
    assert "waiting for process 4711, of an earlier run" in capfd.readouterr().err
    assert not wait_and_hold(tmp_path / ".lock"), "this process has it"
    holder.wait()
