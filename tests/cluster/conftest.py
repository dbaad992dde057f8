"""A SLURM cluster for these tests alone, and a transcript of what was done to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cluster_run import ClusterRun
from one_node import Cluster, reason_not_to_run
from transcript import Transcript

ASKED = "TAILTABLES_CLUSTER"
"""Set by `make cluster-test`; other runs of the tests start no daemons."""
TRANSCRIPT = "TAILTABLES_TRANSCRIPT"


@pytest.fixture(scope="session")
def transcript(root: Path) -> Transcript:
    path = os.environ.get(TRANSCRIPT)
    return Transcript({str(root): "TREE"}, root / path if path else None)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, transcript: Transcript) -> Iterator[Cluster]:
    if not os.environ.get(ASKED):
        pytest.skip("starts daemons: `make cluster-test` runs it")
    reason = reason_not_to_run()
    if reason is None and find_spec("snakemake_executor_plugin_slurm") is None:
        reason = "not installed: the extra `cluster` of this project"
    if reason is not None:  # it was asked for: a run without a test must not look well
        pytest.fail(reason)
    started = Cluster(tmp_path_factory.mktemp("slurm"))
    transcript.names[started.host] = "node1"
    try:
        started.start()
        transcript.shows("sinfo", started.ask("sinfo"))
        yield started
    finally:
        started.stop()


@pytest.fixture
def started(
    tmp_path: Path, root: Path, cluster: Cluster, transcript: Transcript
) -> Iterator[Callable[[Any], ClusterRun]]:
    """Makes runs, and ends what they left."""
    made: list[ClusterRun] = []

    def make(config: Any) -> ClusterRun:
        made.append(ClusterRun(tmp_path / f"run{len(made)}", root, cluster, transcript, config))
        return made[-1]

    yield make
    for run in made:
        run.end(signal.SIGKILL)
    cluster.clear()


@pytest.fixture(autouse=True)
def _titled(request: pytest.FixtureRequest, transcript: Transcript) -> None:
    transcript.begins(request.node.name.removeprefix("test_").replace("_", " "))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    written = getattr(item, "funcargs", {}).get("transcript")
    if report.when == "call" and written is not None:
        written.says(f"The test {report.outcome}.")
