"""TailMix and the ways to mix that its paper compares it with, as variants of deep text models.

Each trains without mixing first, as the authors of TailMix do (``mixup_warmup`` in their code of
September 2021: 40 epochs on EUR-Lex); weights are chosen among those after mixing began.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks.data.split import Split
from methods.hooks import Hooks
from methods.hooks.batch_mixer import (
    BatchMixer,
    ContextMixer,
    EmbeddingMixer,
    Flow,
    HiddenMixer,
)
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed
from methods.variants.interpolation import (
    draw_share,
    interpolated,
    interpolated_targets,
    paired,
    tmix_layer,
    with_spans_of,
)
from methods.variants.tailmix_pairs import (
    EveryOtherLabel,
    Graph,
    LabelGraph,
    Lookup,
    Rule,
    mixed_contexts,
    mixed_targets,
    select,
)


class Mixup(Variant):
    """A variant that mixes every batch once ``plain_share`` of the epochs are over."""

    plain_share: float

    def apply(self, base: Method) -> Method:
        """The base, trained on mixed batches."""
        return Mixed(base, self)

    @abc.abstractmethod
    def mixer(self, train: Split, base: Method, start: int) -> BatchMixer:
        """The hook for a training split; it acts from epoch ``start`` (from 0) on."""


class Mixed(Changed[Mixup]):
    """A base whose batches a :class:`Mixup` mixes."""

    def fit_in(self, train: Split, context: FitContext) -> Model:
        base = self._base
        while isinstance(base, Changed):
            base = base._base
        start = int(self._change.plain_share * getattr(base, "epochs", 0))
        hooks = Hooks(*context.hooks.values(), self._change.mixer(train, base, start))
        return self._base.fit_in(train, replace(context, hooks=hooks))


class TailMix(Mixup):
    """TailMix by Algorithm 1 of its paper.

    ``most`` is M, the targets per document; ``alpha`` that of Beta(alpha, alpha). Without ``sim``
    the partner of a target is drawn at random, without ``lpg`` from all labels (Table 4).
    ``rule`` is ``paper`` or ``code``: what the authors' code does instead, see
    :class:`~methods.variants.tailmix_pairs.Rule`.
    """

    name = "TailMix"
    sets = frozenset({"context_mixer"})

    def __init__(
        self,
        most: int = 6,
        alpha: float = 0.4,
        sim: bool = True,
        lpg: bool = True,
        rule: str = "paper",
        plain_share: float = 0.5,
    ) -> None:
        if rule not in ("paper", "code"):
            raise ValueError(f"TailMix has no rule {rule!r}; there are paper, code")
        self.most = most
        self.alpha = alpha
        self.sim = sim
        self.lpg = lpg
        self.rule = rule
        self.plain_share = plain_share

    def mixer(self, train: Split, base: Method, start: int) -> BatchMixer:
        """With the label proximity graph and the inverse propensities of the training split."""
        if self.rule == "code":
            rule = Rule(self.most, self.alpha, "chance", "propensity", True, True)
        else:
            rule = Rule(self.most, self.alpha, partner_by="distance" if self.sim else "chance")
        graph = LabelGraph.of(train.labels) if self.lpg else EveryOtherLabel(train.n_labels)
        return TailMixer(graph, train.inverse_propensity(), rule, start)


class TailMixNoSim(TailMix):
    """TailMix whose partners are drawn at random from the neighbours (Table 4)."""

    name = "TailMix-nosim"

    def __init__(self, most: int = 6, alpha: float = 0.4, plain_share: float = 0.5) -> None:
        super().__init__(most, alpha, sim=False, plain_share=plain_share)


class TailMixNoLPG(TailMix):
    """TailMix whose partner is the nearest of all labels (Table 4)."""

    name = "TailMix-nolpg"

    def __init__(self, most: int = 6, alpha: float = 0.4, plain_share: float = 0.5) -> None:
        super().__init__(most, alpha, lpg=False, plain_share=plain_share)


class TailMixNoSimNoLPG(TailMix):
    """TailMix whose partners are drawn at random from all labels (Table 4)."""

    name = "TailMix-nosim-nolpg"

    def __init__(self, most: int = 6, alpha: float = 0.4, plain_share: float = 0.5) -> None:
        super().__init__(most, alpha, sim=False, lpg=False, plain_share=plain_share)


@dataclass(frozen=True)
class TailMixer(ContextMixer):
    """Mixes context vectors of labels within each document."""

    graph: Graph
    inverse_p: np.ndarray
    rule: Rule
    start: int = 0

    def of_labels(self, labels: np.ndarray) -> TailMixer:
        """The same on the columns of some labels."""
        return replace(self, graph=self.graph.of_labels(labels), inverse_p=self.inverse_p[labels])

    def mix(self, flow: Flow, rng: np.random.Generator) -> Flow:
        """Context vectors and targets of the batch's pairs replaced."""
        device = flow.targets.device
        rows, labels = (where.cpu().numpy() for where in torch.nonzero(flow.targets, as_tuple=True))
        lookup = _lookup(flow.values)
        pairs = select((rows, labels), lookup, self.graph, self.inverse_p, self.rule, rng, device)
        changed = mixed_contexts(pairs, lookup, self.rule, device)
        return replace(
            flow,
            values=flow.values.with_changed(*changed),
            targets=mixed_targets(flow.targets, pairs),
        )


def _lookup(contexts: Any) -> Lookup:
    """Vectors of pairs of a document and a label, sorted by document."""

    def of_pairs(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        documents, counts = torch.unique_consecutive(rows, return_counts=True)
        parts = labels.split(counts.tolist())
        found = [contexts.of(int(i), part) for i, part in zip(documents, parts, strict=True)]
        return torch.cat(found) if found else contexts.hidden.new_empty(0, contexts.hidden.shape[2])

    return of_pairs


class WordMix(Mixup):
    """Word vectors of a batch mixed with those of a permutation of it (Guo et al. 2019)."""

    name = "wordMix"
    sets = frozenset({"embedding_mixer"})

    def __init__(self, alpha: float = 0.4, plain_share: float = 0.5) -> None:
        self.alpha = alpha
        self.plain_share = plain_share

    def mixer(self, train: Split, base: Method, start: int) -> BatchMixer:
        """Acts on word vectors."""
        return WordMixer(self.alpha, start)


class HiddenMix(Mixup):
    """The encoder's output mixed with that of a permutation (Verma et al. 2019)."""

    name = "hiddenMix"
    sets = frozenset({"hidden_mixer"})

    def __init__(self, alpha: float = 0.4, plain_share: float = 0.5) -> None:
        self.alpha = alpha
        self.plain_share = plain_share

    def mixer(self, train: Split, base: Method, start: int) -> BatchMixer:
        """Acts after the encoder's last layer."""
        return HiddenStateMixer(self.alpha, start)


class TMix(Mixup):
    """Hidden states between two layers of a transformer mixed (Chen et al. 2020).

    The layer is one of ``layers`` out of twelve, or at the same relative depth of another number.
    """

    name = "TMix"
    sets = frozenset({"hidden_mixer"})

    def __init__(
        self,
        alpha: float = 0.4,
        layers: tuple[int, ...] = (7, 9, 12),
        plain_share: float = 0.5,
    ) -> None:
        self.alpha = alpha
        self.layers = tuple(layers)
        self.plain_share = plain_share

    def misfit(self, base: Method) -> str | None:
        """It needs an encoder of several layers."""
        reason = super().misfit(base)
        if reason is None and not getattr(base, "has_layers", False):
            return f"TMix mixes between the layers of a transformer; {base.name} has none"
        return reason

    def mixer(self, train: Split, base: Method, start: int) -> BatchMixer:
        """Acts after a layer that is drawn for each batch."""
        return LayerMixer(self.alpha, start, self.layers)


class SSMix(Mixup):
    """The least salient span of each document replaced by its partner's most salient one.

    Yoon et al. 2021; ``window`` is the length of the span as a share of the document. The loss is
    the mean of that of the documents as they are, whose gradient gives the saliency, and of that
    of the mixed ones: a second forward pass, as the paper has it.
    """

    name = "SSMix"
    sets = frozenset({"embedding_mixer"})

    def __init__(self, window: float = 0.1, plain_share: float = 0.5) -> None:
        self.window = window
        self.plain_share = plain_share

    def mixer(self, train: Split, base: Method, start: int) -> BatchMixer:
        """Acts on word vectors; a transformer's marks at the ends are left alone."""
        return SpanMixer(self.window, start, getattr(base, "marks", 0))


def _interpolate(flow: Flow, alpha: float, rng: np.random.Generator) -> Flow:
    share = draw_share(alpha, rng)  # drawn first: one for the batch
    partner = torch.from_numpy(rng.permutation(len(flow.targets))).to(flow.targets.device)
    values, mask = interpolated(flow.values, flow.mask, partner, share)
    targets = interpolated_targets(flow.targets, partner, share)
    return replace(flow, values=values, mask=mask, targets=targets)


@dataclass(frozen=True)
class WordMixer(EmbeddingMixer):
    """Interpolates word vectors."""

    alpha: float
    start: int = 0

    def mix(self, flow: Flow, rng: np.random.Generator) -> Flow:
        """Each document mixed with another one of the batch."""
        return _interpolate(flow, self.alpha, rng)


@dataclass(frozen=True)
class HiddenStateMixer(HiddenMixer):
    """Interpolates hidden states after the last layer."""

    alpha: float
    start: int = 0

    def mix(self, flow: Flow, rng: np.random.Generator) -> Flow:
        """Each document mixed with another one of the batch."""
        return _interpolate(flow, self.alpha, rng)


@dataclass(frozen=True)
class LayerMixer(HiddenStateMixer):
    """Interpolates hidden states after a layer that is drawn anew for each batch."""

    layers: tuple[int, ...] = (7, 9, 12)

    def layer(self, n_layers: int, rng: np.random.Generator) -> int:
        """One of ``layers``, at the same relative depth."""
        return tmix_layer(rng, n_layers, self.layers)


@dataclass(frozen=True)
class SpanMixer(EmbeddingMixer):
    """Replaces spans by saliency."""

    window: float
    start: int = 0
    marks: int = 0

    def mix(self, flow: Flow, rng: np.random.Generator) -> Flow:
        """Documents with spans of their partners; the loss of whole ones is added."""
        vectors = flow.values
        if not vectors.requires_grad:  # a frozen encoder: its inputs have gradients all the same
            vectors = vectors.detach().requires_grad_()
        clean = flow.loss_of(replace(flow, values=vectors))
        (gradient,) = torch.autograd.grad(clean, vectors, retain_graph=True)
        n, T, d = vectors.shape
        partner = paired(n, rng)
        places = torch.arange(n * T, device=vectors.device).reshape(n, T)
        lengths = flow.mask.sum(dim=1).cpu().numpy()
        saliency = gradient.norm(dim=2)
        places, shares = with_spans_of(places, lengths, saliency, partner, self.window, self.marks)
        share = torch.from_numpy(shares).to(flow.targets).unsqueeze(1)
        beside = torch.from_numpy(partner).to(flow.targets.device)
        return replace(
            flow,
            values=vectors.reshape(n * T, d)[places],
            targets=interpolated_targets(flow.targets, beside, share),
            weight=0.5 * flow.weight,
            added=flow.added + 0.5 * flow.weight * clean,
        )
