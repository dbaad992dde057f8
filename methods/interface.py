"""The protocol between the harness and whatever it runs: Method, Model, Variant.

A method is a set of hyper-parameters with a ``fit``; a model is what came of it. Both are plain
Python: no part of this file knows of Snakemake, files of a cell or the command line.
"""

from __future__ import annotations

import abc
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK


@dataclass(frozen=True)
class Resources:
    """What a run may use; ``skip`` decides on it."""

    threads: int = 1
    memory_mb: float = float("inf")
    wall_s: float = float("inf")
    device: str = "cpu"


@dataclass(frozen=True)
class Cost:
    """An estimate made before anything runs."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class LabelWeights:
    """Factors on the loss of a label's positives and negatives, float64[L] each."""

    positive: np.ndarray
    negative: np.ndarray


class Clock:
    """Remaining wall time, for methods that can stop early rather than be stopped."""

    def __init__(self, wall_s: float = float("inf")) -> None:
        self.deadline = time.monotonic() + wall_s

    def remaining(self) -> float:
        """Seconds left; negative when past the deadline."""
        return self.deadline - time.monotonic()


def no_progress(done: float, total: float, what: str = "") -> None:
    """The default ``progress``: silence."""


Progress = Callable[[float, float, str], None]


@dataclass(frozen=True)
class FitContext:
    """How to fit, apart from what to fit: one object, so that adapters pass it on whole.

    ``shard`` is ``(i, of)``: fit only the i-th part of the labels. ``checkpoint`` is a folder
    that survives a kill, for work that can be resumed.
    """

    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    weights: LabelWeights | None = None
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
        """Read back what :meth:`save` wrote."""


class Method(abc.ABC):
    """A base learner with its hyper-parameters.

    Sub-classes take every hyper-parameter as a keyword of ``__init__`` with a default, store it
    under the same name, and implement :meth:`_fit`.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"bow"})
    """Which of bow, tokens, texts, weights (pretrained) it must be given."""
    takes_label_weights: ClassVar[bool] = False
    """Whether ``weights`` (PW and its kin) act on its loss."""
    shardable: ClassVar[bool] = False
    """Whether parts of the labels can be fitted apart and merged."""
    seedable: ClassVar[bool] = True
    """Whether a seed fixes the result; only other people's programs may say no."""
    package: ClassVar[str] = ""
    """An optional package it needs, of the extra ``peers``."""

    @property
    def variant(self) -> str:
        """The variant applied on top; ``plain`` for the base itself."""
        return "plain"

    def params(self) -> dict[str, Any]:
        """The hyper-parameters, for the record."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """Estimated seconds (one core) and megabytes; None where no law is known."""
        return None

    def skip(self, meta: Mapping[str, Any], resources: Resources) -> str | None:
        """A reason not to run here, or None."""
        missing = self.needs - set(meta.get("inputs", self.needs))
        if missing:
            return f"{self.name} needs {', '.join(sorted(missing))}; the dataset has none"
        if self.package and importlib.util.find_spec(self.package) is None:
            return f"{self.name} needs {self.package}: pip install 'tailtables[peers]'"
        return None

    def fit(self, train: Split, *, seed: int = 0, **context: Any) -> Model:
        """Fit on a training split; see :class:`FitContext` for what else can be said."""
        weights = context.get("weights")
        if weights is not None and not self.takes_label_weights:
            raise ValueError(f"{self.name} does not take label weights")
        missing = self.needs - train.inputs.kinds - {"weights"}
        if missing:
            raise ValueError(f"{self.name} needs {', '.join(sorted(missing))} in train.inputs")
        return self._fit(train.observed(), FitContext(seed=seed, **context))

    @abc.abstractmethod
    def _fit(self, train: Split, context: FitContext) -> Model:
        """Do the fitting."""


class Variant(abc.ABC):
    """A change to a base: its loss weights, data, batches, regulariser, scores or classifier."""

    name: ClassVar[str]

    @abc.abstractmethod
    def misfit(self, base: Method) -> str | None:
        """Why this variant cannot be applied to the base; None where it can."""

    @abc.abstractmethod
    def apply(self, base: Method) -> Method:
        """The changed method; call only where :meth:`misfit` is None."""
