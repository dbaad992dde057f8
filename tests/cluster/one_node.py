"""A SLURM cluster of one node on loopback: Debian's packages, own configuration, own key.

Everything it writes is below one folder, but for links to its configuration in /etc/slurm, where
SLURM's clients look; they are removed at the end. Daemons run in the foreground as children of this
process: they can be killed one by one, and end with it, however it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from workflow.runtime.resume import hold

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
SYSTEM_FOLDER = Path("/etc/slurm")
CONFIGURATION = ("slurm.conf", "gres.conf")
LOCK = "lock"
CLIENT_S = 60
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

SLURM_CONF = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
# Loopback only: the address that each name stands for, not any.
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
ReturnToService=2
# A node that is silent for this long is down; quick, so that a test sees it.
SlurmdTimeout=20
SlurmctldTimeout=20
KillWait=10
# Nothing is forgotten during a test.
MinJobAge=7200
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 NodeHostname={host} CPUs=2 RealMemory={memory} Gres=gpu:fake:1
PartitionName=short Nodes={host} Default=YES MaxTime=120 State=UP
PartitionName=long Nodes={host} MaxTime=INFINITE State=UP
PartitionName=gpu Nodes={host} MaxTime=INFINITE State=UP
"""
# SLURM wants a device file; nobody opens it.
GRES_CONF = "NodeName={host} Name=gpu Type=fake File=/dev/zero\n"


def reason_not_to_run() -> str | None:
    """Why no cluster can be started here, or None."""
    if os.geteuid() != 0:
        return "SLURM's daemons are started as root: run `make cluster-test` as root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: apt-get install slurm-wlm munge)"
    paths = [SYSTEM_FOLDER / name for name in CONFIGURATION]
    own = [str(path) for path in paths if path.exists() and not _is_of_a_killed_test(path)]
    if own:
        return f"this machine has a SLURM of its own, or of another test: {', '.join(own)}"
    return None


class Cluster:
    """Starts and stops the daemons, and asks the controller."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = socket.gethostname().partition(".")[0]
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start munge, the controller and the node; return when the node takes jobs."""
        for name in ("munge", "state", "spool"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name).chmod(0o755)
        hold(self.folder / LOCK)
        values = {
            "host": self.host,
            "folder": self.folder,
            "memory": 6000,
            "controller_port": _free_port(),
            "node_port": _free_port(),
        }
        (self.folder / "slurm.conf").write_text(SLURM_CONF.format(**values))
        (self.folder / "gres.conf").write_text(GRES_CONF.format(**values))
        # SLURM_CONF would do, but Snakemake's jobs hand on no variable of that kind.
        for name in CONFIGURATION:
            (SYSTEM_FOLDER / name).unlink(missing_ok=True)  # of a test that was killed
            (SYSTEM_FOLDER / name).symlink_to(self.folder / name)
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        socket_path = self.folder / "munge/socket"
        self._daemon(
            "munged",
            *("--foreground", "--force", "--num-threads=1", f"--key-file={key}"),
            *(f"--socket={socket_path}", f"--pid-file={self.folder}/munge/pid"),
            *(f"--log-file={self.folder}/munge/log", f"--seed-file={self.folder}/munge/seed"),
        )
        self.wait_for(socket_path.exists, "munge's socket")
        self._daemon("slurmctld", "-D", "-c", "-i")
        self.start_node()

    def start_node(self) -> None:
        """Start the node's daemon and wait until it takes jobs."""
        self._daemon("slurmd", "-D", "-N", self.host)
        self.wait_for(self.is_ready, "a node")

    def kill(self, daemon: str) -> None:
        """Kill a daemon as a crash would."""
        process = self.daemons.pop(daemon)
        process.kill()
        process.wait()

    def clear(self) -> None:
        """End all jobs, and have the controller forget them."""
        self.check_daemons()
        self.ask("scancel", "--user=root", check=False)
        alive = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
        self.wait_for(lambda: not self.jobs(*alive), "the end of all jobs")
        self.kill("slurmctld")
        self._daemon("slurmctld", "-D", "-c", "-i")
        self.wait_for(self.is_ready, "a node")

    def is_ready(self) -> bool:
        """Whether the node takes jobs."""
        return self.node_state() in ("IDLE", "MIXED", "ALLOCATED")

    def stop(self) -> None:
        """End all jobs, then all daemons."""
        try:
            controller = self.daemons.get("slurmctld")
            if controller is not None and controller.poll() is None:
                self.ask("scancel", "--user=root", check=False)
                self.wait_for(lambda: not self.jobs("COMPLETING", "RUNNING"), "no jobs", 30)
        finally:
            self._stop_daemons()

    def _stop_daemons(self) -> None:
        for name in ("slurmd", "slurmctld", "munged"):
            process = self.daemons.pop(name, None)
            if process is None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._end_left_jobs()
        for name in CONFIGURATION:
            if (SYSTEM_FOLDER / name).is_symlink():
                (SYSTEM_FOLDER / name).unlink()

    def _end_left_jobs(self) -> None:
        """End what a daemon that died could not: the keepers of jobs, and the jobs below them."""
        spool = str(self.folder / "spool")
        for process in psutil.process_iter(["cmdline"]):
            if not any(spool in word for word in process.info["cmdline"] or ()):
                continue
            with contextlib.suppress(psutil.NoSuchProcess):
                keeper = process.parent()
                tree = [process, *process.children(recursive=True)]
                if keeper is not None and keeper.name().startswith("slurmstepd"):
                    tree.append(keeper)
                for member in tree:
                    member.kill()

    def ask(self, *command: str, check: bool = True) -> str:
        """The answer of one of SLURM's clients."""
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=CLIENT_S,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def node_state(self) -> str:
        """The node's state, ``UNKNOWN`` while the controller does not answer."""
        said = self.ask("scontrol", "show", "node", self.host, check=False)
        found = re.search(r"State=([A-Z+*]+)", said)
        return found[1] if found else "UNKNOWN"

    def drain(self, reason: str) -> None:
        """Have the node finish what it runs and take nothing new."""
        self.ask("scontrol", "update", f"nodename={self.host}", "state=drain", f"reason={reason}")

    def resume(self) -> None:
        """Have a drained node take jobs again."""
        self.ask("scontrol", "update", f"nodename={self.host}", "state=resume")

    def jobs(self, *states: str) -> dict[str, str]:
        """Jobs in some states, or in any: id -> its comment, which names rule and wildcards."""
        asked = f"--states={','.join(states) or 'all'}"
        lines = self.ask("squeue", asked, "--array", "--noheader", "--format=%i|%k").splitlines()
        return dict(line.split("|", 1) for line in lines)

    def show(self, job: str) -> dict[str, str]:
        """What the controller knows of a job, by its own names."""
        said = self.ask("scontrol", "show", "job", job, "--oneliner")
        return dict(pair.split("=", 1) for pair in said.split() if "=" in pair)

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = 120) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check_daemons()
            assert time.monotonic() < deadline, f"no sign of {what}; {self.log('slurmctld')}"
            time.sleep(0.2)

    def check_daemons(self) -> None:
        """Fail with what a daemon said last if one has ended by itself."""
        for name, process in self.daemons.items():
            assert process.poll() is None, f"{name} ended:\n{self.log(name)}"

    def log(self, daemon: str) -> str:
        """The last lines that a daemon wrote."""
        path = self.folder / f"{daemon}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-30:])

    def _daemon(self, name: str, *arguments: str) -> None:
        program = shutil.which(name)
        assert program is not None
        with (self.folder / f"{name}.log").open("ab") as log:
            command: Sequence[str] = (program, *arguments)
            self.daemons[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=_end_with_parent,
                start_new_session=True,  # an interrupt from the keyboard is the test's
            )


def _is_of_a_killed_test(path: Path) -> bool:
    """Whether a link leads to a cluster like this one whose process holds its lock no more."""
    lock = path.resolve().parent / LOCK
    if not path.is_symlink() or not lock.exists():
        return False
    with lock.open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port
