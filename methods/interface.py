"""The protocol between the harness and whatever it runs: Method, Model, Variant, FitContext.

A method is a set of hyper-parameters with a ``fit``; a model is what it returns. Both are plain
Python: nothing here depends on Snakemake, on the files of a cell or on the command line.

This module is a contract and computes nothing; what changes a result lives in modules of its own
(:mod:`methods.hooks`, :mod:`methods.holdout`).
"""

from __future__ import annotations

import abc
import importlib.util
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.data.split import Inputs, Split
from methods.cost import Cost
from methods.holdout import hold_out
from methods.hooks import Hook, Hooks

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.evaluation.topk import TopK

DIGEST_EXEMPT = {"dev_size": "methods.holdout"}
"""Leaves this module out of the digests of cells: a new hook kind, context field or method of a
class here reruns nothing. Where a method defines one of these names, the module given counts."""


class DivergedError(Exception):
    """What was to be minimised has no minimum: there is no model, and no value to measure."""


@dataclass(frozen=True)
class Resources:
    """What a run may use of the machine; ``skip`` decides on it."""

    threads: int = 1
    memory_mb: float = float("inf")
    wall_s: float = float("inf")
    device: str = "cpu"


class Clock:
    """Remaining wall time, for methods that can stop early rather than be stopped."""

    def __init__(self, wall_s: float = float("inf")) -> None:
        self.deadline = time.monotonic() + wall_s

    def remaining(self) -> float:
        """Seconds left; negative when past the deadline."""
        return self.deadline - time.monotonic()


def no_progress(done: float, total: float, what: str = "") -> None:
    """The default ``progress``: reports nothing."""


Progress = Callable[[float, float, str], None]


@dataclass(frozen=True)
class FitContext:
    """How to fit, apart from what to fit: one object, so that adapters pass it on whole.

    ``dev`` is a validation split held out of train, for methods with a ``dev_size``.
    ``resources`` are the paths of the word vectors and encoders that the method names.
    ``hooks`` act on the training, by kind. ``shard`` is ``(i, of)``: fit only the i-th part of the
    labels. ``checkpoint`` is a folder that survives a kill, for work that can be resumed.
    """

    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    dev: Split | None = None
    resources: Mapping[str, Path] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    shard: tuple[int, int] | None = None
    checkpoint: Path | None = None
    clock: Clock = field(default_factory=Clock)
    progress: Progress = no_progress


class Model(abc.ABC):
    """A fitted method."""

    notes: Sequence[str] = ()
    """What a reader of the result should know: a bound that was hit, a label left out."""
    decision_threshold: float | None = None
    """The score above which a label is predicted to apply; None where scores only rank."""
    fit_history: Mapping[str, Sequence[float]] = {}
    """What the fit measured on its training documents, by name: one value per epoch, or one."""

    @abc.abstractmethod
    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k best labels of each document."""

    def label_norms(self) -> np.ndarray | None:
        """Euclidean norm of each label's classifier, float32[L]; None where there is none."""
        return None

    @classmethod
    def merge(cls, models: Sequence[Any]) -> Model:
        """One model of the shards of a fit; only for methods that are ``shardable``."""
        raise NotImplementedError(f"{cls.__name__} cannot be put together from shards")

    @abc.abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model into an existing, empty folder."""

    @classmethod
    @abc.abstractmethod
    def load(cls, folder: Path) -> Model:
        """The model that :meth:`save` wrote into the folder."""


class Method(abc.ABC):
    """A base learner with its hyper-parameters.

    Sub-classes take every hyper-parameter as a keyword of ``__init__`` with a default, store it
    under the same name, and implement :meth:`fit_in`.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"bow"})
    """Which of bow, tokens, texts it must be given."""
    accepts: ClassVar[frozenset[str]] = frozenset()
    """The kinds of hooks that act on its training, see :mod:`methods.hooks`."""
    shardable: ClassVar[bool] = False
    """Whether parts of the labels can be fitted apart and merged."""
    seedable: ClassVar[bool] = True
    """Whether a seed fixes the result; only other people's programs may say no."""
    package: ClassVar[str] = ""
    """An optional package it needs."""
    extra: ClassVar[str] = ""
    """The extra of this project that installs the package."""

    @property
    def resources(self) -> frozenset[str]:
        """Names of the word vectors, tokenisers and encoders it must be given the paths of.

        They may follow from a parameter; a class that always needs the same sets an attribute.
        """
        return frozenset()

    @property
    def variant(self) -> str:
        """The variant applied on top; ``plain`` for the base itself."""
        return "plain"

    def params(self) -> dict[str, dict[str, Any]]:
        """The hyper-parameters by their owner, ``{"RankNet": {"rate": ...}, "Bonsai": {...}}``."""
        return {self.name: {k: v for k, v in vars(self).items() if not k.startswith("_")}}

    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """The law of seconds (one core) and megabytes on such data; None where none is known."""
        return None

    def dev_size(self, meta: Mapping[str, Any]) -> int:
        """How many training documents the harness is to hold out as ``dev``."""
        return 0

    def skip(self, meta: Mapping[str, Any], resources: Resources) -> str | None:
        """A reason not to run here, or None."""
        missing = self.needs - set(meta.get("inputs", self.needs))
        if missing:
            return f"{self.name} needs {', '.join(sorted(missing))}; the dataset has none"
        if self.package and importlib.util.find_spec(self.package) is None:
            wanted = f"'tailtables[{self.extra}]'" if self.extra else self.package
            return f"{self.name} needs the package {self.package}: pip install {wanted}"
        return None

    def warm_up(self, train: Split) -> None:  # noqa: B027 (most compile nothing)
        """Compile what ``fit`` and ``predict`` will run on such data, before they are timed."""

    def fit(
        self,
        train: Split,
        *,
        seed: int = 0,
        dev: Split | None = None,
        hooks: Iterable[Hook] = (),
        **context: Any,
    ) -> Model:
        """Fit on a training split; see :class:`FitContext` for what else can be given."""
        given = Hooks(*hooks)
        refused = given.keys() - self.accepts
        if refused:
            raise ValueError(f"{self.name} does not take {in_words(refused)}")
        missing = self.needs - train.inputs.kinds
        if missing:
            raise ValueError(f"{self.name} needs {', '.join(sorted(missing))} in train.inputs")
        missing = self.resources - context.get("resources", {}).keys()
        if missing:
            raise ValueError(f"{self.name} needs the resources {', '.join(sorted(missing))}")
        train = train.observed()
        if dev is None and self.dev_size(train.meta):
            train, dev = hold_out(train, self.dev_size(train.meta), seed)
        return self.fit_in(train, FitContext(seed=seed, dev=dev, hooks=given, **context))

    @abc.abstractmethod
    def fit_in(self, train: Split, context: FitContext) -> Model:
        """Fit in a context that is complete: what :meth:`fit` and composed methods call."""


class Variant(abc.ABC):
    """A change to a base: its loss weights, data, batches, regulariser, scores or classifier."""

    name: ClassVar[str]
    sets: ClassVar[frozenset[str]] = frozenset()
    """The kinds of hooks it adds to the base's training."""

    def misfit(self, base: Method) -> str | None:
        """Why this variant cannot be applied to the base; None where it can."""
        refused = self.sets - base.accepts
        return f"{base.name} takes no {in_words(refused)} in its training" if refused else None

    @abc.abstractmethod
    def apply(self, base: Method) -> Method:
        """The changed method; call only where :meth:`misfit` is None."""


def in_words(kinds: Iterable[str]) -> str:
    """Kinds of hooks as a reader sees them: ``loss weights, regulariser``."""
    return ", ".join(sorted(kinds)).replace("_", " ")
