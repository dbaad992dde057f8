"""Planning of ensembles over seeds: each member is a cell of its own, run like any other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.records.cell import Cell
from methods.registry import PLAIN, VARIANTS
from methods.variants.ensemble import Ensemble

if TYPE_CHECKING:
    from workflow.config import Job


def with_members(jobs: dict[Cell, Job]) -> dict[Cell, Job]:
    """The jobs, those of an ensemble's members before it; each cell once.

    A member that the configuration names itself is run as it says there. Only an ensemble that is
    the outermost variant is made from cells: what changes an ensemble fits it as a whole.
    """
    planned: dict[Cell, Job] = {}

    def add(job: Job) -> None:
        if job.cell in planned:
            return
        members = []
        if job.variants and job.variants[-1].target == VARIANTS["ensemble"]:
            inner = job.variants[:-1]
            below = job.cell.variant.partition("+")[2] if inner else PLAIN
            ensemble = job.variants[-1].build(Ensemble)
            assert isinstance(ensemble, Ensemble)
            for seed in ensemble.seeds(job.cell.seed):
                cell = replace(job.cell, variant=below, seed=seed)
                add(jobs.get(cell, replace(job, cell=cell, variants=inner)))
                members.append(cell)
            # It fits nothing itself: its members are what is sharded.
            job = replace(job, shards=1, members=tuple(members))
        planned[job.cell] = job

    for job in jobs.values():
        add(job)
    return planned
