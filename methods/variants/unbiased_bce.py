"""The truly unbiased cross-entropy (PW eq. 13), which the paper derives and then avoids.

It is the cross-entropy against y / p in place of y: linear in the target, so its expectation over
what went missing is that on the complete labels. For p < 1 it is not bounded from below.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.data.split import Split
from methods.hooks import Hooks
from methods.hooks.target_scale import TargetScale
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed


class UnbiasedBCE(Variant):
    """PW eq. 13 in place of the cross-entropy of a deep base."""

    name = "unbiased-bce"
    sets = frozenset({"target_scale"})

    def apply(self, base: Method) -> Method:
        """The base with targets y / p."""
        return WithScaledTargets(base, self)


class WithScaledTargets(Changed[UnbiasedBCE]):
    """A base whose positives have 1 / p as their target."""

    def fit_in(self, train: Split, context: FitContext) -> Model:
        scale = TargetScale(train.inverse_propensity())
        hooks = Hooks(*context.hooks.values(), scale)
        return self._base.fit_in(train, replace(context, hooks=hooks))
