"""AttentionXML (You et al., NeurIPS 2019): BiLSTM, multi-label attention, a shared classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.base import SETTINGS, Settings
from methods.text.cost import bilstm, label_attention, tokens_read
from methods.text.network import BiLSTMAttention, LabelAttentionNetwork, TextNetwork
from methods.text.optimiser import Group
from methods.text.words import WordMethod

_ORIGINAL: Settings = {
    **SETTINGS,
    "max_length": 500,
    "dimensions": 300,
    "train_embeddings": False,
    "hidden": 256,
    "head": (256,),
    "embedding_dropout": 0.2,
    "dropout": 0.5,
    "batch_size": 40,
    "epochs": 30,
    "learning_rate": 1e-3,
    "label_rate": 1.0,
    "label_scale": 1.0,
    "match": 0.0,
    "swa_from": 10,
    "start_at_frequencies": False,
}
RECIPES: Mapping[str, Settings] = {
    # The authors' settings for EUR-Lex (configure/models/AttentionXML-EUR-Lex.yaml).
    "original": _ORIGINAL,
    # Fewer and smaller steps, made to reach a good score in minutes on two cores.
    "converging": {
        **_ORIGINAL,
        "max_length": 200,
        "dimensions": 100,
        "train_embeddings": True,
        "hidden": 64,
        "head": (64,),
        "batch_size": 20,
        "epochs": 8,
        "learning_rate": 3e-3,
        "label_rate": 3.0,
        "label_scale": 4.0,
        "swa_from": 5,
        "start_at_frequencies": True,
    },
    # Thousands of labels in minutes of one core: a step sees the labels of its documents and a
    # sample of the others, the head also sees how well a label's context matches its vector, and
    # of a document only the opening is read, which for EUR-Lex is nearly as good as all of it.
    # workflow/studies/choose_attentionxml.py measures its parts on held-out training documents.
    "matched": {
        **_ORIGINAL,
        "max_length": 64,
        "dimensions": 100,
        "train_embeddings": True,
        "hidden": 128,
        "head": (128,),
        "embedding_dropout": 0.3,
        "dropout": 0.2,
        "batch_size": 20,
        "piece": 20,
        "epochs": 10,
        "learning_rate": 3e-3,
        "label_rate": 3.0,
        "label_scale": 4.0,
        "match": 1.0,
        "negatives": 1024,
        "decay": "cosine",
        "swa_from": None,
        "evaluate_every": 300,
        "start_at_frequencies": True,
    },
}


class AttentionXML(WordMethod):
    """AttentionXML without a label tree; see :data:`RECIPES` for the settings that have names."""

    name = "AttentionXML"
    RECIPES = RECIPES
    default_recipe = "converging"

    hidden: int
    head: Sequence[int]
    dropout: float
    label_rate: float
    label_scale: float
    match: float
    start_at_frequencies: bool

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """The network with given or random word vectors."""
        network = BiLSTMAttention(
            self.embedding(train, context),
            self.hidden,
            self.head,
            len(labels),
            self.dropout,
            self.label_scale,
            self.match,
        )
        if self.start_at_frequencies:
            network.start_at(self.starting_shares(train, labels, context))
        return network

    def groups(self, network: TextNetwork) -> Sequence[Group]:
        """Attention vectors have a rate of their own: each is trained by one label alone."""
        assert isinstance(network, LabelAttentionNetwork)
        return attention_groups(network, self.label_rate)

    @price_only
    def work(self, meta: Mapping[str, Any], labels: float) -> float:
        """The BiLSTM, then attention of each label."""
        tokens = tokens_read(meta, self.max_length)
        own = bilstm(tokens, self.vector_length, self.hidden)
        return own + label_attention(tokens, labels, 2 * self.hidden, self.head)

    @price_only
    def turns(self, meta: Mapping[str, Any]) -> float:
        """The BiLSTM's."""
        return tokens_read(meta, self.max_length)


def attention_groups(network: LabelAttentionNetwork, label_rate: float) -> list[Group]:
    """All trained parameters, attention vectors with ``label_rate`` times the learning rate."""
    trained = [p for p in network.parameters() if p.requires_grad]
    own = network.attention.vectors
    return [([p for p in trained if p is not own], 1.0), ([own], label_rate)]
