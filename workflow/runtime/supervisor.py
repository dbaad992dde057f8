"""Run a command under a wall clock and a memory limit, and end its whole process tree.

The command runs below a keeper (:mod:`workflow.runtime.keeper`), which adopts what it detaches and
ends all of it when this process dies, however it dies. Descendants are found by parentage, not by
process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from workflow.runtime.logs import Recorder
from workflow.runtime.memory import Meter

POLL_S = 0.05
GRACE_S = 5.0
SETTLE_S = 1.0  # helpers of multiprocessing end by themselves just after their parent
# Address space that is reserved but never touched (thread stacks, arenas) is not memory used.
RESERVED_MB = 1024
NAME_LENGTH = 200
KEEPER = Path(__file__).with_name("keeper.py")

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
    locks: Sequence[int] = (),
) -> Exit:
    """Run a command to its end, or to the end of its budget.

    Memory is what the whole tree holds (:mod:`workflow.runtime.memory`), sampled: address space
    that is only reserved does not count. ``refuse_allocations`` also has the kernel refuse what
    would go far over the limit at once. It is set on writable private mappings (RLIMIT_DATA), not
    on the address space (RLIMIT_AS), so that reserving without access is free; yet CUDA maps its
    ranges in ways that differ between drivers, so for it the sampled limit is to be the only one.
    ``locks`` are open files whose locks are to be held until the last process has ended.
    """
    # Should the keeper be killed, what it kept comes to this process.
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tree = _Tree()
    started = time.monotonic()
    limit = int((memory_mb + RESERVED_MB) * 2**20) if refuse_allocations else 0
    stopped_for: str | None = None
    peak_mb = 0.0
    with Recorder(log) as recorder:
        ours, theirs = socket.socketpair()
        with theirs:
            # The keeper gets the end of the pipe that is read, too, though it never reads: as long
            # as it lives, a command whose supervisor was killed ends by the keeper's signal, and
            # not before by one for a pipe that nobody reads.
            keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", KEEPER, str(theirs.fileno()), str(limit), *command],
                stdin=subprocess.DEVNULL,
                stdout=recorder.writer,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                pass_fds=(theirs.fileno(), recorder.reader, *locks),
            )
        tree.bystanders.add(psutil.Process(keeper.pid))
        meter = Meter()
        try:
            while (report := _report(ours)) is None:
                used_mb = meter.used_mb(tree.processes())
                peak_mb = max(peak_mb, used_mb)
                if stopped_for is None:
                    if used_mb > memory_mb:
                        stopped_for = "memory"
                    elif time.monotonic() - started > wall_s:
                        stopped_for = "timeout"
                    if stopped_for:
                        tree.end()
                on_poll()
            names = [] if stopped_for or not report else tree.outliving()
        finally:
            # Also when interrupted from outside: nothing that this run started may live on.
            tree.end()
            ours.close()
            keeper.wait()
    status, user_s, system_s, most_kb = report or (None, 0.0, 0.0, 0)
    return Exit(
        code=keeper.returncode if status is None else os.waitstatus_to_exitcode(int(status)),
        stopped_for=stopped_for,
        wall_s=time.monotonic() - started,
        cpu_s=user_s + system_s,
        peak_mb=max(peak_mb, most_kb / 1024),
        left_behind=names,
    )


def _report(connection: socket.socket) -> list[float] | None:
    """What the keeper says when the command has ended: wait status, user and system seconds,
    most kilobytes resident. None while it runs; an empty list if the keeper is gone."""
    if not select.select([connection], [], [], POLL_S)[0]:
        return None
    said = connection.recv(4096)
    found: list[float] = json.loads(said) if said else []
    return found


class _Tree:
    """The processes that came of what is supervised: descendants that were not there before."""

    def __init__(self) -> None:
        self.bystanders = set(psutil.Process().children(recursive=True))

    def processes(self) -> list[psutil.Process]:
        """All of them, zombies included."""
        return [p for p in psutil.Process().children(recursive=True) if p not in self.bystanders]

    def alive(self) -> list[psutil.Process]:
        """Those that still run; orphans of a dead keeper that have ended are reaped on the way."""
        alive = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
                else:  # one whose own parent is alive is that parent's to reap
                    os.waitpid(process.pid, os.WNOHANG)
        return alive

    def outliving(self) -> list[str]:
        """The commands of those that are still there a moment after their parent's end."""
        deadline = time.monotonic() + SETTLE_S
        while (alive := self.alive()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return sorted(_name(process) for process in alive)

    def end(self) -> None:
        """Ask them to end, then make them; those started meanwhile too."""
        _signal(self.processes(), signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and self.alive():
            time.sleep(POLL_S)
        while remaining := self.alive():
            _signal(remaining, signal.SIGKILL)
            time.sleep(POLL_S)


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:NAME_LENGTH] or process.name()
    except psutil.NoSuchProcess:
        return "a process that has ended since"


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
