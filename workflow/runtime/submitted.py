"""What was submitted to a cluster and not yet seen to end: one file per job.

Snakemake marks an output as unfinished with the cluster's job id, but the job itself overwrites
that mark when it starts and removes it when it ends. After the death of the submitting process
nothing would say which outputs belong to a job that is queued or at work, nor which results were
made while nobody watched and so have no record of their parameters. These files do.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.atomic import write_json, write_text
from benchmarks.common.digests import read_object

FOLDER = Path(".snakemake/submitted")
"""In the working directory of a run."""
# Of where a job runs, not of what it is to do.
_PLACES = frozenset({"tmpdir", "_cores", "_nodes"})


@dataclass(frozen=True)
class Submission:
    """A job of a run that a scheduler was given."""

    outputs: tuple[str, ...]
    jobid: str
    """The scheduler's own, ``17`` or, for a task of an array, ``17_3``."""
    request: str
    """A digest of what it was asked to do, see :func:`digest_of`."""
    log: str
    submitted: float = 0.0
    """In seconds, by the clock of the file system, as the times of files are."""


class Submissions:
    """The submissions from one working directory that are not known to have ended."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def run_name(self) -> str:
        """The name under which all jobs from this directory are found again at the scheduler."""
        path = self.folder / "run_name"
        if not path.exists():
            write_text(path, f"tailtables-{uuid.uuid4().hex[:12]}")
        return path.read_text(encoding="utf-8")

    def add(self, outputs: Iterable[str], jobid: str, request: str, log: str) -> None:
        """Remember a job until :meth:`remove`."""
        made = Submission(tuple(outputs), jobid, request, log)
        document = asdict(made)
        del document["submitted"]  # the time of the file itself
        write_json(self._file(made.outputs), document)

    def remove(self, outputs: Iterable[str]) -> None:
        """Forget a job: it ended, and that is recorded elsewhere."""
        self._file(tuple(outputs)).unlink(missing_ok=True)

    def read(self) -> dict[tuple[str, ...], Submission]:
        """All that is remembered, by outputs. A file that cannot be read stands for no job."""
        found = {}
        for path in sorted(self.folder.glob("*.json")):
            fields = read_object(path)
            if fields is None or fields.keys() != {"outputs", "jobid", "request", "log"}:
                continue
            fields["outputs"] = tuple(fields["outputs"])
            made = Submission(**fields, submitted=path.stat().st_mtime)
            found[made.outputs] = made
        return found

    def _file(self, outputs: tuple[str, ...]) -> Path:
        name = hashlib.sha256("\n".join(outputs).encode()).hexdigest()[:24]
        return self.folder / f"{name}.json"


def digest_of(job: Any) -> str:
    """What a job of Snakemake is asked to do: with other parameters or budget it is another job."""
    resources = {k: v for k, v in job.resources.items() if k not in _PLACES}
    asked = [
        job.rule.name,
        dict(job.wildcards.items()),
        dict(job.params.items()),
        resources,
        job.threads,
    ]
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def newest(paths: Iterable[str]) -> float:
    """When the last of some files or folders was made; 0 for none."""
    times = [0.0]
    for path in map(Path, paths):
        # Snakemake keeps the time of a folder in a file inside it.
        stamp = path / ".snakemake_timestamp"
        times.append((stamp if stamp.exists() else path).stat().st_mtime)
    return max(times)
