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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import least_squares

from workflow.planning.observed import Observed, Work

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
        return _seconds(work, self.factors, self.pivots)

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
    keys = sorted({key for run in runs for key in _keys(run.work)})
    pivots = _pivots(runs)
    keys = [key for key in keys if key[0] != "exponent" or key[1] in pivots]
    place = {key: number for number, key in enumerate(keys)}
    spread = np.array([PRIOR[kind] for kind, _ in keys])
    actual = np.log([run.seconds for run in runs])
    weight = 1.0 / (NOISE * np.sqrt(_repeats(runs)))

    def residuals(x: np.ndarray) -> np.ndarray:
        factors = {key: x[number] for key, number in place.items()}
        planned = np.log([_seconds(run.work, factors, pivots) for run in runs])
        return np.concatenate([(planned - actual) * weight, x / spread])

    found = least_squares(residuals, np.zeros(len(keys))).x
    factors = dict(zip(keys, found.tolist(), strict=True))
    return Laws(factors, _fit_memory(runs), pivots)


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


def _keys(work: Work) -> list[Key]:
    return [
        ("machine", ""),
        ("start", work.family),
        *(("unit", f"{work.family}.{term}") for term in work.cost.terms),
        *(("constant", f"{work.law}.{term}") for term in work.cost.terms),
        *(("added", term) for term in work.cost.added),
        *(("variant", variant) for variant in work.variants),
        *([("device", work.device)] if work.device in GPU_FASTER else []),
        ("exponent", work.law),
    ]


def _seconds(work: Work, factors: Mapping[Key, float], pivots: Mapping[str, float]) -> float:
    def of(kind: str, name: str = "") -> float:
        return factors.get((kind, name), 0.0)

    size = work.cost.fits * sum(
        term.seconds
        * math.exp(of("unit", f"{work.family}.{name}") + of("constant", f"{work.law}.{name}"))
        for name, term in work.cost.terms.items()
    )
    pivot = pivots.get(work.law)
    if pivot is not None and size > 0:
        size = pivot * (size / pivot) ** (1.0 + of("exponent", work.law))
    factor = of("machine") + sum(of("variant", variant) for variant in work.variants)
    if work.device in GPU_FASTER:
        factor += of("device", work.device) - math.log(GPU_FASTER[work.device])
    added = sum(t.seconds * math.exp(of("added", name)) for name, t in work.cost.added.items())
    start = START_SECONDS * math.exp(of("start", work.family))
    return start + size * math.exp(factor) + added * math.exp(of("machine"))


def _pivots(runs: Sequence[Observed]) -> dict[str, float]:
    """The middle of the sizes that a law was run on, where these are of three datasets or more."""
    sizes: dict[str, dict[str, float]] = {}
    for run in runs:
        sizes.setdefault(run.work.law, {})[run.cell.dataset] = run.work.cost.seconds
    return {
        law: math.exp(np.mean(np.log(list(own.values()))))
        for law, own in sizes.items()
        if len(own) >= 3 and min(own.values()) > 0
    }


def _repeats(runs: Sequence[Observed]) -> np.ndarray:
    """How many runs each has that differ from it in nothing but the seed, itself included."""
    names = [(run.cell.dataset, run.recipe, run.work.device) for run in runs]
    return np.array([names.count(name) for name in names], float)


def _memory_keys(work: Work) -> list[Key]:
    return [("law", work.law), *(("variant", variant) for variant in work.variants)]


def _fit_memory(runs: Sequence[Observed]) -> dict[Key, float]:
    """As for seconds; in logarithms the problem is linear."""
    keys = sorted({key for run in runs for key in _memory_keys(run.work)})
    A = np.array([[float(key in _memory_keys(run.work)) for key in keys] for run in runs])
    b = np.log([run.megabytes / run.work.cost.megabytes for run in runs])
    weight = 1.0 / (NOISE * np.sqrt(_repeats(runs)))
    prior = np.eye(len(keys)) / MEMORY_PRIOR
    found = np.linalg.lstsq(
        np.vstack([A * weight[:, None], prior]), np.concatenate([b * weight, np.zeros(len(keys))])
    )[0]
    return dict(zip(keys, found.tolist(), strict=True))
