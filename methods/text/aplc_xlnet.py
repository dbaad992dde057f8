"""APLC-XLNet and APLC-MiniLM: a pretrained encoder under adaptive probabilistic label clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext
from methods.text.aplc import LabelClusters, Normalisation, even_cutoffs, normalised
from methods.text.base import LOOP, Settings
from methods.text.batches import TokenBatch
from methods.text.cost import encoder_width
from methods.text.dropout import Dropout
from methods.text.network import After, TextNetwork
from methods.text.optimiser import Group
from methods.text.pretrained import PretrainedEncoder
from methods.text.transformers import EncoderStages, TransformerMethod, with_encoder_rate

SUMMARIES = ("first", "last", "mean")


class EncoderClusters(EncoderStages):
    """A pretrained encoder, a summary vector, adaptive label clusters."""

    def __init__(
        self,
        encoder: PretrainedEncoder | None,
        width: int,
        order: np.ndarray,
        cutoffs: Sequence[int],
        dropout: float,
        summary: str,
    ) -> None:
        super().__init__()
        self.summary = summary
        self.dense = nn.Linear(width, width)
        self.dropout = Dropout(dropout)
        self.clusters = LabelClusters(width, order, cutoffs)
        self.set_encoder(encoder)

    def encode(
        self, embedded: Tensor, mask: Tensor, after: After | None = None
    ) -> tuple[Tensor, Tensor]:
        """Hidden states; dropout comes after the summary."""
        if self.encoder is not None:
            return self.encoder.encode(embedded, mask, after)
        return embedded, mask

    def contexts(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """One vector per document, float[n, h]: tanh of a linear layer on the summary."""
        if self.summary == "mean":
            weights = mask.to(hidden.dtype).unsqueeze(-1)
            found = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
        else:
            last = mask.sum(dim=1) - 1
            place = last if self.summary == "last" else torch.zeros_like(last)
            found = hidden[torch.arange(len(hidden), device=hidden.device), place]
        return torch.as_tensor(self.dropout(torch.tanh(self.dense(found))))

    def logits(self, contexts: Tensor, columns: Tensor | None = None) -> Tensor:
        """Log-odds of the label probabilities."""
        found: Tensor = self.clusters(contexts)
        return found if columns is None else found[:, columns]

    def label_embeddings(self) -> Tensor:
        """Output weights of the labels, float[L, h], filled up by 0 in tail clusters."""
        return self.clusters.label_vectors()


class ClusterLoss:
    """The loss of label clusters, as the trainer calls it; ``positive`` are weights float[L]."""

    def __init__(self, positive: np.ndarray | None, how: Normalisation) -> None:
        self.positive = positive
        self.how = how

    def __call__(
        self,
        network: EncoderClusters,
        batch: TokenBatch,
        targets: Tensor,
        epoch: int,
        rng: np.random.Generator,
    ) -> Tensor:
        """The mean over the batch's documents."""
        vectors = network.contexts(*network.encode(network.embed(batch), batch.mask))
        weights = None
        if self.positive is not None:
            order = network.clusters.order.cpu().numpy()
            found = normalised(self.positive, order, network.clusters.edges, self.how)
            weights = torch.from_numpy(found).to(vectors)
        return network.clusters.loss(vectors, targets, weights)


_CLUSTERS: Settings = {
    **LOOP,
    # The authors of APLC-XLNet on EUR-Lex, where 1e-4 and 5e-5 are factors of 2e-3.
    "max_length": 512,
    "trainable": True,
    "layers": None,
    "encoder_rate": 0.025,
    "summary_rate": 0.05,
    "n_clusters": 2,
    "summary": "last",
    "weights": "cluster",
    "dropout": 0.1,
    "batch_size": 12,
    "epochs": 8,
    "learning_rate": 2e-3,
    "weight_decay": 0.0,
    "decay": "linear",
    "swa_from": None,
    "evaluate_every": 500,
    "patience": 10**6,
    "dev_documents": 200,
}


class ClusterTransformer(TransformerMethod):
    """An encoder with adaptive probabilistic label clusters.

    ``n_clusters`` are of equal numbers of labels; ``summary`` is what stands for a document: the
    ``first`` or ``last`` token's state or their ``mean``. ``weights`` says how PW's factors enter:
    ``cluster``, as in PW's code, or ``eq24``, as in its paper.
    """

    accepts = frozenset({"loss_weights"})
    RECIPES: ClassVar[Mapping[str, Settings]] = {
        "original": _CLUSTERS,
        # A frozen encoder and larger steps, for two cores.
        "frozen": {
            **_CLUSTERS,
            "max_length": 128,
            "trainable": False,
            "summary": "mean",
            "summary_rate": 1.0,
            "batch_size": 20,
            "epochs": 20,
            "evaluate_every": 100,
            "dropout": 0.2,
        },
    }

    SAME: ClassVar[Settings] = {"encoder": "XLNet-base-cased"}
    default_recipe = "original"

    n_clusters: int
    summary: str
    summary_rate: float
    weights: Normalisation

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if self.summary not in SUMMARIES:
            raise ValueError(f"summary is one of {', '.join(SUMMARIES)}, not {self.summary!r}")
        if self.weights not in ("cluster", "eq24"):
            raise ValueError(f"weights is cluster or eq24, not {self.weights!r}")

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """The network, without its encoder where hidden states are computed once."""
        encoder = self._load(context)
        return EncoderClusters(
            None if self._encodes_once(context) else encoder,
            encoder.width,
            by_frequency(train, labels),
            even_cutoffs(len(labels), self.n_clusters),
            self.dropout,
            self.summary,
        )

    def loss(self, context: FitContext, labels: np.ndarray) -> Any:
        """The clusters' own loss, positives weighted as ``weights`` says."""
        given = context.hooks.find(LabelWeights)
        positive = None if given is None else given.of_labels(labels).positive
        return ClusterLoss(positive, self.weights)

    def groups(self, network: TextNetwork) -> Sequence[Group]:
        """Rates of their own for the summary and the encoder."""
        assert isinstance(network, EncoderClusters)
        summary = list(network.dense.parameters())
        rest = list(network.clusters.parameters())
        parts = [(rest, 1.0), (summary, self.summary_rate)]
        return with_encoder_rate(network, parts, self.encoder_rate)

    @price_only
    def head_work(self, meta: Mapping[str, Any], labels: float) -> float:
        """The summary, and a row per label; those of tail clusters are shorter."""
        width = encoder_width(self.encoder)
        return width * (width + labels)


class APLCXLNet(ClusterTransformer):
    """APLC-XLNet (Ye et al., ICML 2020)."""

    name = "APLC-XLNet"


class APLCMiniLM(ClusterTransformer):
    """The same clusters on MiniLM, whose weights the package index carries; it is frozen."""

    name = "APLC-MiniLM"
    default_recipe = "frozen"
    SAME: ClassVar[Settings] = {"encoder": "all-MiniLM-L6-v2"}


def by_frequency(train: Split, labels: np.ndarray) -> np.ndarray:
    """The columns of these labels, the most frequent first."""
    return np.argsort(-train.label_counts()[labels], kind="stable")
