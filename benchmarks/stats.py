"""Statistics over metrics: relative change, intervals, paired tests, corrections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Kind = Literal["PS", "vanilla"]

SUMMARY_METRICS: dict[Kind, tuple[str, ...]] = {
    "PS": ("PSP@1", "PSP@3", "PSP@5", "PSP@1", "PSnDCG@3", "PSnDCG@5"),
    "vanilla": ("P@1", "P@3", "P@5", "P@1", "nDCG@3", "nDCG@5"),
}
"""The six terms of PW eq. 30: @1 stands twice, since nDCG@1 = P@1 and PSnDCG@1 = PSP@1."""


def mean_relative_change(
    base: Mapping[str, float], variant: Mapping[str, float], kind: Kind
) -> float:
    """PW eq. 30: the mean over six metrics of (variant - base) / base, in percent."""
    names = SUMMARY_METRICS[kind]
    missing = sorted({n for n in names if n not in base or n not in variant})
    if missing:
        raise KeyError(f"the mean change of {kind} metrics needs {', '.join(missing)}")
    changes = [(variant[name] - base[name]) / base[name] for name in names]
    return 100.0 * sum(changes) / len(changes)
