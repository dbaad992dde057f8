"""Stands between the supervisor and its command, and ends all that is left when either is gone.

A process that a method detached (its own session, its parent dead) becomes the child of the
nearest ancestor that adopts orphans. If that were the supervisor alone, ``kill -9`` of it would
set such processes free. The keeper adopts them instead, in a session of its own that no signal to
the run's terminal or process group reaches; it lives until the supervisor closes the connection,
by intent or by death, and then ends every descendant. It also inherits the supervisor's locks,
so a new run does not start on a cell whose processes are still being ended.

Run as a program without site-packages: ``keeper.py CONNECTION LIMIT COMMAND...``, where CONNECTION
is the number of an inherited socket and LIMIT the bytes that the command may allocate (0: any).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
PATIENCE_S = 60.0


def main(argv: list[str]) -> int:
    """Run the command; report its end on the connection; wait for the connection's end."""
    connection, limit, command = socket.socket(fileno=int(argv[0])), int(argv[1]), argv[2:]
    os.setsid()
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        # Not ignored: that would be inherited by the command. The supervisor decides.
        signal.signal(number, lambda *_: None)
    signals, wake = socket.socketpair()
    signals.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = subprocess.Popen(command, preexec_fn=lambda: _prepare(limit))
    while True:
        ready, _, _ = select.select([connection, signals], [], [])
        if signals in ready:
            signals.recv(4096)
            _reap(child.pid, connection)
        if connection in ready and not connection.recv(1):
            return _end_all()


def _prepare(limit: int) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if limit:
        # One huge allocation fails as a MemoryError before it takes the machine down.
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _reap(child: int, connection: socket.socket) -> None:
    """Collect the dead; the command's status and usage go to the supervisor."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child:
            times = [usage.ru_utime, usage.ru_stime, usage.ru_maxrss]
            try:
                connection.sendall(json.dumps([status, *times]).encode() + b"\n")
            except OSError:
                return  # nobody is left to hear it


def _end_all() -> int:
    """Kill every descendant, also those that appear meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for pid in _descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return 0
        time.sleep(0.01)
    return 1  # one that the kernel cannot end, waiting for a dead disk for example


def _descendants() -> list[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if fields[0] != b"Z":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
