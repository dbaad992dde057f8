"""The device a cell runs on: chosen by name, and for CUDA one card that no other cell has.

Snakemake counts the resource ``gpu`` but hands out no card. A cell therefore locks a file for the
card it takes, in the machine's temporary folder, so that runs in other folders respect it as well.
The kernel drops the lock with the process that holds it.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

POLL_S = 0.2


class NoDeviceError(RuntimeError):
    """The device that was asked for is not here; the message says what to do."""


@dataclass(frozen=True)
class Granted:
    """What a cell may use: ``cpu``, ``cuda`` or ``mps``, and the one card it is to see."""

    device: str
    card: str = ""
    """An entry of CUDA_VISIBLE_DEVICES; empty for none."""


def cuda_cards(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The CUDA cards this process may use: {entry of CUDA_VISIBLE_DEVICES: its unique name}.

    torch would have to be imported to be asked, which takes seconds. Where the driver's program
    is missing, CUDA_VISIBLE_DEVICES is believed, and the cell's own process finds out.
    """
    listed = dict(re.findall(r"^GPU (\d+): .*\(UUID: (\S+)\)", _list_cards(), re.MULTILINE))
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return listed
    found: dict[str, str] = {}
    for entry in map(str.strip, visible.split(",")):
        if not entry or entry.startswith("-"):
            break  # CUDA itself stops reading at the first entry that names no card
        found[entry] = listed.get(entry, entry)
    return found


@lru_cache(maxsize=1)
def _list_cards() -> str:
    try:
        command = ["nvidia-smi", "-L"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout


def resolve(asked: str) -> str:
    """The device that ``auto`` stands for here; any other name as it is."""
    if asked != "auto":
        return asked
    if cuda_cards():
        return "cuda"
    return "mps" if _has_mps() else "cpu"


def _has_mps() -> bool:
    return sys.platform == "darwin" and os.uname().machine == "arm64"


def lock_folder() -> Path:
    """Where the lock files of this user's cards are."""
    return Path(tempfile.gettempdir()) / f"tailtables-devices-{os.getuid()}"


@contextmanager
def take(asked: str) -> Iterator[Granted]:
    """Hold a device for the length of the block; waits while all cards it could be are taken.

    ``cuda:N`` is the N-th card that this process sees. Raises :class:`NoDeviceError` where there
    is no such card.
    """
    device, _, number = resolve(asked).partition(":")
    if device == "mps" and not _has_mps():
        raise NoDeviceError("no MPS device here; set device: cpu in the budget")
    if device != "cuda":
        yield Granted(device)
        return
    cards = list(cuda_cards().items())
    wanted = cards[int(number) : int(number) + 1] if number else cards
    if not wanted:
        there = f"; there are {len(cards)}" if cards else ""
        raise NoDeviceError(
            f"no CUDA device {f'number {number} ' if cards else ''}here{there}; "
            "set device: cpu in the budget, or run it where there is one"
        )
    folder = lock_folder()
    folder.mkdir(exist_ok=True)
    while True:
        for entry, name in wanted:
            with (folder / f"{re.sub('[^A-Za-z0-9-]', '_', name)}.lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield Granted("cuda", entry)
                return
        time.sleep(POLL_S)
