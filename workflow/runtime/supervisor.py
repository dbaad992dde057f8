"""Run a command under a wall clock and a memory limit, and end its whole process tree.

The supervised process stays in the caller's process group, so that a signal to the group (the
terminal's interrupt, a scheduler's kill) reaches it too; it dies with the supervisor in any case.
Descendants are found by parentage, not by group: the supervisor adopts orphans, so a process
that detached itself is still its descendant.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from workflow.runtime.logs import shorten

POLL_S = 0.05
GRACE_S = 5.0
SETTLE_S = 1.0  # helpers of multiprocessing end by themselves just after their parent
# Address space that is reserved but never touched (thread stacks, arenas) is not memory used.
RESERVED_MB = 1024
NAME_LENGTH = 200

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Exit:
    """How a supervised command ended.

    ``stopped_for`` is ``timeout`` or ``memory`` when the supervisor ended it. ``left_behind``
    names processes that outlived the command and were ended.
    """

    code: int
    stopped_for: str | None
    wall_s: float
    cpu_s: float
    peak_mb: float
    left_behind: list[str] = field(default_factory=list)

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that killed the command, if one did."""
        return signal.Signals(-self.code) if self.code < 0 else None


def supervise(
    command: Sequence[str],
    *,
    wall_s: float,
    memory_mb: float,
    log: Path,
    environment: Mapping[str, str],
    refuse_allocations: bool = True,
    on_poll: Callable[[], None] = lambda: None,
) -> Exit:
    """Run a command to its end, or to the end of its budget.

    Memory is the private memory of the whole tree, sampled: pages of memory-mapped files can be
    dropped by the system at any time and do not count, nor does address space that is reserved
    only. ``refuse_allocations`` also has the kernel refuse what would go far over the limit at
    once. It is set on writable private mappings (RLIMIT_DATA), not on the address space
    (RLIMIT_AS), so that reserving without access is free; yet CUDA maps its ranges in ways that
    differ between drivers, so for it the sampled limit is to be the only one.
    """
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tree = _Tree()
    # Until it executes the command, the child is a copy of this process: a peak that is no larger
    # than this process's own may be that copy's.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    log.write_bytes(b"")
    with log.open("ab") as output:  # appended to, so that it can be shortened meanwhile
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            preexec_fn=lambda: _prepare_child(memory_mb if refuse_allocations else None),
        )
    stopped_for: str | None = None
    peak_mb = 0.0
    try:
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            used_mb = _private_mb(tree.processes())
            peak_mb = max(peak_mb, used_mb)
            if stopped_for is None:
                if used_mb > memory_mb:
                    stopped_for = "memory"
                elif time.monotonic() - started > wall_s:
                    stopped_for = "timeout"
                if stopped_for:
                    tree.end(spare_reaping=child.pid)
            on_poll()
            shorten(log)
            time.sleep(POLL_S)
    except BaseException:
        # Interrupted from outside: nothing that this run started may live on.
        tree.end()
        raise
    child.returncode = os.waitstatus_to_exitcode(status)
    names = [] if stopped_for else tree.outliving()
    tree.end()
    shorten(log)
    return Exit(
        code=child.returncode,
        stopped_for=stopped_for,
        wall_s=time.monotonic() - started,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=max(peak_mb, usage.ru_maxrss / 1024 if usage.ru_maxrss > inherited else 0.0),
        left_behind=names,
    )


def _prepare_child(memory_mb: float | None) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if memory_mb is not None:
        # One huge allocation fails as a MemoryError before it takes the machine down.
        limit = int((memory_mb + RESERVED_MB) * 2**20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


class _Tree:
    """The processes that came of what is supervised: descendants that were not there before."""

    def __init__(self) -> None:
        self.bystanders = set(psutil.Process().children(recursive=True))

    def processes(self) -> list[psutil.Process]:
        """All of them, zombies included."""
        return [p for p in psutil.Process().children(recursive=True) if p not in self.bystanders]

    def alive(self, spare_reaping: int | None = None) -> list[psutil.Process]:
        """Those that still run; adopted orphans that have ended are reaped on the way.

        ``spare_reaping`` is waited for by the caller, who wants its resource usage.
        """
        alive = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
                elif process.pid != spare_reaping:
                    # A zombie whose own parent is alive is that parent's to reap.
                    os.waitpid(process.pid, os.WNOHANG)
        return alive

    def outliving(self) -> list[str]:
        """The commands of those that are still there a moment after their parent's end."""
        deadline = time.monotonic() + SETTLE_S
        while (alive := self.alive()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return sorted(_name(process) for process in alive)

    def end(self, spare_reaping: int | None = None) -> None:
        """Ask them to end, then make them; those started meanwhile too."""
        _signal(self.processes(), signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and self.alive(spare_reaping):
            time.sleep(POLL_S)
        while remaining := self.alive(spare_reaping):
            _signal(remaining, signal.SIGKILL)
            time.sleep(POLL_S)


def _private_mb(processes: Sequence[psutil.Process]) -> float:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            memory = process.memory_info()
            total += memory.rss - memory.shared
    return total / 2**20


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:NAME_LENGTH] or process.name()
    except psutil.NoSuchProcess:
        return "a process that has ended since"


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
