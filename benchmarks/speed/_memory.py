"""The peak memory of this process alone."""

from __future__ import annotations

from pathlib import Path


def peak_mb() -> float:
    """Megabytes; not ``ru_maxrss``, which starts at what the parent process held."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
