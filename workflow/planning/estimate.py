"""What each cell will cost: measured, scaled from a smaller run by its law, or guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.records.cell import Cell
from methods.cost import labels_per_document, words_per_document
from workflow.planning.facts import Known
from workflow.planning.laws import Laws
from workflow.planning.observed import Observed, Work, recipe_text, work_of
from workflow.planning.schedule import Task

if TYPE_CHECKING:
    from workflow.config import Job

MEASURED, MEASURED_ELSEWHERE = "measured here", "measured in the reference run"
SCALED, GUESS, UNKNOWN = "scaled", "guess", "unknown"

AVERAGE_SECONDS = 1e-5  # per test document, member and label kept: the mean of an ensemble
READ_SECONDS = 2e-7  # per number of the data: fetching apart, a round figure
EVALUATE_SECONDS = (2.0, 1e-3)  # to start, and per test document
INSTANCE_BYTES = 500  # of a test document: numerators and denominators of all metrics


@dataclass(frozen=True)
class Estimate:
    """A cell's price. ``seconds`` are of all its jobs on one core, or on its card."""

    cell: Cell
    seconds: float
    megabytes: float
    disk_mb: float
    basis: str
    source: str
    """Which run it is scaled from, or what was assumed."""
    device: str
    threads: int
    shards: int
    members: tuple[Cell, ...] = ()
    times: float = math.nan
    """Its work over that of the run it is scaled from."""

    @property
    def wall_s(self) -> float:
        """Of one of its jobs: a shard's, where there are several."""
        return self.seconds / self.threads / self.shards

    @property
    def on_card(self) -> bool:
        """Whether it occupies a graphics card."""
        return self.device not in ("cpu", "")


class _Price(NamedTuple):
    seconds: float
    megabytes: float
    basis: str
    source: str
    times: float = math.nan


class Estimator:
    """Prices of jobs by fitted laws and by the runs they were fitted to."""

    def __init__(self, laws: Laws, runs: Sequence[Observed], top_k: int) -> None:
        self.laws = laws
        self.top_k = top_k
        self._by_law: dict[str, list[Observed]] = {}
        self._same: dict[tuple[str, str, str], list[Observed]] = {}
        for run in runs:
            self._by_law.setdefault(run.work.law, []).append(run)
            key = (run.cell.dataset, run.recipe, run.work.device)
            self._same.setdefault(key, []).append(run)

    def estimate(self, job: Job, known: Known | None, device: str) -> Estimate:
        """The price of a job on data of which so much is known."""
        price = self._price(job, known, device)
        return Estimate(
            job.cell,
            price.seconds,
            price.megabytes,
            math.nan if known is None else self._disk_mb(known.meta),
            price.basis,
            price.source,
            "cpu" if job.members else device,
            1 if job.members else int(job.budget["threads"]),
            job.shards,
            job.members,
            price.times,
        )

    def _price(self, job: Job, known: Known | None, device: str) -> _Price:
        if known is None:
            why = "nothing is known of the size of the data"
            return _Price(math.nan, math.nan, UNKNOWN, why)
        if job.members:
            amount = known.meta.get("n_test", 0) * len(job.members) * self.top_k
            megabytes = 200 + 4 * self._disk_mb(known.meta)
            text = f"the mean of {len(job.members)} cells"
            return _Price(AVERAGE_SECONDS * amount, megabytes, GUESS, text)
        recipes = (job.base, *job.variants)
        work = work_of(recipes, known.meta, device)
        if work is None:
            return _Price(0.0, 0.0, MEASURED, "the variant does not fit the base: nothing is run")
        key = (job.cell.dataset, recipe_text(recipes), work.device)
        if key in self._same:
            own = [run for run in self._same[key] if run.here] or self._same[key]
            seconds = sum(run.seconds for run in own) / len(own)
            megabytes = max(run.megabytes for run in own)
            basis = MEASURED if own[0].here else MEASURED_ELSEWHERE
            return _Price(seconds, megabytes, basis, f"{len(own)} run(s)")
        nearest = self._nearest(work)
        source, times = "no run of this base", math.nan
        if nearest is not None:
            times = work.cost.seconds / nearest.work.cost.seconds
            source = f"{times:.3g} times the work of {nearest.cell}"
        return _Price(
            self.laws.seconds(work),
            self.laws.megabytes(work),
            GUESS if nearest is None else SCALED,
            "; ".join([source, *(f"assumed {text}" for text in known.assumed)]),
            times,
        )

    def _nearest(self, work: Work) -> Observed | None:
        """The run of the same base that a cell is scaled from: of its variants, if there is one,
        and of the largest size below its own, if there is one."""
        runs = self._by_law.get(work.law, [])
        same = [run for run in runs if run.work.variants == work.variants] or runs
        size = work.cost.seconds
        smaller = [run for run in same if run.work.cost.seconds <= size] or same
        return min(
            smaller, key=lambda run: abs(math.log(run.work.cost.seconds / size)), default=None
        )

    def _disk_mb(self, meta: Mapping[str, Any]) -> float:
        kept = min(self.top_k, meta["n_labels"])
        return (meta.get("n_test", 0) * (8 * kept + INSTANCE_BYTES) + 4 * meta["n_labels"]) / 2**20


def data_mb(meta: Mapping[str, Any]) -> float:
    """Disk that a prepared dataset takes: ids and values of words, labels, tokens."""
    return _numbers(meta) * 4 / 2**20


def tasks(estimates: Iterable[Estimate], known: Mapping[str, Known | None]) -> list[Task]:
    """The jobs of a run as a schedule sees them: data, shards, cells, ensembles, evaluations."""
    found: list[Task] = []
    for name, facts in known.items():
        seconds = 0.0 if facts is None else READ_SECONDS * _numbers(facts.meta)
        found.append(Task(f"prepare {name}", seconds))
    for each in estimates:
        if math.isnan(each.seconds):
            continue
        facts = known[each.cell.dataset]
        assert facts is not None
        gpus = int(each.on_card)
        before = (f"prepare {each.cell.dataset}", *(f"run {member}" for member in each.members))
        if each.shards > 1:
            shards = tuple(f"shard {number} of {each.cell}" for number in range(each.shards))
            found += [Task(name, each.wall_s, each.threads, gpus, before) for name in shards]
            found.append(Task(f"run {each.cell}", 0.0, each.threads, gpus, shards))
        else:
            found.append(Task(f"run {each.cell}", each.wall_s, each.threads, gpus, before))
        start, per_document = EVALUATE_SECONDS
        seconds = start + per_document * facts.meta.get("n_test", 0)
        found.append(Task(f"evaluate {each.cell}", seconds, after=(f"run {each.cell}",)))
    return found


def _numbers(meta: Mapping[str, Any]) -> float:
    """Numbers that the prepared data hold."""
    words = words_per_document(meta) if meta.get("n_features") else 0.0
    own = 2 * words + labels_per_document(meta)
    own += float(meta.get("tokens_per_document") or 0.0)
    return (meta["n_train"] + meta.get("n_test", 0)) * own
