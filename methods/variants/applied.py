"""A base with a variant applied: what all such methods have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from benchmarks.data.split import Split
from methods.cost import Cost, Term, price_only
from methods.interface import Method, Resources, Variant
from methods.warm_up import fit_tiny

Change = TypeVar("Change", bound=Variant)


class Changed(Method, Generic[Change]):
    """A method that is a base and a change to it; sub-classes do the fitting.

    It cannot be sharded unless a sub-class says so: most changes look at all labels at once.
    """

    def __init__(self, base: Method, change: Change) -> None:
        self._base = base
        self._change = change
        self.name = base.name  # type: ignore[misc]
        self.needs = base.needs  # type: ignore[misc]
        self.accepts = base.accepts  # type: ignore[misc]
        self.seedable = base.seedable  # type: ignore[misc]
        self.dev_size = base.dev_size  # type: ignore[method-assign]

    @property
    def resources(self) -> frozenset[str]:
        """Those of the base."""
        return self._base.resources

    @property
    def variant(self) -> str:
        """The name of the change, before those already made to the base."""
        inner = self._base.variant
        return self._change.name if inner == "plain" else f"{self._change.name}+{inner}"

    def params(self) -> dict[str, dict[str, Any]]:
        """The hyper-parameters of the base and of each variant, by owner."""
        return {**self._base.params(), self._change.name: dict(vars(self._change))}

    @price_only
    def fits_of_base(self) -> float:
        """How many times the base is fitted, for the estimate of the cost."""
        return 1

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """The cost of a fit of the base, times the number of such fits, and what is beside."""
        cost = self._base.cost(meta)
        if cost is None:
            return None
        added = {**cost.added, **self.work_beside(meta)}
        return replace(cost, fits=cost.fits * self.fits_of_base(), added=added)

    @price_only
    def work_beside(self, meta: Mapping[str, Any]) -> Mapping[str, Term]:
        """What is done beside fits of the base, for the estimate of the cost."""
        return {}

    def warm_up(self, train: Split) -> None:
        """Compile for the base alone, then for what the variant makes of it."""
        self._base.warm_up(train)
        if self.needs == {"bow"}:
            fit_tiny(self, train)

    def skip(self, meta: Mapping[str, Any], resources: Resources) -> str | None:
        """The reason why the base cannot run here, or None."""
        return self._base.skip(meta, resources)
