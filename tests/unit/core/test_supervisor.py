"""The supervisor ends what it started, whatever that does."""

import os
import sys
import time

import psutil
import pytest

from methods.interface import DivergedError
from workflow.runtime import child
from workflow.runtime.supervisor import supervise


def run(tmp_path, code, wall_s=60.0, memory_mb=1000.0, **options):
    return supervise(
        [sys.executable, "-c", code],
        wall_s=wall_s,
        memory_mb=memory_mb,
        log=tmp_path / "log",
        environment=os.environ,
        **options,
    )


def alive(marker):
    return [p for p in psutil.process_iter(["cmdline"]) if marker in (p.info["cmdline"] or [])]


def test_a_good_command_is_measured(tmp_path):
    code = "print('hello'); x = bytearray(200 * 2**20); y = sum(i * i for i in range(3_000_000))"
    ended = run(tmp_path, code)
    assert (ended.code, ended.stopped_for, ended.left_behind) == (0, None, [])
    assert (tmp_path / "log").read_text() == "hello\n"
    assert ended.peak_mb > 200
    assert 0 < ended.cpu_s <= ended.wall_s + 1


def test_a_crash_is_told_by_its_signal(tmp_path):
    ended = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert ended.signal.name == "SIGSEGV"


def test_a_command_that_ignores_the_polite_signal_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("workflow.runtime.supervisor.GRACE_S", 0.5)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    ended = run(tmp_path, code, wall_s=1.0)
    assert ended.stopped_for == "timeout"
    assert ended.signal.name == "SIGKILL"


def test_memory_counts_the_whole_tree(tmp_path):
    """Three processes of 150 MB are over a limit that each of them keeps."""
    code = (
        "import subprocess, sys, time\n"
        "hog = 'import time; x = b\"x\" * (150 * 2**20); time.sleep(600)'\n"
        "[subprocess.Popen([sys.executable, '-c', hog]) for _ in range(3)]\n"
        "time.sleep(600)"
    )
    ended = run(tmp_path, code, memory_mb=400.0)
    assert ended.stopped_for == "memory"


def test_one_huge_allocation_fails_at_once(tmp_path):
    code = "try: bytearray(40 * 2**30)\nexcept MemoryError: print('refused')"
    ended = run(tmp_path, code, memory_mb=500.0)
    assert ended.code == 0
    assert "refused" in (tmp_path / "log").read_text()


RESERVE = (
    "import mmap, time\n"
    "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE\n"
    "held = mmap.mmap(-1, 64 * 2**30, flags=flags, prot={prot})\n"
    "print('reserved', flush=True)\n"
)


@pytest.mark.parametrize(("prot", "refuse"), [("0", True), ("0", False), ("3", False)])
def test_address_space_that_is_only_reserved_is_not_memory(tmp_path, prot, refuse):
    """CUDA reserves ranges far beyond any limit: without access, or (3) writable."""
    ended = run(tmp_path, RESERVE.format(prot=prot), memory_mb=500.0, refuse_allocations=refuse)
    assert (ended.code, ended.stopped_for) == (0, None)
    assert (tmp_path / "log").read_text() == "reserved\n"
    assert ended.peak_mb < 500


def test_reserved_memory_counts_once_it_is_used(tmp_path):
    fill = "for i in range(0, 700 * 2**20, 4096):\n    held[i] = 1\ntime.sleep(600)"
    code = RESERVE.format(prot="3") + fill
    ended = run(tmp_path, code, memory_mb=500.0, refuse_allocations=False)
    assert ended.stopped_for == "memory"


@pytest.mark.parametrize("detach", [True, False])
def test_a_child_that_outlives_its_parent_is_ended_and_named(tmp_path, detach):
    marker = f"marker-{os.getpid()}-{detach}"
    code = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{marker}'],"
        f" start_new_session={detach})"
    )
    ended = run(tmp_path, code)
    assert ended.code == 0
    assert marker in ended.left_behind[0]
    assert alive(marker) == []


def test_helpers_that_end_by_themselves_are_not_held_against_it(tmp_path):
    code = "import subprocess; subprocess.Popen(['sleep', '0.3'])"
    assert run(tmp_path, code).left_behind == []


def test_the_tree_dies_with_an_interrupted_supervisor(tmp_path):
    marker = f"marker-{os.getpid()}-interrupt"
    code = f"import time; time.sleep(600); '{marker}'"
    started = time.monotonic()

    def interrupt_once_running():
        if time.monotonic() - started > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        supervise(
            [sys.executable, "-c", code, marker],
            wall_s=60,
            memory_mb=1000,
            log=tmp_path / "log",
            environment=os.environ,
            on_poll=interrupt_once_running,
        )
    assert alive(marker) == []


def test_what_has_no_minimum_is_a_status_of_its_own(tmp_path, monkeypatch):
    def diverge(*_):
        raise DivergedError("it falls without bound")

    monkeypatch.setattr(child, "_run", diverge)
    outcome = child.run({"device": "cpu"}, tmp_path)
    assert (outcome["status"], outcome["reason"]) == ("diverged", "it falls without bound")
