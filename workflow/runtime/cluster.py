"""What a run does at its start about jobs that an earlier process of it gave to a scheduler."""

from __future__ import annotations

import sys
from typing import Any

from workflow.runtime.submitted import Submissions


def continue_submitted(workflow: Any, plugin: Any) -> None:
    """Have the jobs that were submitted and not seen to end looked at, by whoever runs jobs now.

    Each is planned, even if its outputs are there: without a record of its parameters a result
    could not be told from a stale one. On SLURM the executor then finds out whether it is queued,
    at work or done; elsewhere it is run anew.
    """
    submissions = Submissions()
    earlier = submissions.read()
    forced = {outputs[0] for outputs in earlier}
    workflow.dag_settings.forcerun = {*workflow.dag_settings.forcerun, *forced}
    if plugin.name == "slurm":
        from workflow.runtime.slurm import Executor  # its plugin is an optional package

        plugin.executor = Executor
        return
    if earlier:
        print(
            f"{len(earlier)} jobs of an earlier run were given to SLURM and are now run here. If "
            f"they are still in its queue: scancel --name {submissions.run_name()}",
            file=sys.stderr,
        )
    for outputs in earlier:
        submissions.remove(outputs)


def kept_outputs() -> set[str]:
    """Outputs that a job on a cluster may be at work on."""
    return {path for outputs in Submissions().read() for path in outputs}
