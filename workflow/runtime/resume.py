"""A killed run is continued by the same command.

Snakemake leaves its locks and its marks of unfinished files behind when it is killed, and asks
for two more options before it goes on. Both questions have one answer here: what was under way is
run again; and a lock is stale when nobody holds the file lock that this module takes, which the
kernel drops with its holder.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

_held: list[IO[str]] = []  # open for the life of the process: closing would drop the lock


class BusyError(RuntimeError):
    """Another living process holds the lock."""


def hold(path: Path) -> None:
    """Take a lock for the life of this process, or raise :class:`BusyError`."""
    handle = path.open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise BusyError(f"{path} is held by another running process") from None
    _held.append(handle)


def before_execution(workflow: Any, prepare: Callable[[], None]) -> None:
    """Have a Snakemake workflow call ``prepare`` first thing when it executes jobs for real.

    Neither of Snakemake's own places will do. While the Snakefile is read it is not known yet
    whether this is a run, a dry run or a lint; and ``onstart`` is called after stale locks and
    unfinished files have been refused. ``Workflow.execute`` is what every run goes through, and
    nothing else but a dry run, which deletes nothing: there, unfinished files are planned to be
    made again, as the run would do.
    """
    execute = workflow.execute

    def prepared(**settings: Any) -> Any:
        if settings["executor_plugin"].common_settings.dryrun_exec:
            workflow.dag_settings.force_incomplete = True
        else:
            prepare()
        return execute(**settings)

    workflow.execute = prepared


def clear_after_kill(state: Path, workdir: Path) -> bool:
    """Clear what a dead run left in Snakemake's ``state`` folder; False where a live one has it.

    Unfinished outputs are deleted, as ``--rerun-incomplete`` would. Jobs that a cluster may still
    be running are left to Snakemake, which finds them by their id.
    """
    state.mkdir(exist_ok=True)
    try:
        hold(state / "tailtables.lock")
    except BusyError:
        return False
    for lock in (state / "locks").glob("*.lock"):
        lock.unlink(missing_ok=True)
    marks = state / "incomplete"
    for mark in [path for path in marks.rglob("*") if path.is_file()]:
        try:
            on_cluster = json.loads(mark.read_text(encoding="utf-8")).get("external_jobid")
        except json.JSONDecodeError:
            on_cluster = None  # the mark itself was cut short by the kill
        if not on_cluster:
            unfinished = _unfinished(marks, mark, workdir)
            if unfinished.is_dir():
                shutil.rmtree(unfinished)
            else:
                unfinished.unlink(missing_ok=True)
            mark.unlink()
    return True


def _unfinished(marks: Path, mark: Path, workdir: Path) -> Path:
    """The output that a mark stands for: Snakemake spells its path in base64, in folders."""
    encoded = "".join(part.removeprefix("@") for part in mark.relative_to(marks).parts)
    return workdir / urlsafe_b64decode(encoded).decode()
