"""The plan of a run: every cell's price, totals, the critical path, what a budget leaves out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data.cards import Card
from benchmarks.papers.spec import Folders, load_papers
from benchmarks.records.cell import Cell, Setup
from workflow.config import Job
from workflow.planning.coverage import Coverage, coverage, papers_of
from workflow.planning.estimate import (
    GUESS,
    MEASURED,
    MEASURED_ELSEWHERE,
    SCALED,
    UNKNOWN,
    Estimate,
    Estimator,
    data_mb,
    tasks,
)
from workflow.planning.facts import Known, facts_in, known_of
from workflow.planning.laws import Laws, Miss, fit, leave_one_dataset_out
from workflow.planning.observed import Definitions, Observed, read_observed
from workflow.planning.reference import reference_runs
from workflow.planning.schedule import Chain, Task, longest_chain, makespan
from workflow.runtime.devices import cuda_cards, resolve

RESULTS = Path("results")
NO_PAPER = "no paper"
BASES_OF_PRICE = (MEASURED, MEASURED_ELSEWHERE, SCALED, GUESS, UNKNOWN)


@dataclass(frozen=True)
class Machine:
    """What a plan may count on; ``hours`` is how long it may take, None for as long as it does."""

    cores: int
    gpus: int
    hours: float | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Machine:
        """As the configuration says, or as this machine has."""
        cores = settings.get("plan_cores") or len(os.sched_getaffinity(0))
        gpus = settings.get("plan_gpus")
        cards = len(cuda_cards()) if gpus is None else gpus
        return cls(int(cores), int(cards), settings.get("plan_hours"))


def earlier_runs(
    cards: Mapping[str, Card], define: Definitions, results: Path = RESULTS
) -> tuple[list[Observed], list[str]]:
    """What laws are fitted to: the shipped reference and this folder's own runs.

    ``cards`` and ``define`` are of the latter; they do not change what the reference ran.
    """
    runs, left_out = reference_runs(results)
    own, also = read_observed(results / "runs.csv", facts_in(results, cards), define, here=True)
    return [*runs, *own], [*left_out, *also]


class Plan:
    """The prices of a run's jobs."""

    def __init__(
        self,
        jobs: Sequence[Job],
        cards: Mapping[str, Card],
        runs: Sequence[Observed],
        machine: Machine,
        *,
        top_k: int,
        papers: Folders | None = None,
        results: Path = RESULTS,
    ) -> None:
        self.jobs = list(jobs)
        self.runs = list(runs)
        self.machine = machine
        self.papers = papers
        self.laws: Laws = fit(runs)
        names = dict.fromkeys(job.cell.dataset for job in jobs)
        self.known: dict[str, Known | None] = {
            name: known_of(name, cards, results / "data") for name in names
        }
        estimator = Estimator(self.laws, runs, top_k)
        self.estimates: list[Estimate] = [
            estimator.estimate(job, self.known[job.cell.dataset], self._device(job)) for job in jobs
        ]

    def _device(self, job: Job) -> str:
        asked = str(job.budget["device"])
        if asked == "auto":
            return "cuda" if self.machine.gpus else resolve(asked).replace("cuda", "cpu")
        return asked

    @cached_property
    def covered(self) -> list[Coverage]:
        """The papers' printed values beside this run's cells."""
        setups = {_setup(job.cell) for job in self.jobs}
        return coverage(load_papers(self.papers), setups)

    @cached_property
    def misses(self) -> list[Miss]:
        """How far the laws are off on datasets they have not seen."""
        return leave_one_dataset_out(self.runs)

    @cached_property
    def tasks(self) -> list[Task]:
        """All jobs, for a schedule."""
        return tasks(self.estimates, self.known)

    @cached_property
    def critical(self) -> Chain:
        """What must be done one after the other."""
        return longest_chain(self.tasks)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """``plan.csv``: one row per cell."""
        counts = papers_of(self.covered)
        served = _with_members(self.estimates, counts)
        rows = []
        for job, each in zip(self.jobs, self.estimates, strict=True):
            own = served.get(each.cell, {})
            rows.append(
                {
                    **vars(each.cell),
                    "seconds": each.seconds,
                    "wall_s": each.wall_s,
                    "memory_mb": each.megabytes,
                    "disk_mb": each.disk_mb,
                    "device": each.device,
                    "threads": each.threads,
                    "shards": each.shards,
                    "basis": each.basis,
                    "source": each.source,
                    "papers": " ".join(own),
                    "printed_values": sum(counts.get(_setup(each.cell), {}).values()),
                    "over_budget": _over(job, each),
                }
            )
        frame = pd.DataFrame(rows)
        frame["within_hours"] = self._within(frame)
        return frame

    def _within(self, frame: pd.DataFrame) -> pd.Series:
        """Whether a cell has room in the hours: those with most printed values per hour first."""
        if self.machine.hours is None:
            return pd.Series(True, index=frame.index)
        room = {
            True: self.machine.hours * 3600 * self.machine.gpus,
            False: self.machine.hours * 3600 * self.machine.cores,
        }
        number = {each.cell: row for row, each in enumerate(self.estimates)}
        taken: set[int] = set()
        price = [self._whole(each, number) for each in self.estimates]
        worth = [frame["printed_values"].iloc[n] or 0.5 for n in range(len(frame))]
        order = np.argsort([p / w for p, w in zip(price, worth, strict=True)], kind="stable")
        for row in map(int, order):
            each = self.estimates[row]
            group = [row, *(number[member] for member in each.members)]
            new = [one for one in group if one not in taken]
            need = {True: 0.0, False: 0.0}
            for one in new:
                need[self.estimates[one].on_card] += self.estimates[one].seconds
            # A cell that nothing is known of has no price, and a NaN fits nowhere.
            if all(need[kind] <= room[kind] for kind in need):
                room = {kind: room[kind] - need[kind] for kind in room}
                taken.update(new)
        return pd.Series([row in taken for row in range(len(frame))], index=frame.index)

    def _whole(self, each: Estimate, number: Mapping[Cell, int]) -> float:
        return each.seconds + sum(self.estimates[number[m]].seconds for m in each.members)

    def totals(self, by: str) -> pd.DataFrame:
        """Hours, the largest memory and disk, by ``papers`` or ``dataset``; by paper, a cell that
        several papers print counts for each."""
        frame = self.frame.copy()
        if by == "papers":
            frame["papers"] = frame["papers"].str.split().map(lambda names: names or [NO_PAPER])
            frame = frame.explode("papers")
        frame["on_card"] = frame["device"] != "cpu"
        rows = []
        for name, own in frame.groupby(by, sort=False):
            rows.append(
                {
                    by: name,
                    "cells": len(own),
                    "core_hours": own.loc[~own["on_card"], "seconds"].sum() / 3600,
                    "gpu_hours": own.loc[own["on_card"], "seconds"].sum() / 3600,
                    "largest_gb": own["memory_mb"].max() / 1024,
                    "disk_gb": own["disk_mb"].sum() / 1024 + self._data_gb(set(own["dataset"])),
                    **{basis: int((own["basis"] == basis).sum()) for basis in BASES_OF_PRICE},
                }
            )
        return pd.DataFrame(rows)

    def _data_gb(self, datasets: set[str]) -> float:
        facts = [self.known[name] for name in sorted(datasets)]
        return sum(data_mb(known.meta) for known in facts if known is not None) / 1024

    @cached_property
    def spans(self) -> pd.DataFrame:
        """How long the whole takes on this many cores and on more."""
        rows = []
        for factor in (1, 4, 16, 64):
            cores, gpus = self.machine.cores * factor, self.machine.gpus * factor
            seconds = makespan(self.tasks, cores, gpus)
            rows.append({"cores": cores, "gpus": gpus, "hours": seconds / 3600})
        return pd.DataFrame(rows)


def _setup(cell: Cell) -> Setup:
    return Setup(cell.dataset, cell.base, cell.variant)


def _with_members(
    estimates: Sequence[Estimate], counts: Mapping[Setup, Mapping[str, int]]
) -> dict[Cell, dict[str, int]]:
    """The papers of each cell; those of an ensemble are its members', too."""
    found: dict[Cell, dict[str, int]] = {}
    for each in estimates:
        for cell in (each.cell, *each.members):
            found.setdefault(cell, {}).update(counts.get(_setup(each.cell), {}))
    return found


def _over(job: Job, each: Estimate) -> str:
    """What of its own budget a job would overrun, in words."""
    over = []
    if each.wall_s > job.budget["wall_s"]:
        over.append(f"needs {each.wall_s / job.budget['wall_s']:.2g} times its wall_s")
    if each.megabytes > job.budget["memory_mb"]:
        over.append(f"needs {each.megabytes / job.budget['memory_mb']:.2g} times its memory_mb")
    return "; ".join(over)
