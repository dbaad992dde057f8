"""The identity of a cell and of its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

KEY = ["dataset", "base", "variant", "seed"]
"""The columns that name a cell, in every frame that has rows of cells."""

RECORD, PREDICTIONS, NORMS = "run.json", "predictions.npz", "norms.npz"
METRICS, INSTANCE, EVALUATION = "metrics.csv", "instance.npz", "evaluation.json"

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

    def file(self, name: str, results: str | Path = "results") -> Path:
        """The path of one of its files, ``INSTANCE`` for example, below a folder of results."""
        return Path(results, "runs", self.path, name)

    @classmethod
    def from_path(cls, path: str | Path) -> Cell:
        """The cell of a folder below ``results/runs``."""
        dataset, base, variant, seed = PurePosixPath(path).parts[-4:]
        return cls(dataset, base, variant, int(seed.removeprefix("seed")))

    def __str__(self) -> str:
        return f"{self.dataset} / {self.base} / {self.variant} / seed {self.seed}"


class Setup(NamedTuple):
    """dataset x base x variant: what the cells of several seeds have in common."""

    dataset: str
    base: str
    variant: str

    def cell(self, seed: int) -> Cell:
        """The cell of one seed."""
        return Cell(*self, seed)

    def __str__(self) -> str:
        return "/".join(self)
