"""Embedding: the GLaS paper's model without a regulariser (Algorithm 1).

The regularisers are variants, see :mod:`methods.variants.label_geometry`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.data.split import Split
from methods.cost import Cost, Term, price_only, words_per_document
from methods.embedding.model import EmbeddingModel
from methods.embedding.network import Network
from methods.embedding.training import Batches, Settings, threads_for, train
from methods.hooks.regulariser import DocumentRegulariser, Regulariser
from methods.interface import FitContext, Method, Resources
from methods.linear.model import as_unit_rows
from methods.warm_up import fit_tiny

LOSSES = ("margin", "softmax")
ACTIVATIONS = ("relu", "linear")
SEARCHES = ("exact", "faiss")
SAMPLE = 2000
"""Training documents with labels, the first, whose P@1 is measured after each epoch."""
MULTIPLY_ADDS_PER_S = 1.5e10
PICK_SECONDS = 1e-8
"""Of a document's score of a label in a step: masks, the choice of the hardest, the loss."""


class Embedding(Method):
    """Bag of words -> embedding -> inner products with label embeddings.

    ``dim``: of the embeddings. ``activation``: ``relu`` or ``linear``. ``hidden``: width of a layer
    between words and embedding; 0 is none, and the embedding is the activation itself.
    ``weight_norm``, ``unit``, ``length``: see :class:`Network`. ``loss``: ``margin`` (eq. 1, margin
    ``margin``) or ``softmax``. ``negatives``: labels drawn for each batch, 0 for all;
    ``mined``: the worst so many of them count, 0 for all. ``keep``: of the input dropout, rho in
    the paper. ``decay``: the rate falls to 0 linearly. ``search``: ``exact`` or ``faiss``.

    The defaults were chosen on documents held out of EURLex-4K's train by
    ``python -m workflow.studies.choose_embedding``, but for ``dim``, ``keep`` and ``epochs``, which
    are the paper's.
    """

    name = "Embedding"
    accepts = frozenset({"regulariser", "document_regulariser"})

    def __init__(
        self,
        dim: int = 1024,
        activation: str = "linear",
        hidden: int = 0,
        weight_norm: bool = False,
        unit: bool = True,
        length: float = 1.0,
        loss: str = "margin",
        margin: float = 0.2,
        negatives: int = 0,
        mined: int = 10,
        keep: float = 0.8,
        batch: int = 256,
        epochs: int = 10,
        rate: float = 0.03,
        decay: bool = False,
        normalize: bool = True,
        search: str = "exact",
    ) -> None:
        for name, value, known in (
            ("activation", activation, ACTIVATIONS),
            ("loss", loss, LOSSES),
            ("search", search, SEARCHES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        if not 0.0 < keep <= 1.0:
            raise ValueError(f"keep is a probability above 0, not {keep}")
        if min(dim, batch, epochs) < 1:
            raise ValueError("dim, batch and epochs must be 1 or more")
        self.dim = dim
        self.activation = activation
        self.hidden = hidden
        self.weight_norm = weight_norm
        self.unit = unit
        self.length = length
        self.loss = loss
        self.margin = margin
        self.negatives = negatives
        self.mined = mined
        self.keep = keep
        self.batch = batch
        self.epochs = epochs
        self.rate = rate
        self.decay = decay
        self.normalize = normalize
        self.search = search

    def skip(self, meta: Mapping[str, Any], resources: Resources) -> str | None:
        """Whether there is a bag of words and, if asked for, faiss."""
        if self.search == "faiss" and importlib.util.find_spec("faiss") is None:
            return f"{self.name} needs the package faiss: pip install 'tailtables[mips]'"
        return super().skip(meta, resources)

    def warm_up(self, train: Split) -> None:
        """Compile by a fit on a few documents."""
        fit_tiny(self, train)

    def fit_in(self, train: Split, context: FitContext) -> EmbeddingModel:
        with threads_for(context.threads):
            return self._fit(train, context)

    def _fit(self, split: Split, context: FitContext) -> EmbeddingModel:
        bow = split.inputs.bow
        assert bow is not None
        X = as_unit_rows(bow) if self.normalize else bow.astype(np.float32)
        rng = np.random.default_rng([context.seed, len(split), self.dim])
        network = Network.random(
            X.shape[1],
            split.n_labels,
            self.dim,
            self.hidden,
            rng,
            length=self.length,
            relu=self.activation == "relu",
            unit=self.unit,
            weight_norm=self.weight_norm,
        )
        batches = Batches(X, split.labels, self.settings(), rng)
        history: dict[str, list[float]] = {"loss": [], "sampled_train_P@1": [], "train_P@1": []}
        model = EmbeddingModel(
            network,
            batches.occurring,
            unit_rows=self.normalize,
            search=self.search,
            threads=context.threads,
            history=history,
        )
        kinds: tuple[type[Regulariser], ...] = (Regulariser, DocumentRegulariser)
        given = [hook for hook in map(context.hooks.find, kinds) if hook is not None]
        sample = batches.documents[:SAMPLE]
        for loss in train(network, batches, self.epochs, given, context):
            history["loss"].append(loss)
            history["sampled_train_P@1"].append(_precision(model, X[sample], split.labels[sample]))
        network.words.measure()
        labelled = batches.documents
        history["train_P@1"].append(_precision(model, X[labelled], split.labels[labelled]))
        return model

    def settings(self) -> Settings:
        """What a training step needs to know."""
        return Settings(
            self.loss,
            self.margin,
            self.negatives,
            self.mined,
            self.keep,
            self.batch,
            self.rate,
            self.decay,
        )

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """Multiply-adds of the layers, the choice among each document's scores, whatever their
        width, and a look at train and test in the end."""
        if not meta.get("n_features"):
            return None
        n, features, labels = meta["n_train"], meta["n_features"], meta["n_labels"]
        words = words_per_document(meta)
        scored = min(self.negatives or labels, labels) + 1
        inner = self.hidden or self.dim
        # Forward and backward; of the scores, mining differentiates next to none.
        passes = 1 if self.loss == "margin" and self.mined else 3
        work = self.dim * (passes * scored + 3 * self.hidden)
        once = words * inner + self.dim * (labels + self.hidden)
        seen = self.epochs * n
        terms = {
            "word": Term(2 * seen * words * inner, 1 / MULTIPLY_ADDS_PER_S),
            "multiply-add": Term(seen * work, 1 / MULTIPLY_ADDS_PER_S),
            "pick": Term(seen * scored, PICK_SECONDS),
            "score": Term((n + meta.get("n_test", 0)) * once, 1 / MULTIPLY_ADDS_PER_S),
        }
        megabytes = 4 * (features * inner + 3 * labels * self.dim) / 2**20 + n * words * 16 / 2**20
        return Cost(terms, megabytes + 400)


def _precision(model: EmbeddingModel, X: Any, labels: Any) -> float:
    """P@1 in percent on documents prepared as in training."""
    best = model.best_labels(X)
    hits = np.asarray(labels[np.arange(len(best)), best]).ravel() > 0
    return 100.0 * float(hits.mean())
