"""A killed run is continued by the same command.

Snakemake leaves its locks and its marks of unfinished files behind when it is killed, and asks
for two more options before it goes on. Both questions have one answer here: what was under way is
run again; and a lock is stale when nobody holds the file lock that this module takes, which the
kernel drops with its holder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from base64 import urlsafe_b64decode
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

OUTPUT_FOLDERS = ("results", "figures")
_held: list[IO[str]] = []  # open for the life of the process: closing would drop the lock


class BusyError(RuntimeError):
    """Another living process holds the lock."""


def hold(path: Path) -> None:
    """Take a lock for the life of this process, or raise :class:`BusyError`."""
    if any(_is_of(handle, path) for handle in _held):
        return
    handle = path.open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise BusyError(f"{path} is held by another running process") from None
    _keep(handle)


def wait_and_hold(path: Path) -> bool:
    """Take a lock for the life of this process as soon as it is free; True if it was not.

    Jobs of a run whose main process was killed go on working. Whoever runs the same command at
    once waits for them here, and can then take what they made.
    """
    try:
        hold(path)
        return False
    except BusyError:
        holder = path.read_text(encoding="utf-8", errors="replace")[:20].strip() or "unknown"
        print(
            f"{path.parent}: waiting for process {holder}, of an earlier run, which still works "
            "on this cell; what it makes is taken",
            file=sys.stderr,
            flush=True,
        )
    handle = path.open("a")
    fcntl.flock(handle, fcntl.LOCK_EX)
    _keep(handle)
    return True


def held_locks() -> list[int]:
    """File descriptors of the locks of this process, for processes that are to hold them too."""
    return [handle.fileno() for handle in _held]


def _is_of(handle: IO[str], path: Path) -> bool:
    return path.exists() and os.path.samestat(os.fstat(handle.fileno()), path.stat())


def _keep(handle: IO[str]) -> None:
    os.ftruncate(handle.fileno(), 0)
    handle.write(f"{os.getpid()}\n")
    handle.flush()
    _held.append(handle)


def before_execution(
    workflow: Any, prepare: Callable[[Any], None], foretell: Callable[[], None]
) -> None:
    """Have a Snakemake workflow call ``prepare`` first thing when it executes jobs for real, and
    ``foretell`` in a dry run.

    ``prepare`` is given the plugin that executes them.

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
            foretell()
        else:
            prepare(settings["executor_plugin"])
        return execute(**settings)

    workflow.execute = prepared


def clear_after_kill(state: Path, workdir: Path, keep: Container[str] = ()) -> bool:
    """Clear what a dead run left in Snakemake's ``state`` folder; False where a live one has it.

    Unfinished outputs are deleted, as ``--rerun-incomplete`` would, except those to ``keep``: a
    cluster may be at work on them. Marks that carry a cluster's job id are left to Snakemake; so
    are those that stand for no output of this workflow.
    """
    state.mkdir(exist_ok=True)
    try:
        hold(state / "tailtables.lock")
    except BusyError:
        return False
    for lock in filter(Path.is_file, (state / "locks").glob("*.lock")):
        lock.unlink(missing_ok=True)
    marks = state / "incomplete"
    for mark in [path for path in marks.rglob("*") if path.is_file()]:
        unfinished = _unfinished(marks, mark, workdir)
        with suppress(OSError, ValueError):  # the mark stays, and Snakemake says what is unfinished
            if unfinished is None or _on_cluster(mark):
                continue
            if unfinished.relative_to(workdir).as_posix() in keep:
                continue
            if unfinished.is_dir() and not unfinished.is_symlink():
                shutil.rmtree(unfinished)
            else:
                unfinished.unlink(missing_ok=True)
            mark.unlink()
    return True


def clear_scratch(runs: Path) -> None:
    """Remove the scratch folders of cells that nobody works on any more."""
    for scratch in runs.glob("*/*/*/*/.scratch"):
        with suppress(OSError), (scratch.parent / ".lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(scratch)


def _on_cluster(mark: Path) -> bool:
    try:
        return bool(json.loads(mark.read_bytes())["external_jobid"])
    except (ValueError, RecursionError, LookupError, TypeError):
        return False  # the mark itself was cut short by the kill


def _unfinished(marks: Path, mark: Path, workdir: Path) -> Path | None:
    """The output that a mark stands for; None for what is not below the folders of outputs.

    Snakemake spells an output's path in base64, in folders. Whoever can write a mark may name any
    path, so only what the workflow makes is ever deleted: links out of these folders are not
    followed, though each of the folders may itself be a link to another disk.
    """
    encoded = "".join(part.removeprefix("@") for part in mark.relative_to(marks).parts)
    try:
        decoded = Path(urlsafe_b64decode(encoded).decode())
        top, *below = decoded.parts or ("",)
        unfinished = workdir / decoded
        folder = unfinished.parent.resolve()
    except (ValueError, OSError, RuntimeError):  # RuntimeError: links that lead in a circle
        return None
    made_here = top in OUTPUT_FOLDERS and below and ".." not in below
    return unfinished if made_here and folder.is_relative_to((workdir / top).resolve()) else None
