"""The identity of a cell and of its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

PLAIN = "plain"
"""The variant of a cell that leaves its base as it is."""


@dataclass(frozen=True)
class Cell:
    """dataset x base x variant x seed: the unit of running, caching, failing and reporting."""

    dataset: str
    base: str
    variant: str
    seed: int

    @property
    def path(self) -> str:
        """Its identity: the folder of its files, below ``results/runs``."""
        return str(PurePosixPath(self.dataset, self.base, self.variant, f"seed{self.seed}"))

    @classmethod
    def from_path(cls, path: str) -> Cell:
        """The cell of a folder below ``results/runs``."""
        dataset, base, variant, seed = PurePosixPath(path).parts[-4:]
        return cls(dataset, base, variant, int(seed.removeprefix("seed")))

    def __str__(self) -> str:
        return f"{self.dataset} / {self.base} / {self.variant} / seed {self.seed}"
