"""PW, PW-cb and variants like them: factors on the loss of each label's positives (PW sec. 2-3)."""

from __future__ import annotations

import abc
from dataclasses import replace

import numpy as np

from benchmarks.data.split import Split
from benchmarks.evaluation.propensity import DEFAULT_A, DEFAULT_B, inverse_propensity
from methods.hooks import Hooks
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed


def class_balance(counts: np.ndarray, beta: float) -> np.ndarray:
    """(1 - beta) / (1 - beta^n), PW eq. 21; 1 for a label without positives, where it is moot."""
    counts = np.asarray(counts, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.where(counts > 0, (1.0 - beta) / (1.0 - beta**counts), 1.0)


class LabelWeightVariant(Variant):
    """A variant that is nothing but a factor on each label's positives."""

    sets = frozenset({"loss_weights"})

    def apply(self, base: Method) -> Method:
        """The base with a reweighted loss."""
        return Reweighted(base, self)

    @abc.abstractmethod
    def positive(self, counts: np.ndarray, inverse_p: np.ndarray) -> np.ndarray:
        """The factor of each label, from its training count and its inverse propensity."""

    def weights(self, train: Split) -> LabelWeights:
        """The factors for a training split; negatives keep weight 1.

        The propensity of a group of labels is that of a label with as many documents (PW sec. 3).
        """
        A, B = train.meta.get("A", DEFAULT_A), train.meta.get("B", DEFAULT_B)

        def of_counts(counts: np.ndarray) -> np.ndarray:
            return self.positive(counts, inverse_propensity(counts, len(train), A, B))

        counts = train.label_counts()
        return LabelWeights(of_counts(counts), np.ones(len(counts)), of_counts)


class PW(LabelWeightVariant):
    """2/p - 1 on the positives (PW eq. 15)."""

    name = "PW"

    def positive(self, counts: np.ndarray, inverse_p: np.ndarray) -> np.ndarray:
        """PW eq. 15."""
        return 2.0 * inverse_p - 1.0


class PWcb(LabelWeightVariant):
    """PW times the class-balanced term (PW eq. 21)."""

    name = "PW-cb"

    def __init__(self, beta: float = 0.9) -> None:
        self.beta = beta

    def positive(self, counts: np.ndarray, inverse_p: np.ndarray) -> np.ndarray:
        """PW eq. 21."""
        return class_balance(counts, self.beta) * (2.0 * inverse_p - 1.0)


class ClassBalanced(LabelWeightVariant):
    """The class-balanced term alone (Cui et al.; PW eq. 21 with p = 1)."""

    name = "cb"

    def __init__(self, beta: float = 0.9) -> None:
        self.beta = beta

    def positive(self, counts: np.ndarray, inverse_p: np.ndarray) -> np.ndarray:
        """PW eq. 21 with p = 1."""
        return class_balance(counts, self.beta)


class PWCostSensitive(LabelWeightVariant):
    """Reweight first, then correct for missing labels (PW eq. 20).

    The count that is balanced is the corrected one, n* = n / p.
    """

    name = "PW-cost"

    def __init__(self, beta: float = 0.9) -> None:
        self.beta = beta

    def positive(self, counts: np.ndarray, inverse_p: np.ndarray) -> np.ndarray:
        """PW eq. 20."""
        return class_balance(counts * inverse_p, self.beta) * inverse_p + inverse_p - 1.0


class Reweighted(Changed[LabelWeightVariant]):
    """A base whose loss is reweighted by a :class:`LabelWeightVariant`."""

    def __init__(self, base: Method, change: LabelWeightVariant) -> None:
        super().__init__(base, change)
        self.shardable = base.shardable  # type: ignore[misc]

    def fit_in(self, train: Split, context: FitContext) -> Model:
        hooks = Hooks(*context.hooks.values(), self._change.weights(train))
        return self._base.fit_in(train, replace(context, hooks=hooks))
