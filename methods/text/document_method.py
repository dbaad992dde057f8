"""What HTTN and its baselines share: the extractor's settings, and training it on some labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.data.split import Split
from methods.cost import price_only
from methods.interface import FitContext
from methods.text.base import SETTINGS, Settings
from methods.text.cost import bilstm, tokens_read
from methods.text.document_network import DocumentNetwork
from methods.text.network import TextNetwork
from methods.text.training import Examples, History, Loss, Schedule, Trainer
from methods.text.words import WordMethod

PAPER: Settings = {
    **SETTINGS,
    "dimensions": 300,
    "train_embeddings": True,
    "max_length": 500,
    "hidden": 300,
    "size": 128,
    "unit": False,
    "embedding_dropout": 0.2,
    "dropout": 0.2,
    "batch_size": 90,
    "epochs": 15,
    "learning_rate": 1e-3,
    "swa_from": None,
    "dev_documents": 1000,
}
"""What the paper's text says: k = 300, d = 128, GloVe in 300 dimensions, Adam with 0.001. It is
silent on lengths, batches and epochs, which are the released code's, and on dropout."""
AS_RELEASED: Settings = {
    **PAPER,
    "hidden": 150,
    "unit": True,
    "embedding_dropout": 0.0,
    "dropout": 0.0,
}
SMALL: Settings = {
    **PAPER,
    "dimensions": 50,
    "max_length": 80,
    "hidden": 32,
    "batch_size": 10,
    "epochs": 6,
    "learning_rate": 1e-2,
    "decay": "linear",
    "dev_documents": 200,
    "pool": 4,
    "piece": 20,
}
"""The paper's network in a size that trains in minutes on two cores."""
OF_WEIGHTED_LOSS = ("normalise_weights",)
"""Means nothing to a method that accepts no weights of labels."""
OF_PLAIN_NETWORK = (*OF_WEIGHTED_LOSS, "negatives", "unit")
"""Nor do the others to one with a loss and a network of its own."""


def recipes(
    extra: Settings,
    as_released: Settings | None = None,
    small: Settings | None = None,
    without: Collection[str] = (),
) -> dict[str, Settings]:
    """The three named sets of settings with a method's own added, and what it changes in two.

    ``without`` are settings that would reach nothing in the method: giving one is an error.
    """
    named = {
        "small": {**SMALL, **extra, **(small or {})},
        "paper": {**PAPER, **extra},
        "as-released": {**AS_RELEASED, **extra, **(as_released or {})},
    }
    return {
        recipe: {name: value for name, value in settings.items() if name not in without}
        for recipe, settings in named.items()
    }


class DocumentMethod(WordMethod):
    """A method on HTTN's extractor. Its settings are those of its recipes, each a keyword."""

    RECIPES = recipes({})
    default_recipe = "small"
    # One vector per document: there are no contexts of labels to mix.
    accepts = WordMethod.accepts - {"context_mixer"}

    hidden: int
    size: int
    dropout: float
    # As in a method without the setting.
    unit: bool = False
    normalise_weights: bool = True
    negatives: int = 0

    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """The extractor with a classifier of as many labels."""
        return DocumentNetwork(
            self.embedding(train, context),
            self.hidden,
            self.size,
            len(labels),
            self.dropout,
            self.unit,
        )

    def train(
        self,
        network: TextNetwork,
        train: Split,
        labels: np.ndarray,
        context: FitContext,
        *,
        loss: Loss | None = None,
        schedule: Schedule | None = None,
        name: str = "state",
    ) -> History:
        """Train a network on the documents that carry any of some labels, by the shared loop.

        Without ``loss`` it is the cross-entropy of these labels. ``name`` tells the checkpoints
        of a method's stages apart.
        """
        return Trainer(
            network,
            loss or self.loss(context, labels),
            self.carrying(train, labels, context),
            schedule or self.schedule(),
            context,
            dev=None if context.dev is None else self.carrying(context.dev, labels, context),
            groups=self.groups(network),
            name=name,
            n_test=int(train.meta.get("n_test", 0)),
        ).run()

    def carrying(self, split: Split, labels: np.ndarray, context: FitContext) -> Examples:
        """The documents of a split that carry any of some labels, and these labels."""
        columns = split.labels[:, labels]
        rows = np.flatnonzero(np.diff(columns.indptr))
        inputs = split.inputs.take(rows)
        return Examples(self.documents(inputs, context.resources), columns[rows])

    def seeded(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """:meth:`build`, its random weights fixed by the seed of the fit."""
        torch.manual_seed(context.seed)
        return self.build(train, labels, context)

    @price_only
    def work(self, meta: Mapping[str, Any], labels: float) -> float:
        """The extractor and a row per label."""
        own = bilstm(tokens_read(meta, self.max_length), self.vector_length, self.hidden)
        return own + self.size * (2 * self.hidden + labels)

    @price_only
    def turns(self, meta: Mapping[str, Any]) -> float:
        """The BiLSTM's."""
        return tokens_read(meta, self.max_length)


class Joint(DocumentMethod):
    """The extractor with one classifier for head and tail labels alike."""

    name = "Joint"
