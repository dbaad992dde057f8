"""The shipped reference runs: what laws of cost are fitted to before anything has run here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.schema import load_yaml

ROOT = Path(__file__).resolve().parents[1]
INDEX = ROOT / "results" / "reference" / "runs.yaml"
"""Of each shipped ``runs.csv``, beside it, the configuration, from the root of the repository."""


@dataclass(frozen=True)
class Reference:
    """A committed ``runs.csv`` and the configuration that says what its names mean."""

    runs: Path
    config: Path


def references() -> list[Reference]:
    """Those that are there: who removes all results removes the runs, too."""
    if not INDEX.exists():
        return []
    listed = load_yaml(INDEX)
    found = [Reference(INDEX.parent / runs, ROOT / config) for runs, config in listed.items()]
    return [each for each in found if each.runs.exists()]


def reference_digest() -> str:
    """Changes with the runs or with what their names mean: of what is made of them, a parameter."""
    paths = [path for each in references() for path in (each.runs, each.config)]
    content = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()[:16]
