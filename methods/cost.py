"""Laws of cost: what a method says of its time and memory before anything runs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar


@dataclass(frozen=True)
class Term:
    """A part of a cost: an amount of work and the seconds that a unit of it takes on one core.

    ``unit_s`` is a round figure for a machine that nothing is known of; a plan replaces it by what
    the runs at hand say (:mod:`workflow.planning`).
    """

    amount: float
    unit_s: float

    @property
    def seconds(self) -> float:
        """Before anything was measured."""
        return self.amount * self.unit_s


@dataclass(frozen=True)
class Cost:
    """An estimate made before anything runs: a law, ``terms`` by the names of their constants.

    It is of fitting and of predicting the test documents; ``fits`` is how often variants have
    the base fitted, and multiplies all ``terms``. Those of one name in a package of methods are of
    the same code. ``added`` is what variants do beside such fits.
    """

    terms: Mapping[str, Term]
    megabytes: float
    fits: float = 1.0
    added: Mapping[str, Term] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """One core's seconds by the round figures."""
        own = sum(term.seconds for term in self.terms.values())
        return self.fits * own + sum(term.seconds for term in self.added.values())


def law(cost: Callable[[Mapping[str, Any]], Cost | None], meta: Mapping[str, Any]) -> Cost | None:
    """What a method's ``cost`` says of such data; None where it has no law, or a broken one.

    ``cost`` may be a user's code and is asked while a run goes on. A law only tells how long that
    will be, so one that raises, or whose numbers are none, is a warning and stops nothing. No cell
    calls this, so it counts for no digest.
    """
    try:
        found = cost(meta)
        fault = "" if found is None else _fault(found)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    if fault:
        name = getattr(getattr(cost, "__self__", None), "name", "a method")
        warnings.warn(f"the law of cost of {name} is left out: {fault}", stacklevel=2)
        return None
    return found


def _fault(found: Cost) -> str:
    """Why a cost cannot be planned with; empty where it can."""
    terms = [*found.terms.values(), *found.added.values()]
    parts = [found.fits, *(part for term in terms for part in (term.amount, term.unit_s))]
    if not all(math.isfinite(part) and part >= 0 for part in (*parts, found.megabytes)):
        return f"an amount is negative or no number in {found}"
    # What variants add is no law of the base.
    own = found.fits * sum(term.seconds for term in found.terms.values())
    return "" if own > 0 and found.megabytes > 0 else f"it says nothing at all: {found}"


Priced = TypeVar("Priced", bound=Callable[..., Any])


def price_only(function: Priced) -> Priced:
    """Mark what only tells how much a fit will cost: it changes no result.

    The digest of a cell's code leaves such functions of classes out, so that a better estimate
    reruns nothing. It goes below ``@property`` and the like.
    """
    return function


ASSUMED_WORDS = 200.0
"""Words per document where the data do not say."""


def words_per_document(meta: Mapping[str, Any]) -> float:
    """Non-zero features per training document."""
    return float(meta.get("features_per_train_document") or ASSUMED_WORDS)


def labels_per_document(meta: Mapping[str, Any]) -> float:
    """Labels per training document, 5 where the data do not say."""
    return float(meta.get("labels_per_document") or 5.0)


def trained_label_count(meta: Mapping[str, Any]) -> int:
    """Labels with a training document, as far as the data say which."""
    return int(meta.get("labels_in_train") or meta["n_labels"])
