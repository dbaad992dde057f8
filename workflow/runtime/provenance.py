"""Where a result came from: machine, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "pandas", "snakemake")


def node() -> dict[str, Any]:
    """The machine: processor, cores this process may use, memory, graphics card."""
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "gpu": _gpu_name(),
        "system": platform.platform(),
    }


@lru_cache(maxsize=1)
def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that can change a figure."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


CODE = ("Snakefile", "benchmarks", "methods", "workflow")


def commit(root: Path | None = None) -> dict[str, Any]:
    """The commit of this project's code and whether the code differs from it.

    Other files, such as a user's configuration or a log in the same folder, change no result.
    """
    root = root or Path(__file__).resolve().parents[2]
    revision = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", "--", *CODE)
    return {"commit": revision, "dirty": None if status is None else bool(status)}


def _git(root: Path, *arguments: str) -> str | None:
    """What git says, or None where there is no git or no repository (an unpacked release)."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _gpu_name() -> str | None:
    """The first card that the driver lists; asked of the driver, since torch takes seconds."""
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    for card in cards:
        for line in card.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Model"):
                return line.partition(":")[2].strip()
    return None
