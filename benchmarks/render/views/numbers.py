"""How numbers are written on the page, and how they go into its data."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.records.summary import Estimate
from benchmarks.render.table import MINUS, MISSING

DIGITS = 4
"""Decimals of the numbers in the page's data: twice as many as are shown."""

SIGNS = {1: ("up", "rises: the interval lies above zero"), -1: ("down", "falls: it lies below")}


def plain(value: float, decimals: int = 2) -> str:
    """``12.34``, or a dash where there is no number."""
    return MISSING if math.isnan(value) else f"{value:.{decimals}f}".replace("-", MINUS)


def signed(value: float, decimals: int = 1) -> str:
    """``+12.3``, or a dash."""
    return MISSING if math.isnan(value) else f"{value:+.{decimals}f}".replace("-", MINUS)


def bracket(estimate: Estimate, decimals: int = 1, sign: bool = True) -> str:
    """``[+11.9, +14.6]`` on one line; empty where there is no interval."""
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return ""
    write = signed if sign else plain
    low, high = (write(bound, decimals) for bound in (estimate.low, estimate.high))
    return f"[{low},\N{NO-BREAK SPACE}{high}]"


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if math.isnan(value):
        return MISSING
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.1f} min" if value < 3600 else f"{value / 3600:,.1f} h"


def data(value: Any) -> Any:
    """The value as JSON can hold it: NaN is null, floats are rounded."""
    if isinstance(value, dict):
        return {str(key): data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [data(item) for item in value]
    if isinstance(value, bool | str | type(None)):
        return value
    if isinstance(value, int):
        return value
    number = float(value)
    return round(number, DIGITS) if math.isfinite(number) else None
