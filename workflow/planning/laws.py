"""The constants of the methods' laws of cost, fitted to earlier runs.

A cell takes ``start + machine * (variants * device * sum of constant * amount + added)`` CPU
seconds: the amounts are the base's law, the constants are of its terms, each variant has a factor
on what its own estimate says, and what variants do beside the base is added. A start is of a
family of bases, which imports what its methods need. A constant is a family's factor on all terms
of one name, which are the same code, times a law's own. All factors are fitted together, in
logarithms, with a prior that holds each near the round figures of the code as long as little is
known. A base that was never run costs what these figures say, times the machine's and its family's
factors; with runs on several sizes of data its law may bend by an exponent, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from workflow.planning.observed import Observed, Work
from workflow.planning.squares import least_squares

START_SECONDS = 2.5
"""Of starting a cell's process and opening its data; a round figure."""
NOISE = 0.25
"""Standard deviation of the logarithm of a run's seconds, of equal runs on one machine."""
PRIOR = {
    "start": 0.7,
    "machine": 1.0,
    "unit": 0.7,
    "constant": 0.35,
    "added": 0.7,
    "variant": 0.5,
    "device": 1.0,
    "exponent": 0.1,
}
"""Standard deviations, in logarithms, of what is fitted around the round figures."""
GPU_FASTER = {"cuda": 30.0, "mps": 5.0}
"""By which factor a card does a cell's work in fewer seconds than a core: a guess."""
MEMORY_PRIOR = 0.7

Key = tuple[str, str]


@dataclass(frozen=True)
class Laws:
    """Fitted factors, all of them logarithms; what is not in here is 0."""

    factors: Mapping[Key, float] = field(default_factory=dict)
    memory: Mapping[Key, float] = field(default_factory=dict)
    pivots: Mapping[str, float] = field(default_factory=dict)
    """Of each law the size, in seconds, around which its exponent bends it."""

    def seconds(self, work: Work) -> float:
        """CPU seconds of a cell; of a card's cell, seconds on the card."""
        return _seconds(work, self.factors, self.pivots)[0]

    def megabytes(self, work: Work) -> float:
        """Peak memory of a cell."""
        factor = sum(self.memory.get(key, 0.0) for key in _memory_keys(work))
        return work.cost.megabytes * math.exp(factor)

    def constant(self, law: str, term: str, unit_s: float, family: str = "") -> float:
        """A law's constant on this machine, from its round figure."""
        keys = [("constant", f"{law}.{term}"), ("unit", f"{family}.{term}"), ("machine", "")]
        return unit_s * math.exp(sum(self.factors.get(key, 0.0) for key in keys))

    def exponent(self, law: str) -> float:
        """By which a law's seconds grow with its amounts; 1 is as the law says."""
        return 1.0 + self.factors.get(("exponent", law), 0.0)


def fit(runs: Sequence[Observed]) -> Laws:
    """The most probable factors, given runs; without any, those of the code."""
    if not runs:
        return Laws()
    pivots = _pivots(runs)
    keys = sorted({key for run in runs for key in _seconds(run.work, {}, pivots)[1]})
    place = {key: number for number, key in enumerate(keys)}
    spread = np.array([PRIOR[kind] for kind, _ in keys])
    weight = _weights(runs)

    def residuals(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        factors = dict(zip(keys, x.tolist(), strict=True))
        missed, slopes = np.empty(len(runs)), np.zeros((len(runs), len(keys)))
        for number, run in enumerate(runs):
            planned, own = _seconds(run.work, factors, pivots)
            missed[number] = math.log(planned / run.seconds)
            slopes[number, [place[key] for key in own]] = list(own.values())
        return (
            np.concatenate([missed * weight, x / spread]),
            np.vstack([slopes * weight[:, None], np.diag(1.0 / spread)]),
        )

    found = least_squares(residuals, len(keys))
    return Laws(dict(zip(keys, found.tolist(), strict=True)), _fit_memory(runs), pivots)


@dataclass(frozen=True)
class Miss:
    """A run whose dataset the laws had not seen."""

    run: Observed
    planned: float
    known: bool
    """Whether runs of the same base were left to scale from."""

    @property
    def factor(self) -> float:
        """How far off, 1 or more, whichever way."""
        return max(self.planned / self.run.seconds, self.run.seconds / self.planned)


def leave_one_dataset_out(runs: Sequence[Observed]) -> list[Miss]:
    """What the laws say of each dataset's runs when fitted to the other datasets' alone."""
    missed = []
    for dataset in dict.fromkeys(run.cell.dataset for run in runs):
        rest = [run for run in runs if run.cell.dataset != dataset]
        laws, known = fit(rest), {run.work.law for run in rest}
        missed += [
            Miss(run, laws.seconds(run.work), run.work.law in known)
            for run in runs
            if run.cell.dataset == dataset
        ]
    return missed


def by_family(misses: Iterable[Miss]) -> dict[str, list[Miss]]:
    """The misses of each family of bases, by the family's name."""
    found: dict[str, list[Miss]] = {}
    for miss in misses:
        found.setdefault(miss.run.work.family, []).append(miss)
    return dict(sorted(found.items()))


def spread_of(factors: Iterable[float]) -> tuple[float, float, float]:
    """Of factors of 1 or more: the median, the 90 % quantile, and the share within 3."""
    values = np.fromiter(factors, float)
    if not len(values):
        return math.nan, math.nan, math.nan
    return (
        float(np.median(values)),
        float(np.quantile(values, 0.9)),
        float((values <= 3.0).mean()),
    )


def _seconds(
    work: Work, factors: Mapping[Key, float], pivots: Mapping[str, float]
) -> tuple[float, dict[Key, float]]:
    """A cell's seconds, and the slopes of their logarithm by the factors that they depend on."""
    slopes: dict[Key, float] = {}

    def exp(keys: Iterable[Key]) -> float:
        return math.exp(sum(factors.get(key, 0.0) for key in keys))

    def depends(keys: Iterable[Key], slope: float) -> None:
        for key in keys:
            slopes[key] = slopes.get(key, 0.0) + slope

    machine, started, bent = ("machine", ""), ("start", work.family), ("exponent", work.law)
    terms = {
        (("unit", f"{work.family}.{name}"), ("constant", f"{work.law}.{name}")): term.seconds
        for name, term in work.cost.terms.items()
    }
    terms = {keys: work.cost.fits * own * exp(keys) for keys, own in terms.items()}
    size = sum(terms.values())
    whole: list[Key] = [machine, *(("variant", variant) for variant in work.variants)]
    faster = GPU_FASTER.get(work.device, 1.0)
    if work.device in GPU_FASTER:
        whole.append(("device", work.device))
    power, over = 1.0, 0.0
    if work.law in pivots and size > 0:
        power, over = 1.0 + factors.get(bent, 0.0), math.log(size / pivots[work.law])
    base = size * math.exp((power - 1.0) * over) * exp(whole) / faster
    added = {(machine, ("added", name)): term.seconds for name, term in work.cost.added.items()}
    added = {keys: own * exp(keys) for keys, own in added.items()}
    start = START_SECONDS * exp([started])
    seconds = start + base + sum(added.values())

    depends([started], start / seconds)
    depends(whole, base / seconds)
    for keys, own in terms.items():
        depends(keys, power * base / seconds * (own / size if size > 0 else 0.0))
    if work.law in pivots:
        depends([bent], base / seconds * over)
    for keys, own in added.items():
        depends(keys, own / seconds)
    return seconds, slopes


def _pivots(runs: Sequence[Observed]) -> dict[str, float]:
    """The middle of the sizes that a law was run on, where these are of three datasets or more."""
    sizes: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        own = sizes.setdefault(run.work.law, {}).setdefault(run.cell.dataset, [])
        own.append(math.log(run.work.cost.seconds))
    return {
        law: math.exp(np.mean([np.mean(own) for own in by_dataset.values()]))
        for law, by_dataset in sizes.items()
        if len(by_dataset) >= 3
    }


def _weights(runs: Sequence[Observed]) -> np.ndarray:
    """Of each run's error: those that differ in nothing but the seed count as one."""
    names = [(run.cell.dataset, run.recipe, run.work.device) for run in runs]
    repeats = Counter(names)
    return np.array([1.0 / (NOISE * math.sqrt(repeats[name])) for name in names])


def _memory_keys(work: Work) -> list[Key]:
    return [("law", work.law), *(("variant", variant) for variant in work.variants)]


def _fit_memory(runs: Sequence[Observed]) -> dict[Key, float]:
    """As for seconds; in logarithms the problem is linear."""
    own = [_memory_keys(run.work) for run in runs]
    keys = sorted({key for some in own for key in some})
    A = np.array([[float(key in some) for key in keys] for some in own])
    b = np.log([run.megabytes / run.work.cost.megabytes for run in runs])
    weight = _weights(runs)
    prior = np.eye(len(keys)) / MEMORY_PRIOR
    found = np.linalg.lstsq(
        np.vstack([A * weight[:, None], prior]), np.concatenate([b * weight, np.zeros(len(keys))])
    )[0]
    return dict(zip(keys, found.tolist(), strict=True))
