"""What all deep text bases have in common: from a split to a trained network and its model."""

from __future__ import annotations

import abc
import inspect
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, Term, price_only, trained_label_count
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext, Method, Model
from methods.text.batches import Documents
from methods.text.cost import (
    FORWARD_AND_BACKWARD,
    MULTIPLY_ADDS_PER_S,
    STEP_SECONDS,
    TURN_SECONDS,
    VECTOR_SECONDS,
)
from methods.text.loss import BatchLoss, cross_entropy, mean_one
from methods.text.network import TextNetwork
from methods.text.optimiser import Group
from methods.text.predicting import top_labels
from methods.text.training import (
    Examples,
    History,
    Schedule,
    Trainer,
    one_thread_per_operation,
)

Settings = Mapping[str, Any]

LOOP: Settings = {
    "weight_decay": 0.0,
    "decay": "constant",
    "evaluate_every": 100,
    "patience": 50,
    "dev_documents": 200,
    "pool": 1,
    "piece": 10,
}
"""Settings of the training loop that most recipes share; see :class:`Schedule`."""
SETTINGS: Settings = {**LOOP, "normalise_weights": True, "negatives": 0}
"""The same with those of the cross-entropy of labels: ``normalise_weights`` is PW eq. 24,
``negatives`` above 0 trains on a sample of the labels, see :class:`methods.text.loss.Sample`."""
MIXERS = frozenset({"embedding_mixer", "hidden_mixer", "context_mixer"})


class TextMethod(Method):
    """A network trained by batches with binary cross-entropy; sub-classes say which network.

    Settings come from a named recipe of ``RECIPES``; those given as keywords replace its values.
    ``SAME`` are settings that do not depend on the recipe.
    """

    max_length: int
    batch_size: int
    epochs: int
    learning_rate: float
    weight_decay: float
    decay: str
    swa_from: int | None
    evaluate_every: int
    patience: int
    dev_documents: int
    normalise_weights: bool
    negatives: int
    pool: int
    piece: int

    needs = frozenset({"tokens"})
    accepts = frozenset({"loss_weights", "target_scale", "regulariser"}) | MIXERS
    RECIPES: ClassVar[Mapping[str, Settings]]
    SAME: ClassVar[Settings] = {}
    default_recipe: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Every setting of the recipes is a keyword of ``__init__``: its signature says so."""
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "RECIPES"):
            return
        recipe = cls.default_recipe
        defaults = {"recipe": recipe, **cls.SAME, **cls.RECIPES[recipe]}
        cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
                for name, value in defaults.items()
            ]
        )

    def __init__(self, *, recipe: str | None = None, **given: Any) -> None:
        self.recipe = recipe or self.default_recipe
        if self.recipe not in self.RECIPES:
            known = ", ".join(self.RECIPES)
            raise ValueError(f"{self.name} has no recipe {recipe!r}; there are {known}")
        settings = {**self.SAME, **self.RECIPES[self.recipe]}
        unknown = given.keys() - settings.keys()
        if unknown:
            raise TypeError(f"{self.name} has no setting {', '.join(sorted(unknown))}")
        for name, value in {**settings, **given}.items():
            setattr(self, name, value)

    @abc.abstractmethod
    def build(self, train: Split, labels: np.ndarray, context: FitContext) -> TextNetwork:
        """The untrained network for these label columns of a training split."""

    def schedule(self) -> Schedule:
        """How to train."""
        return Schedule(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            decay=self.decay,
            swa_from=self.swa_from,
            evaluate_every=self.evaluate_every,
            patience=self.patience,
            pool=self.pool,
            piece=self.piece,
        )

    def dev_size(self, meta: Mapping[str, Any]) -> int:
        """``dev_documents``, or a tenth of a small training split."""
        return min(self.dev_documents, int(meta["n_train"]) // 10)

    def loss(self, context: FitContext, labels: np.ndarray) -> Any:
        """The loss of a batch with the hooks of the fit, as the trainer calls it."""
        entropy = cross_entropy(context.hooks, labels, self.normalise_weights, context.device)
        return BatchLoss.of(context.hooks.of_labels(labels), entropy, self.negatives)

    def starting_shares(self, train: Split, labels: np.ndarray, context: FitContext) -> np.ndarray:
        """The probability of each label that minimises the loss where documents are not looked at.

        It is the label's share of documents f, or w f / (w f + v (1 - f)) where positives weigh w
        and negatives v. Started at f, a label whose positives weigh little (PW-cb's frequent ones)
        is far too likely, and on demo-text nothing is learnt. A likely reason, not tested: the
        first steps push its logit down by what all labels share.
        """
        shares = train.label_counts()[labels] / len(train)
        weights = context.hooks.find(LabelWeights)
        if weights is None:
            return shares
        own = weights.of_labels(labels)
        positive = shares * (mean_one(own.positive) if self.normalise_weights else own.positive)
        return np.asarray(positive / (positive + own.negative * (1.0 - shares)))

    def groups(self, network: TextNetwork) -> Sequence[Group] | None:
        """Parameters with learning rates of their own; None where there is one rate."""
        return None

    def documents(self, inputs: Inputs, resources: Mapping[str, Path]) -> Documents:
        """The inputs as ids; those who tokenise by a resource find its path in ``resources``."""
        assert inputs.tokens is not None
        return Documents.of(inputs.tokens, self.max_length)

    def examples(
        self, split: Split, labels: np.ndarray, context: FitContext, name: str
    ) -> Examples:
        """Documents of ``train`` or ``dev`` with these label columns."""
        return Examples(self.documents(split.inputs, context.resources), split.labels[:, labels])

    def model(
        self,
        network: TextNetwork,
        labels: np.ndarray,
        train: Split,
        context: FitContext,
        history: History,
    ) -> TextModel:
        """What is returned of a fit."""
        return TextModel(
            network,
            labels,
            train.n_labels,
            self.max_length,
            device=context.device,
            threads=context.threads,
            notes=history.notes,
            history=history,
        )

    @price_only
    def stages(self, n_labels: int) -> list[tuple[int, float]]:
        """The epochs of each stage of training, and the labels scored per document in it."""
        sampled = getattr(self, "negatives", 0)  # label clusters have no such setting
        return [(self.epochs, min(sampled or n_labels, n_labels))]

    @price_only
    def work(self, meta: Mapping[str, Any], labels: float) -> float:
        """Multiply-adds of a document's forward pass with so many labels, without those of
        :meth:`work_once`."""
        raise NotImplementedError(f"{self.name} has no law of cost")

    @price_only
    def turns(self, meta: Mapping[str, Any]) -> float:
        """Words of a document that wait for one another: those that an LSTM reads."""
        return 0.0

    @price_only
    def trained_vectors(self, meta: Mapping[str, Any]) -> float:
        """Numbers of the word vectors that a document changes in training."""
        return 0.0

    @price_only
    def work_once(self, meta: Mapping[str, Any]) -> float:
        """Multiply-adds of a document that training spends once, not in every epoch."""
        return 0.0

    @price_only
    def parameters_mb(self, meta: Mapping[str, Any], n_labels: int) -> float:
        """Megabytes of the trained weights; the optimiser and the averages take as much each."""
        return n_labels * 512 * 4 / 2**20

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """All epochs, which stopping early may shorten, dev evaluations, one look at the test.

        None for a sub-class that does not say how much :meth:`work` a document is.
        """
        n_labels = trained_label_count(meta)
        dev = self.dev_size(meta)
        n = int(meta["n_train"]) - dev
        once = self.work_once(meta)
        products, passes, trained, score = (n + dev) * once, 0.0, 0.0, once
        for epochs, labels in self.stages(n_labels):
            try:
                own = self.work(meta, labels)
            except NotImplementedError:
                return None
            trained += epochs * n
            evaluated = dev * epochs * n / self.batch_size / max(1, self.evaluate_every)
            seen = FORWARD_AND_BACKWARD * epochs * n + evaluated
            products += seen * own
            passes += seen
            score += own
        at_once = min(self.piece, self.batch_size)
        terms = {
            "multiply-add": Term(products, 1 / MULTIPLY_ADDS_PER_S),
            "turn": Term(passes / at_once * self.turns(meta), TURN_SECONDS),
            "vector": Term(trained * self.trained_vectors(meta), VECTOR_SECONDS),
            "step": Term(trained / self.batch_size, STEP_SECONDS),
            "score": Term(meta.get("n_test", 0) * score, 1 / MULTIPLY_ADDS_PER_S),
        }
        return Cost(terms, 800 + 4 * self.parameters_mb(meta, n_labels))

    def fit_in(self, train: Split, context: FitContext) -> Model:
        labels = trained_labels(train, context.dev)
        torch.manual_seed(context.seed)
        network = self.build(train, labels, context)
        objective = self.loss(context, labels)
        dev = context.dev
        trainer = Trainer(
            network,
            objective,
            self.examples(train, labels, context, "train"),
            self.schedule(),
            context,
            dev=None if dev is None else self.examples(dev, labels, context, "dev"),
            groups=self.groups(network),
            sort_pieces=not getattr(objective, "mixes_documents", False),
            n_test=int(train.meta.get("n_test", 0)),
        )
        return self.model(network, labels, train, context, trainer.run())


class TextModel(Model):
    """A trained network and the labels that its columns stand for."""

    def __init__(
        self,
        network: TextNetwork,
        labels: np.ndarray,
        n_labels: int,
        max_length: int,
        *,
        device: str = "cpu",
        threads: int = 1,
        notes: Sequence[str] = (),
        history: History | None = None,
    ) -> None:
        self.network = network
        self.labels = labels
        self.n_labels = n_labels
        self.max_length = max_length
        self.device = device
        self.threads = threads
        self.notes = list(notes)
        self.history = history
        self.fit_history = {} if history is None else history.numbers()
        self.decision_threshold = 0.5

    def documents(self, inputs: Inputs) -> Documents:
        """The inputs as ids."""
        assert inputs.tokens is not None
        return Documents.of(inputs.tokens, self.max_length)

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest probability; scores are probabilities."""
        documents = self.documents(inputs)
        with one_thread_per_operation():
            if self.threads > 1 and torch.device(self.device).type == "cpu":
                with ThreadPoolExecutor(self.threads) as pool:
                    top = top_labels(self.network, documents, k, self.device, pool)
            else:
                top = top_labels(self.network, documents, k, self.device)
        there = top.indices >= 0
        top.indices[there] = self.labels[top.indices[there]]
        return top

    def label_norms(self) -> np.ndarray | None:
        """Norms of the labels' vectors (attention vectors or output weights), float32[L].

        Labels without a training document have none: NaN.
        """
        vectors = self.network.label_embeddings()
        if vectors is None:
            return None
        norms = np.full(self.n_labels, np.nan, np.float32)
        norms[self.labels] = vectors.detach().norm(dim=1).cpu().numpy()
        return norms

    def save(self, folder: Path) -> None:
        """The whole network, and the labels of its columns."""
        torch.save(self.network, folder / "network.pt")
        np.save(folder / "labels.npy", self.labels)
        facts = {
            "n_labels": self.n_labels,
            "max_length": self.max_length,
            "threads": self.threads,
            "notes": list(self.notes),
        }
        (folder / "model.json").write_text(json.dumps(facts))

    @classmethod
    def load(cls, folder: Path) -> TextModel:
        """The model that :meth:`save` wrote, on the CPU."""
        facts = json.loads((folder / "model.json").read_text())
        network = torch.load(folder / "network.pt", map_location="cpu", weights_only=False)
        return cls(network, np.load(folder / "labels.npy"), **facts)


def trained_labels(train: Split, dev: Split | None) -> np.ndarray:
    """Labels with a document in train or dev: the columns of a network, as AttentionXML's."""
    counts = train.label_counts()
    if dev is not None:
        counts = counts + dev.label_counts()
    return np.flatnonzero(counts)
