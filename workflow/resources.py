"""The resources that the methods of a run name: word vectors, tokenisers, pretrained encoders."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from benchmarks.common.schema import InvalidDocumentError
from methods.registry import MisfitError, assemble

if TYPE_CHECKING:
    from workflow.config import Job

VARIABLE = "TAILTABLES_RESOURCES"


def needed(job: Job) -> list[str]:
    """Names of the resources of a cell's method, sorted.

    Building the method imports its code, which takes longer than all else that Snakemake does to
    start a job. The main process therefore does it once, for all, in :func:`announce`.
    """
    announced = os.environ.get(VARIABLE)
    if announced is not None:
        found: list[str] = json.loads(announced).get(_pair(job), [])
        return found
    try:
        return sorted(assemble(job.base, job.variants).resources)
    except MisfitError:
        return []


def announce(jobs: Iterable[Job], known: Collection[str], source: str) -> None:
    """Tell the processes of jobs what their methods need; a name without a card is an error."""
    os.environ.pop(VARIABLE, None)
    found: dict[str, list[str]] = {}
    for job in jobs:
        if _pair(job) not in found:
            found[_pair(job)] = needed(job)
    faults = [
        f"  cells: {pair} needs the resource {name!r}, which no card describes"
        for pair, names in found.items()
        for name in names
        if name not in known
    ]
    if faults:
        raise InvalidDocumentError("\n".join([f"{source} is not valid:", *faults]))
    os.environ[VARIABLE] = json.dumps({pair: names for pair, names in found.items() if names})


def _pair(job: Job) -> str:
    return f"{job.cell.base}/{job.cell.variant}"
