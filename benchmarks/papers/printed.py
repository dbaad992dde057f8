"""Interval arithmetic on printed values: 12.34 stands for anything in [12.335, 12.345].

Whatever is computed from printed cells is an interval that must hold the true result, so a
printed result outside it does not follow from the cells. The arithmetic is outward-safe up to
``SLACK``, which also forgives a value that was rounded half up or half to even.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SLACK = 1e-9
_NUMBER = re.compile(r"[+-]?\d+(?:\.(\d+))?")


@dataclass(frozen=True)
class Interval:
    """A closed interval of reals."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"an interval runs from low to high, not {self.low} to {self.high}")

    @property
    def middle(self) -> float:
        """The centre: of a printed value, the value."""
        return (self.low + self.high) / 2

    @property
    def half_width(self) -> float:
        """Half the length."""
        return (self.high - self.low) / 2

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(corners), max(corners))

    def __truediv__(self, other: Interval) -> Interval:
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError(f"{other} holds zero")
        return self * Interval(1 / other.high, 1 / other.low)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def scaled(self, factor: float) -> Interval:
        """Each member times a number."""
        return self * Interval(factor, factor)

    def overlaps(self, other: Interval) -> bool:
        """Whether the two have a member in common."""
        return self.low <= other.high + SLACK and other.low <= self.high + SLACK

    def below(self, other: Interval) -> bool:
        """Whether every member is less than every member of the other."""
        return self.high < other.low - SLACK

    def __str__(self) -> str:
        return f"[{self.low:.4g}, {self.high:.4g}]"


def printed(text: str) -> Interval:
    """The interval of values that print as ``text`` ("+5.25", "70.2", "1,186,239")."""
    clean = text.strip().replace(",", "").replace("\N{MINUS SIGN}", "-").rstrip("%x×")
    match = _NUMBER.fullmatch(clean)
    if match is None:
        raise ValueError(f"{text!r} is not a printed value")
    half = 0.5 * 10.0 ** -len(match.group(1) or "")
    return Interval(float(clean) - half, float(clean) + half)


def exactly(value: float) -> Interval:
    """A number known without rounding."""
    return Interval(value, value)


def mean(terms: Sequence[Interval]) -> Interval:
    """The mean of some intervals."""
    if not terms:
        raise ValueError("the mean of nothing")
    return Interval(sum(t.low for t in terms), sum(t.high for t in terms)).scaled(1 / len(terms))


def relative_change(variant: Interval, base: Interval) -> Interval:
    """(variant - base) / base in percent; the base is used once, so no width is added twice."""
    return (variant / base - exactly(1.0)).scaled(100.0)
