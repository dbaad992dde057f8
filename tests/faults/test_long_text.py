"""Long lines and long messages: what is kept of them is bounded."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflow.runtime import logs
from workflow.runtime.logs import LOG_BYTES, BoundedLog, Recorder, bounded, tail
from workflow.runtime.supervisor import supervise

MB = 2**20


def test_a_line_of_200_mb_and_a_message_of_5_mb_leave_a_small_record(run, files, cell):
    record = run("Talks", printed=200 * MB, message=5 * MB)
    assert record["status"] == "error"
    assert record["reason"].startswith("ValueError in fit: mmm")
    assert record["reason"].endswith(f" ... ({5 * MB + len('ValueError in fit: '):,} characters)")
    assert (cell / "run.json").stat().st_size < 20_000
    log = (files / "log").read_bytes()
    assert b"x" * MB in log[: 2 * MB]  # after the lines on data and parameters
    assert log.endswith(b"m" * MB + b"\n")
    assert b"[left out here: this log was over" in log
    assert len(log) <= LOG_BYTES


def test_a_short_reason_and_log_are_kept_whole(run, files):
    record = run("Talks", message=30)
    assert record["reason"] == "ValueError in fit: " + "m" * 30
    assert record["log_tail"] == (files / "log").read_text().splitlines()[-20:]
    assert "the last words" in record["log_tail"]


WRITES_UNTIL_SHORTENED = """
import os, sys, time
size, number = 0, 0
while (now := os.path.getsize(sys.argv[1])) >= size:
    size = now
    print(f"{number:03}" + "." * 996, flush=True)
    number += 1
    time.sleep(0.02)
print("shortened", flush=True)
"""


def test_a_log_is_shortened_while_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "LOG_BYTES", 8000)
    ended = supervise(
        [sys.executable, "-c", WRITES_UNTIL_SHORTENED, str(tmp_path / "log")],
        wall_s=60,
        memory_mb=500,
        log=tmp_path / "log",
        environment=os.environ,
    )
    found = (tmp_path / "log").read_text()
    assert (ended.code, ended.stopped_for) == (0, None)
    assert found.startswith("000...")
    assert found.endswith("...\nshortened\n")
    assert "[left out here: this log was over 8,000 bytes]" in found
    assert len(found) <= 8000


@pytest.mark.parametrize("content", [b"", b"\n", b"one\ntwo", b"\xff\xfe\n" * 100_000])
def test_the_tail_of_any_log(tmp_path, content):
    (tmp_path / "log").write_bytes(content)
    whole = content.decode("utf-8", errors="replace").splitlines()
    assert tail(tmp_path / "log") == whole[-20:]
    assert tail(tmp_path / "gone") == []


@given(st.lists(st.integers(0, 1300), max_size=30))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_log_is_whole_or_has_its_first_half_and_its_end(tmp_path, monkeypatch, lengths):
    monkeypatch.setattr(logs, "LOG_BYTES", 1000)
    log, whole = BoundedLog(tmp_path / "log"), b""
    for number, length in enumerate(lengths):
        text = bytes([65 + number]) * length
        log.write(text)
        whole += text
        found = (tmp_path / "log").read_bytes()  # followed while it grows
        assert len(found) <= 1000
        head, note, end = found.partition(b"\n[left out here: this log was over 1,000 bytes]\n")
        if not note:
            assert found == whole
            continue
        assert head == whole[:500]
        assert len(end) >= 250
        assert whole.endswith(end)
    log.close()


def test_recording_ends_though_a_stranger_holds_the_pipe(tmp_path):
    """A process that is no descendant of the command may have been handed its output."""
    with Recorder(tmp_path / "log") as recorder:
        os.write(recorder.writer, b"first\n")
        stranger = subprocess.Popen(["yes", "more"], stdout=recorder.writer)
        deadline = time.monotonic() + 60
        while b"more" not in (tmp_path / "log").read_bytes():
            assert time.monotonic() < deadline
    assert stranger.wait() == -signal.SIGPIPE
    assert (tmp_path / "log").read_bytes().startswith(b"first\nmore\n")


@pytest.mark.parametrize("log", ["log", "/dev/full"])
def test_a_full_disk_stops_nobody_who_prints(tmp_path, log):
    ended = supervise(
        [sys.executable, "-c", "for _ in range(300): print('x' * 1000)"],
        wall_s=60,
        memory_mb=500,
        log=tmp_path / log,
        environment=os.environ,
    )
    assert (ended.code, ended.stopped_for) == (0, None)
    assert log == "/dev/full" or (tmp_path / log).stat().st_size == 300 * 1001


def test_what_a_full_disk_swallowed_is_said(tmp_path, monkeypatch):
    write, full = BoundedLog._write, [OSError(28, "No space left on device")] * 2

    def write_or_fail(log, text):
        if b"two" in text and full:
            raise full.pop()
        write(log, text)

    monkeypatch.setattr(BoundedLog, "_write", write_or_fail)
    recorder = Recorder(tmp_path / "log")
    for text in (b"one\n", b"two\n", b"two\n", b"three\n"):
        recorder._keep(text)
    noted = (
        "one\n\n[left out here: the log could not be written (No space left on device)]\nthree\n"
    )
    with recorder:
        assert (tmp_path / "log").read_text() == noted


PRINTS_ON = """
import os, sys
open(sys.argv[1] + "/started", "w").close()
try:
    while True:
        print("x" * 1000)
except BaseException as error:
    open(sys.argv[1] + "/" + type(error).__name__, "w").close()
"""
SUPERVISES = """
import os, sys
from pathlib import Path
from workflow.runtime.supervisor import supervise
command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
log = Path(sys.argv[2], "log")
supervise(command, wall_s=600, memory_mb=2000, log=log, environment=os.environ)
"""


def test_who_prints_does_not_notice_the_supervisors_death(tmp_path, root):
    """It is ended, but not by the closed pipe, of which it could still make a result."""
    arguments = [SUPERVISES, PRINTS_ON, str(tmp_path)]
    supervisor = subprocess.Popen([sys.executable, "-c", *arguments], cwd=root)
    deadline = time.monotonic() + 120
    while not (tmp_path / "log").exists() or (tmp_path / "log").stat().st_size < MB:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    supervisor.kill()
    supervisor.wait()
    while any(str(tmp_path) in (p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "started"]
    assert set((tmp_path / "log").read_bytes()[: 2**19]) == set(b"x\n")


def test_bounded_says_how_long_the_text_was():
    assert bounded("a" * 10, 10) == "a" * 10
    assert bounded("a" * 11, 10) == "a" * 10 + " ... (11 characters)"
