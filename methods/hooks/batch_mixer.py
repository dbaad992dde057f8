"""A change to every training batch (TailMix and its rivals), for bases trained by batches."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from methods.hooks import Hook


class BatchMixer(Hook):
    """Mixes the documents of a batch; ``inputs`` are of whatever type the base trains on."""

    kind = "batch_mixer"

    @abc.abstractmethod
    def mix(self, inputs: Any, targets: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """The inputs and targets to train on in place of those given; their length may differ."""

    def joined(self, other: BatchMixer) -> BatchMixer:
        """Mixes by this one, then by the other."""
        return _Both(self, other)


class _Both(BatchMixer):
    def __init__(self, *mixers: BatchMixer) -> None:
        self.mixers = mixers

    def mix(self, inputs: Any, targets: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        for mixer in self.mixers:
            inputs, targets = mixer.mix(inputs, targets, rng)
        return inputs, targets
