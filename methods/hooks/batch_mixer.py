"""Changes to every training batch in the middle of its forward pass (TailMix and its rivals).

A base that takes mixers computes in stages: embeddings -> hidden states -> contexts (a vector per
label) -> logits. A mixer acts at one of them and hands on what the later stages go on from, so it
costs no second forward pass; :attr:`Flow.loss_of` is there for those whose paper asks for one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from methods.hooks import Hook


@dataclass(frozen=True)
class Flow:
    """A batch between two stages; arrays are of the type the base trains on (torch tensors).

    ``values`` is what the stage gave: embeddings or hidden states [n, T, d], or the object of
    per-label contexts. ``targets`` is [n, L], ``mask`` [n, T] and False at padding, ``ids`` the
    tokens [n, T]. The batch's loss is ``weight`` times that of the targets plus ``added``.
    ``loss_of`` runs the later stages on a flow of this stage and gives its loss.
    """

    values: Any
    targets: Any
    mask: Any
    ids: Any
    loss_of: Callable[[Flow], Any]
    weight: float = 1.0
    added: Any = 0.0


class BatchMixer(Hook):
    """Mixes a batch at the stage that its kind names, from the epoch ``start`` (from 0) on."""

    start: int = 0

    @abc.abstractmethod
    def mix(self, flow: Flow, rng: np.random.Generator) -> Flow:
        """The flow to go on with. Parts of one batch are given generators that draw alike, so a
        number drawn first (the mixing ratio) is one for the batch."""

    def joined(self, other: BatchMixer) -> BatchMixer:
        """Mixes by this one, then by the other."""
        return _Both(self, other)

    def at_epoch(self, epoch: int) -> bool:
        """Whether it acts in the epoch: some papers train without it first."""
        return epoch >= self.start


class EmbeddingMixer(BatchMixer):
    """Acts on word embeddings (wordMix, SSMix)."""

    kind = "embedding_mixer"


class HiddenMixer(BatchMixer):
    """Acts on hidden states after one of the encoder's layers (hiddenMix, TMix)."""

    kind = "hidden_mixer"

    def layer(self, n_layers: int, rng: np.random.Generator) -> int:
        """After which layer it acts, 1..n_layers; drawn anew for each batch where it varies."""
        return n_layers


class ContextMixer(BatchMixer):
    """Acts on the context vectors of labels (TailMix)."""

    kind = "context_mixer"


class _Both(BatchMixer):
    def __init__(self, *mixers: BatchMixer) -> None:
        self.mixers = mixers
        self.kind = mixers[0].kind  # type: ignore[misc]
        self.start = max(mixer.start for mixer in mixers)

    def mix(self, flow: Flow, rng: np.random.Generator) -> Flow:
        for mixer in self.mixers:
            flow = mixer.mix(flow, rng)
        return flow
