"""The shipped reference runs: what laws of cost are fitted to before anything has run here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Reference:
    """A committed ``runs.csv`` and the configuration that says what its names mean."""

    runs: Path
    config: Path


def _shipped(runs: str, config: str) -> Reference:
    return Reference(ROOT / "results" / "reference" / runs, ROOT / config)


REFERENCES = (
    _shipped("runs.csv", "config/reference.yaml"),
    _shipped("forests/runs.csv", "config/reference_forests.yaml"),
    _shipped("glas_runs.csv", "benchmarks/papers/glas/config.yaml"),
    _shipped("httn_runs.csv", "benchmarks/papers/httn/config.yaml"),
    _shipped("deep/runs.csv", "benchmarks/papers/tailmix/config.yaml"),
    _shipped("attentionxml_runs.csv", "config/reference_attentionxml.yaml"),
)


def reference_digest() -> str:
    """Changes with the runs or with what their names mean: of what is made of them, a parameter.

    Who removes all results removes the runs, too; then there are none to learn from.
    """
    paths = [path for each in REFERENCES for path in (each.runs, each.config) if path.exists()]
    content = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()[:16]
