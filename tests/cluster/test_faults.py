"""Faults of a cluster and of the process that submits: nothing is lost, or run without need."""

import collections
import signal
from pathlib import Path

import pytest
from cluster_run import ClusterRun

CELL = "tiny-bow_Gated_plain_0"
ONCE = {
    "rule_prepare_wildcards_tiny-bow": 1,
    f"rule_fit_shard_wildcards_{CELL}": 3,
    f"rule_run_cell_wildcards_{CELL}": 1,
    f"rule_evaluate_wildcards_{CELL}": 1,
    "rule_collect": 1,
}
"""The jobs of a run without faults."""


class GatedRun(ClusterRun):
    """One cell in three shards, each of which waits in its fit until it is let go on."""

    def __init__(self, folder, root, cluster, transcript):
        folder.mkdir(parents=True)
        base = {"class": "gated_methods:Gated", "params": {"folder": str(folder)}}
        config = {
            "cells": [{"datasets": ["tiny-bow"], "bases": ["Gated"], "shards": 3}],
            "budget": {"memory_mb": 1500, "wall_s": 3600},
            "define": {"bases": {"Gated": base}},
            "top_k": 10,
        }
        super().__init__(folder, root, cluster, transcript, config)

    def starts(self):
        """How often the fit of each shard was started."""
        path = self.workspace.folder / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        return collections.Counter(int(line.removeprefix("shard ")) for line in lines)

    def let(self, shard):
        (self.workspace.folder / f"gate shard {shard}").touch()

    def let_all(self):
        (self.workspace.folder / "gates open").touch()

    def jobs_of_shards(self, *states):
        """Shards in some states: number -> job, as their comments say."""
        found = {}
        for job in self.cluster.jobs(*states):
            shown = self.cluster.show(job)
            if f"fit_shard_wildcards_{CELL}" not in shown["Comment"]:
                continue
            # The tasks of the array are numbered as the shards are; another job says its own.
            comment = shown["Comment"].removeprefix(f"rule_fit_shard_wildcards_{CELL}")
            found[int(comment.split("_")[1]) if comment else int(job.split("_")[1])] = job
        return found

    def until_two_fit(self):
        """The node has room for two shards; the third is queued."""
        self.until(lambda: sum(self.starts().values()) == 2, "two shards are fitting")
        self.queue()


@pytest.fixture
def run(tmp_path, root, cluster, transcript):
    made = GatedRun(tmp_path / "run", root, cluster, transcript)
    yield made
    made.let_all()
    made.end(signal.SIGKILL)
    cluster.clear()


@pytest.fixture(scope="module")
def local(tmp_path_factory, root, cluster, transcript):
    """The text of ``cells.csv`` of the same run without a cluster."""
    twin = GatedRun(tmp_path_factory.mktemp("twin") / "run", root, cluster, transcript)
    twin.let_all()
    return twin.locally()


def check(run, local, once=True):
    """All is there, as on one machine; each job was submitted once."""
    run.queue()
    text = run.workspace.read("results/cells.csv")
    assert text.count("\n") > 10
    assert text == local
    run.transcript.says("`results/cells.csv` is that of the same run without a cluster.")
    left = list(Path(run.workspace.folder, ".snakemake/submitted").glob("*.json"))
    assert left == []
    if once:
        assert run.submitted() == ONCE


def test_the_submitting_process_is_killed_and_started_again(run, local):
    run.start("results/cells.csv")
    run.until_two_fit()
    run.end(signal.SIGKILL)
    run.process = None
    run.transcript.says("The submitting process is killed with SIGKILL.")
    done = min(run.starts())
    run.let(done)
    run.until(lambda: done in run.jobs_of_shards("COMPLETED"), f"nobody sees it: shard {done} ends")
    run.start("results/cells.csv")
    run.until(lambda: run.words().count("Taking over job") == 3, "all three are taken over")
    taken = [line for line in run.words().splitlines() if "Taking over" in line]
    run.transcript.shows("grep 'Taking over'", "\n".join(taken))
    run.let_all()
    run.finish()
    check(run, local)
    assert run.starts() == {0: 1, 1: 1, 2: 1}
    run.transcript.says("Each shard was started once, and each job submitted once.")


def test_a_job_is_cancelled_a_node_drained_and_its_daemon_killed(run, local):
    run.start("results/cells.csv")
    run.until_two_fit()
    cancelled, other = sorted(run.starts())
    (third,) = {0, 1, 2} - {cancelled, other}

    job = run.jobs_of_shards("RUNNING")[cancelled]
    run.cluster.ask("scancel", job)
    run.transcript.says(f"`scancel {job}`: shard {cancelled} is ended in its fit.")
    run.until(lambda: third in run.starts(), f"its place is taken by shard {third}")
    run.until(lambda: cancelled in run.jobs_of_shards("PENDING"), "it is submitted again")
    log = run.workspace.folder / f"results/logs/slurm/rule_fit_shard/{CELL}/{job}.log"
    assert str(log) in run.words(), "the message names the log"
    assert log.exists()
    run.queue()

    run.cluster.drain("maintenance")
    run.transcript.says("`scontrol update nodename=node1 state=drain`, with two shards at work.")
    run.let(other)
    run.until(lambda: other in run.jobs_of_shards("COMPLETED"), f"shard {other} ends well on it")
    assert run.cluster.node_state() in ("MIXED+DRAIN", "ALLOCATED+DRAIN", "DRAINING")
    assert cancelled in run.jobs_of_shards("PENDING"), "a drained node takes nothing new"
    run.queue()
    run.cluster.resume()
    run.transcript.says("`scontrol update nodename=node1 state=resume`.")
    run.until(lambda: run.starts()[cancelled] == 2, f"shard {cancelled} fits again")

    run.cluster.kill("slurmd")
    run.transcript.says("slurmd is killed with SIGKILL, with two shards at work.")
    run.until(lambda: "DOWN" in run.cluster.node_state(), "the node is down")
    run.until(lambda: len(run.jobs_of_shards("PENDING")) == 2, "SLURM has both in its queue again")
    run.queue()
    run.cluster.start_node()
    run.transcript.says("slurmd is started again.")
    run.let_all()
    run.finish()
    check(run, local, once=False)

    assert run.starts()[other] == 1, "what had ended well was not run again"
    assert run.submitted().total() == sum(ONCE.values()) + 1, "one more, for the cancelled one"
    run.transcript.says(f"Starts of fits by shard: {dict(sorted(run.starts().items()))}.")
