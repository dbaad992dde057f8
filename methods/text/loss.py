"""The loss of a batch: weighted binary cross-entropy, batch mixers and a regulariser in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import nn

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

    def __call__(
        self, logits: torch.Tensor, targets: torch.Tensor, sample: Sample | None = None
    ) -> torch.Tensor:
        """The mean over all documents and labels; with a sample of the labels, an estimate of it.

        Logits and targets hold the columns of the sample only.
        """
        terms = self._terms(logits, targets, None if sample is None else sample.columns)
        if sample is None:
            return terms.mean()
        return (terms * sample.factors).sum() / (len(terms) * sample.n_labels)

    def of_entries(
        self, logits: torch.Tensor, targets: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """The mean over entries [n, C] that belong to ``labels`` [n, C]; -1 does not count."""
        real = labels >= 0
        return self._terms(logits, targets, labels.clamp(min=0))[real].mean()

    def _terms(
        self, logits: torch.Tensor, targets: torch.Tensor, columns: torch.Tensor | None
    ) -> torch.Tensor:
        scale, positive, negative = (
            row if row is None or columns is None else row[columns]
            for row in (self.scale, self.positive, self.negative)
        )
        if scale is not None:
            targets = targets * scale
        against = nn.functional.softplus(
            logits
        )  # -log(1 - sigmoid(z)); -log sigmoid(z) is that minus z
        if positive is None and negative is None:
            # Linear in the target, so targets above 1 are in order.
            terms = against - targets * logits
        else:
            of_positives = targets * (against - logits)
            of_negatives = (1 - targets) * against
            terms = of_positives if positive is None else positive * of_positives
            terms = terms + (of_negatives if negative is None else negative * of_negatives)
        return terms


@dataclass(frozen=True)
class Sample:
    """Labels that a batch is trained on: ``columns`` int[m], each standing for ``factors`` of the
    ``n_labels`` there are."""

    columns: torch.Tensor
    factors: torch.Tensor
    n_labels: int

    @classmethod
    def draw(cls, targets: torch.Tensor, negatives: int, rng: np.random.Generator) -> Sample | None:
        """Every label with a target in the batch and ``negatives`` of the others, drawn evenly.

        The expectation of the loss, and of its gradient, is that on all labels. None where the
        others are no more than ``negatives``.
        """
        carried = (targets != 0).any(dim=0)
        others = torch.nonzero(~carried)[:, 0]
        if len(others) <= negatives:
            return None
        drawn = torch.from_numpy(rng.choice(len(others), negatives, replace=False))
        columns = torch.cat([torch.nonzero(carried)[:, 0], others[drawn.to(others.device)]])
        factors = torch.ones(len(columns), device=targets.device)
        factors[-negatives:] = len(others) / negatives
        return cls(columns, factors, targets.shape[1])


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
    negatives: int = 0

    @classmethod
    def of(cls, hooks: Hooks, loss: BinaryCrossEntropy, negatives: int = 0) -> BatchLoss:
        """With the mixers and the regulariser among the hooks.

        ``negatives`` above 0 trains each part of a batch on a sample of the labels.
        """
        kinds: tuple[type[BatchMixer], ...] = (EmbeddingMixer, HiddenMixer, ContextMixer)
        found = {kind.kind: hooks.find(kind) for kind in kinds}
        mixers = {kind: mixer for kind, mixer in found.items() if mixer is not None}
        return cls(loss, mixers, hooks.find(Regulariser), negatives)  # type: ignore[type-abstract]

    def begins(self, epoch: int) -> bool:
        """Whether mixing starts with this epoch, others having been trained without it."""
        return epoch > 0 and any(
            mixer.at_epoch(epoch) and not mixer.at_epoch(epoch - 1)
            for mixer in self.mixers.values()
        )

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
            loss = loss + self.regulariser.penalty(embeddings, targets, rng=rng)
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
                state = mixer.mix(
                    replace(state, values=hidden, mask=mask, loss_of=_no_second_pass), rng
                )
                return state.values, state.mask
            return hidden, mask

        hidden, mask = network.encode(flow.values, flow.mask, after)
        contexts = network.contexts(hidden, mask)

        def of_contexts(flow: Flow) -> torch.Tensor:
            if self.negatives:
                sample = Sample.draw(flow.targets, self.negatives, rng)
                if sample is not None:
                    logits = network.logits(flow.values, sample.columns)
                    return self.loss(logits, flow.targets[:, sample.columns], sample)
            return self.loss(network.logits(flow.values), flow.targets)

        mixer_of_contexts = acting.get(ContextMixer.kind)
        if mixer_of_contexts is not None:
            state = mixer_of_contexts.mix(
                replace(state, values=contexts, mask=mask, loss_of=of_contexts), rng
            )
        else:
            state = replace(state, values=contexts, mask=mask)
        found: torch.Tensor = state.weight * of_contexts(state) + state.added
        return found


def _no_second_pass(flow: Flow) -> torch.Tensor:
    raise NotImplementedError("the layers above cannot be run twice from the middle")
