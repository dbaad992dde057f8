"""Signals to the main process of a run, and a kill that is followed at once by the same command."""

import json
import os
import signal
import subprocess
import time

import psutil
import pytest
from workspace import Workspace

TARGET = "results/cells.csv"
RECORD = "results/runs/tiny-bow/Waits/plain/seed0/run.json"


class Run:
    """A run of one cell that fits until it is let go on."""

    def __init__(self, folder, root):
        self.workspace = Workspace(folder, root)
        self.gate = folder / "gate"
        method = {"class": "waiting_methods:Waits", "params": {"file": str(self.gate)}}
        cells = [{"datasets": ["tiny-bow"], "bases": ["Waits"]}]
        config = {"cells": cells, "top_k": 10, "define": {"bases": {"Waits": method}}}
        self.config = self.workspace.configure(config)
        self.started = []

    @property
    def environment(self):
        environment = self.workspace.environment
        environment["PYTHONPATH"] += os.pathsep + os.path.dirname(__file__)
        return environment

    def start(self):
        said = (self.workspace.folder / f"said{len(self.started)}").open("w+")
        process = subprocess.Popen(
            self.workspace.command("--cores", "1", TARGET, config=self.config),
            env=self.environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        process.said = lambda: (self.workspace.folder / said.name).read_text()
        self.started.append(process)
        return process

    def wait_for(self, condition):
        deadline = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < deadline, self.started[-1].said()
            time.sleep(0.05)

    def until_fitting(self):
        progress = self.workspace.folder / RECORD.replace("run.json", ".scratch/progress.json")
        self.wait_for(lambda: progress.exists() and '"fit"' in progress.read_text())
        self.wait_for(self.helpers)

    def helpers(self):
        """The detached processes of the cell that live."""
        found = psutil.process_iter(["cmdline"])
        mark = str(self.gate)
        return [p for p in found if (p.info["cmdline"] or [""])[-1] == mark]


@pytest.fixture
def run(tmp_path, root):
    made = Run(tmp_path, root)
    yield made
    made.gate.touch()  # whatever failed, nothing waits on
    for process in made.started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_says_what_is_waited_for_and_the_second_ends_it(run, number):
    process = run.start()
    run.until_fitting()
    process.send_signal(number)
    run.wait_for(lambda: f"Waiting for what is at work: {RECORD}" in process.said())
    assert process.poll() is None
    assert run.helpers()
    process.send_signal(number)
    assert process.wait(timeout=120) != 0
    run.wait_for(lambda: not run.helpers())
    assert not (run.workspace.folder / RECORD).exists(), "a stopped cell is no failed cell"


def test_what_a_killed_run_left_at_work_is_waited_for_and_taken(run):
    first = run.start()
    run.until_fitting()
    first.kill()  # the main process alone: its job goes on
    first.wait()
    (helper,) = run.helpers()
    second = run.start()
    run.wait_for(lambda: "of an earlier run, which still works on this cell" in second.said())
    assert run.helpers() == [helper], "the cell was not started again"
    run.gate.touch()
    assert second.wait(timeout=240) == 0, second.said()
    record = json.loads((run.workspace.folder / RECORD).read_text())
    assert record["status"] == "ok"
    assert run.helpers() == []


@pytest.mark.parametrize("reads", [("--dry-run", "--cores", "1", TARGET), ("--lint",)])
def test_reading_the_workflow_leaves_a_living_run_alone(run, reads):
    """What looks like the rest of a dead run (marks, locks, scratch) is the living one's."""
    process = run.start()
    run.until_fitting()
    folder = run.workspace.folder
    cell = (folder / RECORD).parent

    def state():
        kept = [".snakemake/incomplete", ".snakemake/locks", cell / ".scratch"]
        found = [path for place in kept for path in (folder / place).rglob("*")]
        return sorted(str(p) for p in found if "progress" not in p.name)

    before = state()
    assert any(".scratch" in path for path in before)
    assert any("/locks/" in path for path in before)
    assert any("/incomplete/" in path for path in before)
    command = run.workspace.command(*reads, config=run.config)
    subprocess.run(command, env=run.environment, capture_output=True, timeout=240)
    assert state() == before
    assert run.helpers()
    run.gate.touch()
    assert process.wait(timeout=240) == 0, process.said()
    assert json.loads((folder / RECORD).read_text())["status"] == "ok"
