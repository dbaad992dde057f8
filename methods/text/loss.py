"""The loss of a batch: weighted binary cross-entropy, batch mixers and a regulariser in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn import functional as F

from methods.hooks import Hooks
from methods.hooks.batch_mixer import (
    BatchMixer,
    ContextMixer,
    EmbeddingMixer,
    Flow,
    HiddenMixer,
)
from methods.hooks.loss_weights import LabelWeights
from methods.hooks.regulariser import Regulariser
from methods.hooks.target_scale import TargetScale
from methods.text.batches import TokenBatch
from methods.text.network import TextNetwork


def mean_one(weights: np.ndarray) -> np.ndarray:
    """Weights divided by their mean over the labels (PW eq. 24)."""
    return np.asarray(weights, np.float64) / np.mean(weights)


class BinaryCrossEntropy:
    """Cross-entropy of logits against targets in [0, 1], averaged over documents and labels.

    ``positive`` and ``negative`` are factors on the two terms of each label (PW eq. 23), ``scale``
    is a factor on the targets: with 1 / p it is the unbiased loss (PW eq. 13).
    """

    def __init__(
        self,
        positive: np.ndarray | None = None,
        negative: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.positive = _row(positive, device)
        self.negative = _row(negative, device)
        self.scale = _row(scale, device)

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean over all documents and labels."""
        if self.scale is not None:
            targets = targets * self.scale
        if self.positive is None and self.negative is None:
            # Linear in the target, so targets above 1 are in order.
            return (F.softplus(logits) - targets * logits).mean()
        one = torch.ones((), device=logits.device)
        positive = one if self.positive is None else self.positive
        negative = one if self.negative is None else self.negative
        against = F.softplus(logits)  # -log(1 - sigmoid(z)); -log sigmoid(z) is that minus z
        return (positive * targets * (against - logits) + negative * (1 - targets) * against).mean()


def _row(values: np.ndarray | None, device: str | torch.device) -> torch.Tensor | None:
    if values is None or (values == 1.0).all():
        return None
    return torch.from_numpy(np.asarray(values, np.float32)).to(device)


def cross_entropy(
    hooks: Hooks, labels: np.ndarray, normalised: bool, device: str | torch.device
) -> BinaryCrossEntropy:
    """The loss that the hooks of a fit ask for, on these label columns.

    ``normalised`` divides the positives' weights by their mean (PW eq. 24), as deep bases do.
    """
    weights, scale = hooks.find(LabelWeights), hooks.find(TargetScale)
    positive = negative = None
    if weights is not None:
        own = weights.of_labels(labels)
        positive = mean_one(own.positive) if normalised else own.positive
        negative = own.negative
    scales = None if scale is None else scale.of_labels(labels).factors
    return BinaryCrossEntropy(positive, negative, scales, device)


@dataclass(frozen=True)
class BatchLoss:
    """The loss of a batch by a staged forward pass, with the mixers and regulariser of a fit."""

    loss: BinaryCrossEntropy
    mixers: Mapping[str, BatchMixer] = field(default_factory=dict)
    regulariser: Regulariser | None = None

    @classmethod
    def of(cls, hooks: Hooks, loss: BinaryCrossEntropy) -> BatchLoss:
        """With the mixers and the regulariser among the hooks."""
        kinds: tuple[type[BatchMixer], ...] = (EmbeddingMixer, HiddenMixer, ContextMixer)
        found = {kind.kind: hooks.find(kind) for kind in kinds}
        mixers = {kind: mixer for kind, mixer in found.items() if mixer is not None}
        return cls(loss, mixers, hooks.find(Regulariser))

    @property
    def mixes_documents(self) -> bool:
        """Whether documents of a batch are mixed with one another."""
        return bool({EmbeddingMixer.kind, HiddenMixer.kind} & self.mixers.keys())

    def __call__(
        self,
        network: TextNetwork,
        batch: TokenBatch,
        targets: torch.Tensor,
        epoch: int,
        rng: np.random.Generator,
    ) -> torch.Tensor:
        """The mean loss over the batch's documents and labels, penalty included."""
        acting = {kind: m for kind, m in self.mixers.items() if m.at_epoch(epoch)}
        flow = Flow(
            network.embed(batch),
            targets,
            batch.mask,
            batch.ids,
            lambda f: self._from_embeddings(network, f, {}, rng),
        )
        mixer = acting.get(EmbeddingMixer.kind)
        if mixer is not None:
            flow = mixer.mix(flow, rng)
        loss = self._from_embeddings(network, flow, acting, rng)
        embeddings = network.label_embeddings()
        if self.regulariser is not None and embeddings is not None:
            loss = loss + self.regulariser.penalty(embeddings, targets)
        return loss

    def _from_embeddings(
        self,
        network: TextNetwork,
        flow: Flow,
        acting: Mapping[str, BatchMixer],
        rng: np.random.Generator,
    ) -> torch.Tensor:
        mixer = acting.get(HiddenMixer.kind)
        at = getattr(mixer, "layer", lambda n, _: n)(network.n_layers, rng) if mixer else 0
        state = flow

        def after(
            layer: int, hidden: torch.Tensor, mask: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            nonlocal state
            if mixer is not None and layer == at:
                state = mixer.mix(_at(state, hidden, mask, self._no_second_pass), rng)
                return state.values, state.mask
            return hidden, mask

        hidden, mask = network.encode(flow.values, flow.mask, after)
        contexts = network.contexts(hidden, mask)
        mixer_of_contexts = acting.get(ContextMixer.kind)
        if mixer_of_contexts is not None:
            before = _at(
                state, contexts, mask, lambda f: self.loss(network.logits(f.values), f.targets)
            )
            state = mixer_of_contexts.mix(before, rng)
            contexts = state.values
        found: torch.Tensor = state.weight * self.loss(network.logits(contexts), state.targets)
        return found + state.added

    @staticmethod
    def _no_second_pass(flow: Flow) -> torch.Tensor:
        raise NotImplementedError("the layers above cannot be run twice from the middle")


def _at(flow: Flow, values: object, mask: torch.Tensor, loss_of: object) -> Flow:
    from dataclasses import replace

    return replace(flow, values=values, mask=mask, loss_of=loss_of)
