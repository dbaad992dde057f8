"""What a run does at its start about jobs that an earlier process of it gave to a scheduler."""

from __future__ import annotations

import sys
from typing import Any

from workflow.runtime.submitted import Submissions


def continue_submitted(workflow: Any, plugin: Any) -> None:
    """Have the jobs that were submitted and not seen to end looked at, by whoever runs jobs now.

    Each that the targets need is planned, even if its outputs are there: without a record of its
    parameters a result could not be told from a stale one. On SLURM the executor then finds out
    whether it is queued, at work or done; elsewhere it is run anew. What the targets do not need
    (``failed`` and ``plan`` need nothing) stays as it is, for a later run.
    """
    submissions = Submissions()
    earlier = submissions.read()
    on_slurm = plugin.name == "slurm"
    if on_slurm:
        from workflow.runtime.slurm import Executor  # its plugin is an optional package

        plugin.executor = Executor
    if not earlier:
        return
    build = workflow._build_dag

    def build_with_forced() -> None:
        # Not by `forcerun`, which makes a target of each file that it names.
        workflow.dag.forcefiles.update(outputs[0] for outputs in earlier)
        build()
        if not on_slurm:
            planned = {str(path) for job in workflow.dag.needrun_jobs() for path in job.output}
            _run_here(submissions, [outputs for outputs in earlier if outputs[0] in planned])

    workflow._build_dag = build_with_forced
    if not on_slurm:
        # What a job on the cluster left unfinished is made anew with the rest of it.
        workflow.dag_settings.force_incomplete = True


def _run_here(submissions: Submissions, jobs: list[tuple[str, ...]]) -> None:
    """Forget jobs that this process now runs itself, and say how to take them off the queue."""
    if jobs:
        print(
            f"{len(jobs)} jobs of an earlier run were given to SLURM and are now run here. If "
            f"they are still in its queue: scancel --name {submissions.run_name()}",
            file=sys.stderr,
        )
    for outputs in jobs:
        submissions.remove(outputs)


def kept_outputs() -> set[str]:
    """Outputs that a job on a cluster may be at work on."""
    return {path for outputs in Submissions().read() for path in outputs}
