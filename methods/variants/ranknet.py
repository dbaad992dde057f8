"""RankNet: re-rank a base's candidates with a loss that lifts rare labels (RankNet+Taug 3.2).

``RankNet`` learns the network of :mod:`methods.variants.ranknet_core` on scores that the base gave
to documents it had not seen; ``RankNet-simple`` multiplies each score by the label's inverse
propensity. Neither changes the base.
"""

from __future__ import annotations

import abc
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods._kernels.random import stream
from methods._kernels.topk import reordered
from methods.cost import Term, labels_per_document, price_only
from methods.interface import FitContext, Method, Model, Variant
from methods.variants import ranknet_core as core
from methods.variants.applied import Changed
from methods.variants.nested_model import load_nested, save_nested

LINKS = ("auto", "identity", "hinge")
PAIR_SECONDS = 5e-9
"""Of a pair of labels in the network: a round figure before any run."""


def as_probability(top: TopK, link: str) -> np.ndarray:
    """Scores in a form that can be scaled: float64[n, k], 0 where there is no label.

    Margins become exp(-max(0, 1 - m)^2), what Parabel makes of a margin; ``auto`` takes scores
    for margins where any is negative.
    """
    real = top.indices >= 0
    scores = np.where(real, top.scores, 0.0).astype(np.float64)
    if link == "hinge" or (link == "auto" and (scores < 0).any()):
        scores = np.exp(-(np.maximum(0.0, 1.0 - scores) ** 2))
    return np.where(real, scores, 0.0)


class Reranker(Model):
    """A base's model and what is done to its scores."""

    base: Model
    candidates: int
    link: str

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """Re-rank the base's candidates."""
        top = self.base.predict(inputs, max(k, self.candidates))
        return reordered(top.indices, self.rescore(top), k)

    @abc.abstractmethod
    def rescore(self, top: TopK) -> np.ndarray:
        """New scores of a base's predictions."""

    def label_norms(self) -> np.ndarray | None:
        """Norms of the base's classifiers, which re-ranking leaves as they are."""
        return self.base.label_norms()

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        """The notes of the base's model."""
        return self.base.notes


class SimpleModel(Reranker):
    """F_l = r_l f_l."""

    def __init__(self, base: Model, factors: np.ndarray, candidates: int, link: str) -> None:
        self.base = base
        self.factors = factors
        self.candidates = candidates
        self.link = link

    def rescore(self, top: TopK) -> np.ndarray:
        """Scores times the inverse propensity of their label."""
        return as_probability(top, self.link) * self.factors[np.maximum(top.indices, 0)]

    def save(self, folder: Path) -> None:
        """Write the base and the factors."""
        save_nested(self.base, folder / "base")
        np.save(folder / "factors.npy", self.factors)
        (folder / "ranknet.json").write_text(
            json.dumps({"candidates": self.candidates, "link": self.link})
        )

    @classmethod
    def load(cls, folder: Path) -> SimpleModel:
        """The model that :meth:`save` wrote into the folder."""
        settings = json.loads((folder / "ranknet.json").read_text())
        return cls(load_nested(folder / "base"), np.load(folder / "factors.npy"), **settings)


class NetworkModel(Reranker):
    """A base's model and a trained network.

    ``seconds`` says what the out-of-fold scores and the network's own training took.
    """

    def __init__(
        self,
        base: Model,
        form: int,
        pattern: sparse.csr_matrix,
        W: np.ndarray,
        W1: np.ndarray,
        W2: np.ndarray,
        candidates: int,
        link: str,
    ) -> None:
        self.base = base
        self.form = form
        self.pattern = pattern
        self.W, self.W1, self.W2 = W, W1, W2
        self.candidates = candidates
        self.link = link
        self.history = np.empty(0)
        self.seconds: dict[str, float] = {}
        self.remarks: list[str] = []

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        """The notes of the base's model, and how long the re-ranker took beside it."""
        said = [*self.base.notes, *self.remarks]
        if self.seconds:
            took = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.seconds.items())
            said.append(f"RankNet beside its base: {took}")
        return said

    def rescore(self, top: TopK) -> np.ndarray:
        """The network's output."""
        scores = as_probability(top, self.link)
        out = scores.copy()
        core.apply(
            self.form,
            top.indices,
            scores,
            self.pattern.shape[0],
            self.pattern.indptr,
            self.pattern.indices,
            self.W,
            self.W1,
            self.W2,
            out,
        )
        return out

    def save(self, folder: Path) -> None:
        """Write the base, the network and its settings."""
        save_nested(self.base, folder / "base")
        np.savez(
            folder / "network.npz",
            indptr=self.pattern.indptr,
            indices=self.pattern.indices,
            W=self.W,
            W1=self.W1,
            W2=self.W2,
        )
        settings = {"form": self.form, "candidates": self.candidates, "link": self.link}
        (folder / "ranknet.json").write_text(json.dumps(settings))

    @classmethod
    def load(cls, folder: Path) -> NetworkModel:
        """The model that :meth:`save` wrote into the folder."""
        settings = json.loads((folder / "ranknet.json").read_text())
        with np.load(folder / "network.npz") as stored:
            n_labels = len(stored["indptr"]) - 1
            pattern = sparse.csr_matrix(
                (np.zeros(len(stored["indices"]), np.float32), stored["indices"], stored["indptr"]),
                shape=(n_labels, n_labels),
            )
            weights = {name: stored[name] for name in ("W", "W1", "W2")}
        return cls(load_nested(folder / "base"), pattern=pattern, **weights, **settings)


class RerankVariant(Variant):
    """What is put on top of a base's scores."""

    def misfit(self, base: Method) -> str | None:
        """It needs scores that say something of the document."""
        if base.needs:
            return None
        return f"{base.name} looks at no document, so its scores cannot be re-ranked for one"

    def apply(self, base: Method) -> Method:
        """The base with a re-ranker on top."""
        return Reranked(base, self)

    @abc.abstractmethod
    def fit(self, base: Method, train: Split, context: FitContext) -> Model:
        """Fit the base and what goes on top."""

    @price_only
    def fits_of_base(self) -> float:
        """How many fits of the base on all documents the whole costs."""
        return 1.0

    @price_only
    def work_beside(self, meta: Mapping[str, Any]) -> Mapping[str, Term]:
        """What is done beside fits of the base."""
        return {}


class RankNetSimple(RerankVariant):
    """F_l = r_l f_l with Jain's inverse propensity r_l (RankNet+Taug sec. 3.2, end)."""

    name = "RankNet-simple"

    def __init__(self, candidates: int = 100, link: str = "auto") -> None:
        self.candidates = candidates
        self.link = _known(link, LINKS, "link")

    def fit(self, base: Method, train: Split, context: FitContext) -> SimpleModel:
        """Nothing is learnt beyond the base."""
        factors = train.inverse_propensity()
        return SimpleModel(base.fit_in(train, context), factors, self.candidates, self.link)


class RankNet(RerankVariant):
    """The learnt re-ranker. The paper leaves every number below open; each default says why.

    neighbours, trade_off, margin and rate are the best of 80 settings by PSP on a fifth of
    EURLex-4K-half's training documents that was held out, among those that lose at most 1.5
    points of P@1 there: ``python -m workflow.studies.choose_ranknet``. No test document was used;
    trade_off and rate lie inside the grid.

    form: ``residual`` (W_r y + y), the paper's first formula, or ``bottleneck``.
    n_blocks: 1; the paper stacks "any number" and shows none.
    hidden: V = 64 for the bottleneck, far below L as the paper asks.
    neighbours: 10; a row of W_r may hold that many other labels, those proposed with it most
    often. The whole L x L does not fit into memory for L = 670k.
    candidates: 100, what Parabel and Bonsai emit for a document.
    n_negatives: 20 of the candidates, a few times the labels of a document.
    trade_off: lambda = 10, so that accuracy counts for more than the rarity of labels.
    margin: c = 0, so that only wrong orders count.
    rate, epochs: AdaGrad at 0.03 for 5 epochs: a weight moves by a few tenths at most, so that
    the base's order is corrected and not replaced.
    scores: ``held-out`` trains on documents the base had not seen; ``train`` shows what
    over-fitted scores do.
    n_folds: 3; together they cost as much as two fits of the base. A label whose documents all
    lie in one fold (every label with one document) is proposed only where it is wrong; it is never
    drawn as a negative, or it could only be pushed down.
    link: how scores become probabilities, see :func:`as_probability`.
    """

    name = "RankNet"

    def __init__(
        self,
        form: str = "residual",
        n_blocks: int = 1,
        hidden: int = 64,
        neighbours: int = 10,
        candidates: int = 100,
        n_negatives: int = 20,
        trade_off: float = 10.0,
        margin: float = 0.0,
        rate: float = 0.03,
        epochs: int = 5,
        scores: str = "held-out",
        n_folds: int = 3,
        link: str = "auto",
    ) -> None:
        self.form = _known(form, ("residual", "bottleneck"), "form")
        self.n_blocks = n_blocks
        self.hidden = hidden
        self.neighbours = neighbours
        self.candidates = candidates
        self.n_negatives = n_negatives
        self.trade_off = trade_off
        self.margin = margin
        self.rate = rate
        self.epochs = epochs
        self.scores = _known(scores, ("held-out", "train"), "scores")
        self.n_folds = n_folds
        self.link = _known(link, LINKS, "link")
        if n_folds < 2:
            raise ValueError(f"n_folds must be at least 2, not {n_folds}")

    @price_only
    def fits_of_base(self) -> float:
        """One on all documents, and n_folds on all but a fold."""
        return 1.0 + (self.n_folds - 1 if self.scores == "held-out" else 0)

    @price_only
    def work_beside(self, meta: Mapping[str, Any]) -> Mapping[str, Term]:
        """Neighbours by pairs of candidates; in each epoch, candidates with their neighbours and
        pairs of labels in a wrong order."""
        k, own = min(self.candidates, meta["n_labels"]), labels_per_document(meta)
        width = self.neighbours if self.form == "residual" else self.hidden
        together = k**2 if self.form == "residual" and self.neighbours else 0
        passed = k * (1 + self.n_blocks * width) + own * (own + self.n_negatives)
        amount = meta["n_train"] * (together + self.epochs * passed)
        return {"re-ranker": Term(amount, PAIR_SECONDS)}

    def fit(self, base: Method, train: Split, context: FitContext) -> NetworkModel:
        """Fit the base, get scores to learn from, and train the network on them."""
        model = base.fit_in(train, context)
        started = time.perf_counter()
        exempt = None
        if self.scores == "train":
            top = model.predict(train.inputs, self.candidates)
        else:
            top = self.held_out(base, train, context)
            exempt = self.never_positive(train, context.seed)
        scored = time.perf_counter()
        network = self.train_network(model, top, train, context.seed, exempt)
        network.seconds = {"scores": scored - started, "network": time.perf_counter() - scored}
        return network

    def held_out(self, base: Method, train: Split, context: FitContext) -> TopK:
        """Predictions for each training document by a base that was fitted without it."""
        fold = self._folds(len(train), context.seed)
        top = TopK.empty(len(train), self.candidates)
        for number in range(self.n_folds):
            rows = np.flatnonzero(fold == number)
            rest = np.flatnonzero(fold != number)
            if len(rows) == 0 or len(rest) == 0:
                continue
            model = base.fit_in(train.take(rest), replace(context, checkpoint=None))
            part = model.predict(train.inputs.take(rows), self.candidates)
            top.indices[rows], top.scores[rows] = part.indices, part.scores
            context.progress(number + 1, self.n_folds, "folds")
        return top

    def never_positive(self, train: Split, seed: int) -> np.ndarray:
        """bool[L]: labels whose documents all lie in one fold of :meth:`held_out`.

        A base fitted without that fold has not seen them, so none is ever proposed for a document
        that carries it.
        """
        labels = train.labels.tocoo()
        seen = np.zeros((train.n_labels, self.n_folds), bool)
        seen[labels.col, self._folds(len(train), seed)[labels.row]] = True
        return seen.sum(axis=1) < 2

    def _folds(self, n: int, seed: int) -> np.ndarray:
        return np.random.default_rng([seed, 0]).permutation(n) % self.n_folds

    def train_network(
        self,
        model: Model,
        top: TopK,
        train: Split,
        seed: int,
        exempt: np.ndarray | None = None,
    ) -> NetworkModel:
        """Train the network on the base's scores of the training documents.

        Labels that are ``exempt`` are never taken for negatives.
        """
        n_labels = train.n_labels
        form = core.RESIDUAL if self.form == "residual" else core.BOTTLENECK
        width = self.neighbours if form == core.RESIDUAL else 0
        pattern = core.neighbour_pattern(top.indices, n_labels, width)
        W = np.zeros((self.n_blocks, pattern.nnz if form == core.RESIDUAL else 0), np.float32)
        shape = (self.n_blocks, n_labels if form == core.BOTTLENECK else 0, self.hidden)
        # W_r2 starts at zero, so that training starts from the base's ranking.
        rng = np.random.default_rng([seed, 1])
        W1 = (rng.standard_normal(shape) / np.sqrt(self.hidden)).astype(np.float32)
        W2 = np.zeros(shape, np.float32)
        labels = train.labels.tocsr()
        history = core.train(
            form,
            top.indices,
            as_probability(top, self.link),
            labels.indptr,
            labels.indices,
            train.label_counts().astype(np.float64),
            np.zeros(n_labels, bool) if exempt is None else exempt,
            pattern.indptr,
            pattern.indices,
            W,
            W1,
            W2,
            self.n_negatives,
            float(self.trade_off),
            float(self.margin),
            float(self.rate),
            self.epochs,
            stream(seed, 2),
        )
        network = NetworkModel(model, form, pattern, W, W1, W2, self.candidates, self.link)
        network.history = history
        return network


class Reranked(Changed[RerankVariant]):
    """A base with a re-ranker on top."""

    @price_only
    def fits_of_base(self) -> float:
        """Once for the scores it trains on, in each fold, and once for the model."""
        return self._change.fits_of_base()

    @price_only
    def work_beside(self, meta: Mapping[str, Any]) -> Mapping[str, Term]:
        """The re-ranker's own."""
        return self._change.work_beside(meta)

    def fit_in(self, train: Split, context: FitContext) -> Model:
        return self._change.fit(self._base, train, context)


def _known(value: str, options: tuple[str, ...], what: str) -> str:
    if value not in options:
        raise ValueError(f"{what} must be one of {', '.join(options)}, not {value!r}")
    return value
