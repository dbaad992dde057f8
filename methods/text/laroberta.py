"""LaRoBERTa and LaMiniLM: a pretrained encoder under label attention and a shared classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.attention_xml import attention_groups
from methods.text.base import SETTINGS, Settings
from methods.text.cost import encoder_width, label_attention, tokens_read
from methods.text.dropout import Dropout
from methods.text.network import LabelAttentionNetwork, TextNetwork
from methods.text.optimiser import Group
from methods.text.pretrained import PretrainedEncoder
from methods.text.transformers import EncoderStages, TransformerMethod, with_encoder_rate


class EncoderAttention(EncoderStages, LabelAttentionNetwork):
    """A pretrained encoder, label attention, shared head."""

    def __init__(
        self,
        encoder: PretrainedEncoder | None,
        width: int,
        n_labels: int,
        head: Sequence[int],
        dropout: float,
        scale: float,
        match: float,
    ) -> None:
        LabelAttentionNetwork.__init__(self, width, n_labels, head, scale, match)
        self.dropout = Dropout(dropout)
        self.set_encoder(encoder)


_LABEL_ATTENTION: Settings = {
    **SETTINGS,
    # The authors of TailMix on EUR-Lex: LaRoberta.yaml, whose encoder is frozen.
    "max_length": 300,
    "trainable": False,
    "layers": None,
    "encoder_rate": 0.05,
    "head": (256, 128),
    "dropout": 0.5,
    "batch_size": 32,
    "epochs": 150,
    "learning_rate": 1e-3,
    "label_rate": 1.0,
    "label_scale": 1.0,
    "match": 0.0,
    "weight_decay": 1e-2,
    "decay": "constant",
    "swa_from": 4,
    "start_at_frequencies": False,
    "evaluate_every": 300,
    "patience": 20,
    "dev_documents": 3090,
}


# Shorter texts and fewer, larger steps, for two cores.
_CONVERGING: Settings = {
    **_LABEL_ATTENTION,
    "max_length": 128,
    "head": (128,),
    "dropout": 0.2,
    "batch_size": 20,
    "epochs": 12,
    "learning_rate": 3e-3,
    "label_rate": 3.0,
    "label_scale": 4.0,
    "weight_decay": 0.0,
    "swa_from": 6,
    "start_at_frequencies": True,
    "evaluate_every": 100,
    "dev_documents": 200,
}


class LabelAttentionTransformer(TransformerMethod):
    """An encoder with label attention; see ``RECIPES`` for the settings that have names."""

    RECIPES: ClassVar[Mapping[str, Settings]] = {
        "original": _LABEL_ATTENTION,
        "converging": _CONVERGING,
        # As AttentionXML's recipe of this name. Hidden states of a transformer are several times
        # as long as an LSTM's, so the vectors of the labels start and step shorter.
        "matched": {
            **_CONVERGING,
            "epochs": 8,
            "piece": 20,
            "learning_rate": 1e-3,
            "label_rate": 1.0,
            "label_scale": 1.0,
            "match": 1.0,
            "negatives": 1024,
            "decay": "cosine",
            "swa_from": None,
            "evaluate_every": 300,
        },
    }

    SAME: ClassVar[Settings] = {"encoder": "RoBERTa-base"}
    default_recipe = "original"

    head: Sequence[int]
    label_rate: float
    label_scale: float
    match: float
    start_at_frequencies: bool

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """The network, without its encoder where hidden states are computed once."""
        encoder = self._load(context)
        network = EncoderAttention(
            None if self._encodes_once(context) else encoder,
            encoder.width,
            len(labels),
            self.head,
            self.dropout,
            self.label_scale,
            self.match,
        )
        if self.start_at_frequencies:
            network.start_at(self.starting_shares(train, labels, context))
        return network

    def groups(self, network: TextNetwork) -> Sequence[Group]:
        """Rates of their own for attention vectors and for the encoder."""
        assert isinstance(network, EncoderAttention)
        return with_encoder_rate(
            network, attention_groups(network, self.label_rate), self.encoder_rate
        )

    @price_only
    def head_work(self, meta: Mapping[str, Any], labels: float) -> float:
        """Attention of each label, and the shared head."""
        tokens = tokens_read(meta, self.max_length)
        return label_attention(tokens, labels, encoder_width(self.encoder), self.head)


class LaRoBERTa(LabelAttentionTransformer):
    """RoBERTa with label attention (Zhang et al. 2020), TailMix's second base."""

    name = "LaRoBERTa"


class LaMiniLM(LabelAttentionTransformer):
    """The same on MiniLM, whose weights the package index carries; the encoder is frozen.

    With ``encoder: all-mpnet-base-v2`` it is LaMPNet, of RoBERTa-base's size.
    """

    name = "LaMiniLM"
    default_recipe = "converging"
    SAME: ClassVar[Settings] = {"encoder": "all-MiniLM-L6-v2"}
