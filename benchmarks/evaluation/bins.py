"""Label-frequency bins: head, torso, tail; deciles; labels seen once; labels never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

N_DECILES = 10
HEAD_DECILES = 1
TORSO_DECILES = 5
"""Deciles 1 | 2-5 | 6-10 of the labels by falling frequency are head | torso | tail."""

PARTS = ("head", "torso", "tail", "unseen")
DECILES = tuple(f"decile {d}" for d in range(1, N_DECILES + 1))
ONCE = "once"


@dataclass(frozen=True)
class Bins:
    """Named sets of labels; ``of_label`` is int16[L, s], the bins of each label, -1 for none.

    The slots are separate schemes: parts (head, torso, tail, unseen), deciles, seen once. Within
    a scheme bins do not overlap, so that contributions of the parts add up to the metric.
    """

    names: tuple[str, ...]
    of_label: np.ndarray

    def __post_init__(self) -> None:
        if self.of_label.ndim != 2:
            raise ValueError(f"of_label must be labels x schemes, not {self.of_label.shape}")
        if self.of_label.size and self.of_label.max() >= len(self.names):
            raise ValueError("of_label names a bin that has no name")

    def members(self, name: str) -> np.ndarray:
        """Indices of the labels in a bin."""
        return np.flatnonzero((self.of_label == self.names.index(name)).any(axis=1))

    def sizes(self) -> dict[str, int]:
        """How many labels each bin holds."""
        return {name: len(self.members(name)) for name in self.names}


def frequency_bins(counts: np.ndarray) -> Bins:
    """Bins from each label's number of training documents.

    Deciles hold equal numbers of the labels seen in training, the most frequent in decile 1;
    among labels of one frequency the lower index goes first. Labels without a training document
    are ``unseen`` and in no decile.
    """
    counts = np.asarray(counts)
    names = (*PARTS, *DECILES, ONCE)
    of_label = np.full((len(counts), 3), -1, dtype=np.int16)
    order = np.argsort(-counts, kind="stable")
    seen = order[counts[order] > 0]
    decile = np.arange(len(seen)) * N_DECILES // max(len(seen), 1)
    part = np.searchsorted([HEAD_DECILES, TORSO_DECILES], decile, side="right")
    of_label[seen, 0] = part
    of_label[counts == 0, 0] = PARTS.index("unseen")
    of_label[seen, 1] = len(PARTS) + decile
    of_label[counts == 1, 2] = names.index(ONCE)
    return Bins(names, of_label)
