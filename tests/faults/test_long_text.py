"""Long lines and long messages: what is kept of them is bounded."""

import os
import sys

import pytest

from workflow.runtime import logs
from workflow.runtime.logs import LOG_BYTES, bounded, shorten, tail
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
    # What is written in the instant in which the log is cut may be lost; the record has it.
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
    shorten(tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == content


def test_bounded_says_how_long_the_text_was():
    assert bounded("a" * 10, 10) == "a" * 10
    assert bounded("a" * 11, 10) == "a" * 10 + " ... (11 characters)"
