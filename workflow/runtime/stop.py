"""Signals to the main process of a run: the first waits for the jobs at work, the second ends them.

Snakemake by itself waits without saying for what, and offers no way to stop waiting but to kill
it, which leaves its jobs at work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import psutil


class Stop:
    """The handler of SIGINT and SIGTERM of one run."""

    def __init__(self, workflow: Any) -> None:
        self.workflow = workflow
        self.signals = 0
        self.graceful: Callable[[Any], None] | None = None

    def install(self) -> None:
        """Take over both signals. Snakemake sets its own handler of SIGTERM when it begins to
        schedule jobs: that one is replaced by a call of this one."""
        from snakemake.scheduling.job_scheduler import JobScheduler

        graceful = JobScheduler.exit_gracefully

        def exit_gracefully(scheduler: Any, *_: Any) -> None:
            if self.received():
                graceful(scheduler)

        JobScheduler.exit_gracefully = exit_gracefully
        self.graceful = graceful
        signal.signal(signal.SIGINT, self.interrupted)

    def interrupted(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGINT: Snakemake stops scheduling, and waits, on a KeyboardInterrupt.

        On a cluster it would cancel all jobs instead, so there it is stopped as by SIGTERM.
        """
        if not self.received():
            return
        if self._executor_of_cluster() is None or self.graceful is None:
            raise KeyboardInterrupt
        self.graceful(self.workflow.scheduler)

    def received(self) -> bool:
        """Say what is waited for, or end it; True for the first signal."""
        self.signals += 1
        if self.signals == 1:
            names = ", ".join(self._at_work()) or "nothing"
            _say(f"Stopping. Waiting for what is at work: {names}. A second signal ends it.")
            return True
        _say("Ending what is at work; it leaves no result and is run again by the same command.")
        end_jobs()
        executor = self._executor_of_cluster()
        if executor is not None:
            executor.cancel_submitted()
        return False

    def _executor_of_cluster(self) -> Any:
        """What can cancel this run's jobs on a cluster; None where they are processes here."""
        executor = getattr(getattr(self.workflow, "scheduler", None), "_executor", None)
        return executor if hasattr(executor, "cancel_submitted") else None

    def _at_work(self) -> list[str]:
        # A list of what was read in one go: the set changes in other threads.
        running = list(getattr(getattr(self.workflow, "scheduler", None), "running", ()))
        return sorted(str(next(iter(job.output), job)) for job in running)


def end_jobs() -> None:
    """End the scripts that this process runs; their supervisors' keepers end the rest."""
    children = psutil.Process().children()
    with suppress(psutil.NoSuchProcess):
        # A shell runs each script: of both, so that no shell waits for a script that is gone.
        children += [script for shell in list(children) for script in shell.children()]
    for process in children:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)


def _say(text: str) -> None:
    os.write(2, f"{text}\n".encode())  # print is not safe in a handler of signals
