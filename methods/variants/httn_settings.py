"""HTTN with other settings: its ablations, and what its paper varies, as variants of the base.

As variants they are paired with the plain base, whose seed they share, so that a difference is
that of the setting. In a configuration, ``{extends: httn-setting, params: {S: 5}}`` names one.
"""

from __future__ import annotations

import copy
from typing import Any

from benchmarks.data.split import Split
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed


class Setting(Variant):
    """Another number of head draws, tail labels, or one member of the ensemble.

    What is None stays as the base has it. ``l_tail`` fits every base that tells head from tail.
    """

    name = "httn-setting"

    def __init__(
        self, S: int | None = None, l_tail: float | None = None, member: int | None = None
    ) -> None:
        self.S = S
        self.l_tail = l_tail
        self.member = member

    def changes(self) -> dict[str, Any]:
        """The settings that differ, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def misfit(self, base: Method) -> str | None:
        """Why the base has no such setting; None where it has."""
        missing = [name for name in {"l_tail", *self.changes()} if not hasattr(base, name)]
        return f"{base.name} has no setting {', '.join(sorted(missing))}" if missing else None

    def apply(self, base: Method) -> Method:
        """The base with its settings changed."""
        return Reset(base, self)


class WithoutFineTuning(Setting):
    """H-F of the ablation: the classifier stays as it was put together (eq. 12)."""

    name = "H-F"

    def __init__(self) -> None:
        self.fine_tune_epochs = 0


class WithoutAttention(Setting):
    """H-F-A of the ablation: neither fine-tuning nor attention over the head (eq. 9)."""

    name = "H-F-A"

    def __init__(self) -> None:
        self.fine_tune_epochs = 0
        self.attention = False


class Reset(Changed[Setting]):
    """A copy of the base with some settings changed."""

    def __init__(self, base: Method, change: Setting) -> None:
        changed = copy.copy(base)
        for name, value in change.changes().items():
            setattr(changed, name, value)
        super().__init__(changed, change)

    def fit_in(self, train: Split, context: FitContext) -> Model:
        return self._base.fit_in(train, context)
