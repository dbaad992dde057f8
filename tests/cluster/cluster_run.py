"""A run of the workflow whose jobs go to the cluster, and the same run on this machine."""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from one_node import Cluster
from transcript import Transcript
from workspace import Workspace

HERE = Path(__file__).parent
PROFILE = "workflow/profiles/slurm"
END_S = 1500
"""Until a run of a few jobs must have ended, on a busy machine."""


class ClusterRun:
    """A working directory, the process that submits from it, and what its jobs noted."""

    def __init__(
        self, folder: Path, root: Path, cluster: Cluster, transcript: Transcript, config: Any
    ) -> None:
        self.workspace = Workspace(folder, root)
        self.cluster = cluster
        self.transcript = transcript
        transcript.names[str(folder)] = "RUN"
        self.config = config if isinstance(config, Path) else self.workspace.configure(config)
        self.process: subprocess.Popen[str] | None = None
        self.said = folder / "said"

    @property
    def environment(self) -> dict[str, str]:
        environment = self.workspace.environment
        path = os.pathsep.join([environment["PYTHONPATH"], str(HERE)])
        return {**environment, "PYTHONPATH": path}

    def command(self, *arguments: str) -> list[str]:
        profile = str(self.workspace.root / PROFILE)
        quick = ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "5"]
        return self.workspace.command("--profile", profile, *quick, *arguments, config=self.config)

    def start(self, *arguments: str) -> None:
        """Start the process that submits the jobs."""
        self.transcript.says(f"`snakemake --profile {PROFILE} {' '.join(arguments)}` is started.")
        with self.said.open("a") as said:
            self.process = subprocess.Popen(
                self.command(*arguments),
                env=self.environment,
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def finish(self) -> None:
        """Wait for the submitting process, which must end well."""
        assert self.process is not None
        code = self.process.wait(END_S)
        assert code == 0, self.words()
        self.transcript.says("The run is finished.")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the submitting process, if it lives; its jobs are the cluster's."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(END_S)

    def words(self) -> str:
        return self.said.read_text()

    def locally(self, *arguments: str) -> str:
        """The text of ``cells.csv`` of the same run without a cluster, in a folder of its own."""
        twin = Workspace(self.workspace.folder.with_name("local"), self.workspace.root)
        done = subprocess.run(
            twin.command("--cores", "1", "results/cells.csv", *arguments, config=self.config),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=END_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return twin.read("results/cells.csv")

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something, while the submitting process and the daemons live."""
        deadline = time.monotonic() + END_S
        while not condition():
            assert self.process is None or self.process.poll() is None, self.words()
            assert time.monotonic() < deadline, f"waited in vain until {what}\n{self.words()}"
            time.sleep(0.2)
        self.transcript.says(f"{what[0].upper()}{what[1:]}.")

    def queue(self) -> None:
        """Put what SLURM knows of this run's jobs into the transcript."""
        form = "--format=%.6i %.9T %.9P %.8m %.10l %k"
        asked = ["--states=all", "--array", "--sort=i", form]
        self.transcript.shows("squeue --states=all --array", self.cluster.ask("squeue", *asked))

    def submitted(self) -> collections.Counter[str]:
        """How many jobs SLURM was given, by rule and wildcards; a task of an array is one."""
        return collections.Counter(self.cluster.jobs().values())
