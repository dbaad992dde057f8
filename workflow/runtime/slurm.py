"""Snakemake's SLURM executor, changed where a run of ours needs more than it promises.

Three things differ. The shards of a cell are one array job whose tasks each run their own command
and ask for the cell's own budget; the plugin's arrays take the budget of the first job of a rule
for all of them, and check its outputs at the end of every task. And jobs outlive the process that
submitted them: the same command, started again, finds them and does not submit them twice. And a
job runs in its batch step: no job of ours has several steps, and a step of its own would start
Snakemake once more.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_slurm import Executor as PluginExecutor
from snakemake_executor_plugin_slurm.job_status_query import get_min_job_age
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import (
    validate_or_get_slurm_job_id,
    validate_slurm_extra,
)
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from workflow.runtime.submitted import Submissions, digest_of, newest

LOGS = Path("results/logs/slurm")
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""States after which SLURM runs a job no more; in all others it is queued or at work."""
CLIENT_S = 60.0  # SLURM's own clients give up earlier


class Executor(PluginExecutor):
    """Submits the jobs of a run, those of an earlier process of it excepted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.submissions = Submissions()
        prefix = self.workflow.executor_settings.jobname_prefix
        self.run_uuid = "_".join(filter(None, [prefix, self.submissions.run_name()]))
        if not self.workflow.executor_settings.logdir:
            self.slurm_logdir = LOGS.absolute()
        self.earlier = self.submissions.read()
        self._cancel_unknown()
        self.with_arrays = self._tells_tasks_apart()

    def additional_general_args(self) -> str:
        """Of the command of each job: it runs there and then."""
        return "--executor local"

    def run_jobs(self, jobs: Sequence[Any]) -> None:
        """Take over what is on the cluster already; submit the rest, shards of a cell together."""
        shards = defaultdict(list)
        for job in jobs:
            if self._take_over(job):
                continue
            if self.with_arrays and not job.is_group() and job.rule.name in self.array_jobs:
                shards[job.rule.name, _cell(job)].append(job)
            else:
                self._submit_job(job)
        for group in shards.values():
            group.sort(key=_shard)  # a task of an array has, where it can, its shard's number
            for start in range(0, len(group), self.max_array_size):
                self._submit_shards(group[start : start + self.max_array_size])

    def report_job_submission(self, job_info: SubmittedJobInfo, register_job: bool = True) -> None:
        """Remember the job before anybody can be told of it."""
        job, log = job_info.job, str((job_info.aux or {}).get("slurm_logfile", ""))
        self.submissions.add(map(str, job.output), job_info.external_jobid, digest_of(job), log)
        super().report_job_submission(job_info, register_job)

    def handle_job_success(self, job: Any) -> None:
        """Called when Snakemake has checked and recorded what the job made."""
        super().handle_job_success(job)
        self.submissions.remove(map(str, job.output))

    def handle_job_error(self, job: Any) -> None:
        """Called when Snakemake has removed what the job left."""
        super().handle_job_error(job)
        self.submissions.remove(map(str, job.output))

    def cancel_submitted(self) -> None:
        """End every job of this run that is queued or at work."""
        self._cancel(*(submitted.jobid for submitted in self.submissions.read().values()))

    def _cancel(self, *jobs: str) -> None:
        if not jobs:
            return
        try:
            _ask("scancel", "--quiet", *jobs)
        except WorkflowError as error:  # it may have ended meanwhile; whatever runs holds its lock
            self.logger.warning(str(error))

    def _tells_tasks_apart(self) -> bool:
        """Whether the state of one task of an array can be seen.

        squeue names each task, but forgets it ``MinJobAge`` seconds after its end; below three
        times the pause between two looks the plugin asks sacct, by an id that tasks share.
        """
        settings = self.workflow.executor_settings
        pause = settings.init_seconds_before_status_checks
        if settings.status_command == "squeue" and (get_min_job_age() or 0) >= 3 * pause:
            return True
        if self.array_jobs:
            self.logger.warning(
                "Shards are submitted one by one: array tasks can be told apart only with "
                f"slurm-status-command: squeue and a MinJobAge of {3 * pause} s or more."
            )
        return False

    def _states(self) -> dict[str, str]:
        """The jobs of this directory that SLURM knows: id -> state, tasks of arrays apart."""
        asked = ["--name", self.run_uuid, "--states=all", "--array", "--noheader"]
        lines = _ask("squeue", *asked, "--format=%i|%T").splitlines()
        return dict(line.strip().split("|", 1) for line in lines if "|" in line)

    def _cancel_unknown(self) -> None:
        """Cancel jobs that were submitted just as their process died: nobody waits for them."""
        known = {s.jobid for s in self.earlier.values()}
        unknown = [i for i, s in self._states().items() if s not in ENDED and i not in known]
        if unknown:
            self.logger.warning(f"Cancelling jobs that nobody waits for: {' '.join(unknown)}")
            self._cancel(*unknown)

    def _take_over(self, job: Any) -> bool:
        """Whether an earlier process submitted this very job and it need not run again."""
        earlier = self.earlier.pop(tuple(map(str, job.output)), None)
        if earlier is None:
            return False
        state = self._states().get(earlier.jobid)
        alive = state is not None and state not in ENDED
        info = SubmittedJobInfo(job, earlier.jobid, {"slurm_logfile": Path(earlier.log)})
        if digest_of(job) != earlier.request or newest(job.input) > earlier.submitted:
            if alive:
                self.logger.warning(f"Cancelling job {earlier.jobid}: what it works on has changed")
                self._cancel(earlier.jobid)
            return False
        if alive or state == "COMPLETED":
            self.logger.warning(f"Taking over job {earlier.jobid} ({state}) of an earlier process")
            self.run_job_pre(job)
            super().report_job_submission(info)  # as it was submitted: it is remembered already
            return True
        if state is None and self._is_made(job):
            self.logger.warning(f"Taking what job {earlier.jobid} of an earlier process made")
            self.run_job_pre(job)
            self.report_job_success(info)
            return True
        return False

    def _is_made(self, job: Any) -> bool:
        """Whether outputs are there and whole: a job that ends well removes their marks."""
        marked = self.workflow.async_run(self.workflow.persistence.incomplete(job))
        return not marked and all(Path(path).exists() for path in job.output)

    def _submit_shards(self, jobs: Sequence[Any]) -> None:
        if len(jobs) == 1:
            self._submit_job(jobs[0])
            return
        for job in jobs:
            self.run_job_pre(job)
        self._job_submission_executor.submit(self._run_array, jobs)

    def _run_array(self, jobs: Sequence[Any]) -> None:
        try:
            infos = self._submit_array(jobs)
        except (OSError, subprocess.CalledProcessError, WorkflowError) as error:
            words = getattr(error, "stderr", None) or str(error)
            for job in jobs:
                self.report_job_error(SubmittedJobInfo(job), msg=f"sbatch failed: {words}\n")
            return
        for info in infos:
            self.report_job_submission(info)

    def _submit_array(self, jobs: Sequence[Any]) -> list[SubmittedJobInfo]:
        """Submit jobs of one budget as the tasks 0, 1, ... of an array."""
        first = jobs[0]
        validate_slurm_extra(first)
        commands = Path(tempfile.mkdtemp(prefix="array.", dir=self.tmpdir))
        for task, job in enumerate(jobs):
            (commands / f"{task}.sh").write_text(self.format_job_exec(job) + "\n", encoding="utf-8")
        logs = self.slurm_logdir / f"rule_{first.name}" / _cell(first)
        logs.mkdir(parents=True, exist_ok=True)
        request = {
            "run_uuid": self.run_uuid,
            "slurm_logfile": logs / "%A_%a.log",
            "comment_str": f"rule_{first.name}_wildcards_{_cell(first)}",
            "account": next(self.get_account_arg(first)),
            "partition": self.get_partition_arg(first),
            "workdir": self.workflow.workdir_init,
        }
        settings = self.workflow.executor_settings
        call = get_submit_command(first, request, settings, self._failed_nodes)
        call += f"{set_gres_string(first)} --array=0-{len(jobs) - 1}"
        self.logger.debug(f"sbatch call: {call}")
        script = f'#!/bin/sh\n. {shlex.quote(str(commands))}/"$SLURM_ARRAY_TASK_ID".sh\n'
        # Without a limit of time: given up, the array could still be accepted, and unknown.
        done = subprocess.run(
            shlex.split(call), input=script, capture_output=True, text=True, check=True
        )
        array = validate_or_get_slurm_job_id(done.stdout.strip().split(";")[0], done.stdout)
        self.logger.info(f"{len(jobs)} shards of {_cell(first)} are SLURM's array job {array}.")
        return [
            SubmittedJobInfo(
                job, f"{array}_{task}", {"slurm_logfile": logs / f"{array}_{task}.log"}
            )
            for task, job in enumerate(jobs)
        ]


def _shard(job: Any) -> int:
    return int(job.wildcards.get("shard", 0))


def _cell(job: Any) -> str:
    """Which cell a shard is of, as part of a file's name."""
    names = {k: v for k, v in job.wildcards.items() if k not in ("shard", "of")}
    return "_".join(names.values()).replace("/", "_")


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CLIENT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkflowError(f"{shlex.join(command)}: {error}") from error
    if done.returncode:
        raise WorkflowError(f"{shlex.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
