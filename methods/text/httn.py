"""HTTN and its ensemble EHTTN (Xiao et al., AAAI 2021): tail classifiers computed, not trained.

The extractor and the head's classifier are trained on the documents of head labels (eqs. 1-5).
Prototypes of head labels and their classifier rows teach a linear map; it turns the prototypes of
tail labels, after attention over the head's, into their rows (eqs. 6-12). G draws of tail
documents give G classifiers, whose probabilities are averaged.

The recipe ``as-released`` follows the authors' program where it differs from the text: 150 units
per direction, representations and prototypes of length 1 with a learnt scale, ten times the rate
after the attention, the transfer learner trained by Adam, attention terms divided by the number of
head labels; of the ensemble, neither attention nor fine-tuning. Not followed: its random initial
states of the LSTM, also in prediction, attention to padding, documents in a fixed order, Adam's
second decay of 0.99, and the extractor fine-tuned along with the classifier.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.data.split import Inputs, Split, Tokens
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, Term, price_only, trained_label_count
from methods.interface import FitContext, Model
from methods.text import head_to_tail as h2t
from methods.text.base import Settings
from methods.text.batches import Documents
from methods.text.cost import FORWARD_AND_BACKWARD, MULTIPLY_ADDS_PER_S, TUNING_STEP_SECONDS
from methods.text.document_method import OF_WEIGHTED_LOSS, DocumentMethod, recipes
from methods.text.document_network import DocumentNetwork, representations
from methods.text.network import TextNetwork
from methods.text.optimiser import Group

OWN: Settings = {
    "l_tail": 1 / 3,  # labels of the tail, or their share; AAPD in the paper: 18 of 54
    "t": 5,  # documents per prototype
    "S": 30,  # draws of head prototypes
    "G": 1,  # draws of tail prototypes
    "attention": True,
    "similarity": "cosine",  # f_att of eq. 10; or inner product
    "transfer": "least-squares",  # or adam
    "ridge": 1e-6,  # of least squares
    "transfer_rate": 0.01,
    "transfer_epochs": 8,
    "fine_tune_on": "drawn",  # of which the paper says nothing: as in the released code; or train
    "fine_tune_epochs": 2,
    "fine_tune_rate": 1e-4,
    "member": None,  # the one of the G classifiers to predict by; None for their mean
}
RELEASED: Settings = {"transfer": "adam", "transfer_rate": 0.012}
RELEASED_ENSEMBLE: Settings = {
    "S": 60,
    "attention": False,
    "transfer": "adam",
    "transfer_rate": 0.013,
    "transfer_epochs": 7,
    "fine_tune_epochs": 0,
}


@dataclass(frozen=True)
class TrainedHead:
    """Extractor and head classifier, the labels of either side, the training documents' vectors."""

    network: DocumentNetwork
    head: np.ndarray
    tail: np.ndarray
    R: torch.Tensor
    notes: list[str]


class HTTN(DocumentMethod):
    """Head-to-tail network; see :data:`OWN` for its settings."""

    name = "HTTN"
    accepts = frozenset()
    RECIPES = recipes(OWN, RELEASED, without=OF_WEIGHTED_LOSS)

    l_tail: float
    t: int
    S: int
    G: int
    attention: bool
    similarity: str
    transfer: str
    ridge: float
    transfer_rate: float
    transfer_epochs: int
    fine_tune_on: str
    fine_tune_epochs: int
    fine_tune_rate: float
    member: int | None

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for value, known in (
            (self.similarity, ("inner product", "cosine")),
            (self.transfer, ("least-squares", "adam")),
            (self.fine_tune_on, ("drawn", "train")),
        ):
            if value not in known:
                raise ValueError(f"{value!r} is none of {', '.join(known)}")

    def groups(self, network: TextNetwork) -> Sequence[Group] | None:
        """The released code trains what follows the attention at ten times the rate."""
        if self.recipe != "as-released":
            return None
        assert isinstance(network, DocumentNetwork)
        parts = (network.attention.embed, network.classifier)
        fast = [network.scale, *(p for part in parts for p in part.parameters())]
        known = {id(p) for p in fast}
        slow = [p for p in network.parameters() if p.requires_grad and id(p) not in known]
        return [(slow, 1.0), (fast, 10.0)]

    def fit_in(self, train: Split, context: FitContext) -> ClassifierModel:
        return self.put_together(self.trained_head(train, context), train, context)

    def trained_head(self, train: Split, context: FitContext) -> TrainedHead:
        """The part of a fit that takes time (eqs. 1 to 5); it depends on l_tail of :data:`OWN`."""
        head, tail = h2t.head_and_tail(train.label_counts(), self.l_tail)
        network = self.seeded(train, head, context)
        assert isinstance(network, DocumentNetwork)
        history = self.train(network, train, head, context)
        documents = self.documents(train.inputs, context.resources)
        R = representations(network, documents, context.device, context.threads)
        return TrainedHead(network, head, tail, R, history.notes)

    def put_together(
        self, trained: TrainedHead, train: Split, context: FitContext
    ) -> ClassifierModel:
        """The rest of a fit: prototypes, transfer and the tail's classifiers (eqs. 6 to 12)."""
        network, head, tail, R = trained.network, trained.head, trained.tail, trained.R
        M_head = network.label_embeddings().detach().cpu()

        rng = np.random.default_rng([context.seed, 1])
        of_head = h2t.Documents(train.labels, head)
        P_head = torch.stack(
            [h2t.prototypes(R, of_head.draw(self.t, rng), self.unit) for _ in range(self.S)]
        )
        W = self.learn_transfer(P_head, M_head, context.seed)
        attended = P_head if self.attention else None
        transfer = Transfer(W, attended, self._divisor(len(head)), self.similarity == "cosine")
        of_tail = h2t.Documents(train.labels, tail)
        classifiers = []
        members = range(self.G)
        if self.member is not None and self.member not in members:
            raise ValueError(f"member {self.member} is none of the {self.G} of the ensemble")
        for g in members if self.member is None else [self.member]:
            rng = np.random.default_rng([context.seed, 2, g])
            drawn = of_tail.draw(self.t, rng)
            M_tail = transfer.rows(h2t.prototypes(R, drawn, self.unit))
            M = h2t.assembled(train.n_labels, head, M_head, tail, M_tail)
            classifiers.append(self._fine_tuned(M, R, train, drawn, network.scale.item(), rng))
        return ClassifierModel(
            network,
            classifiers,
            self.max_length,
            transfer=transfer,
            t=self.t,
            device=context.device,
            threads=context.threads,
            notes=[f"{len(head)} head and {len(tail)} tail labels", *trained.notes],
        )

    def learn_transfer(self, P_head: torch.Tensor, M_head: torch.Tensor, seed: int) -> torch.Tensor:
        """W_transfer (eq. 7)."""
        if self.transfer == "adam":
            return h2t.descent_transfer(
                P_head, M_head, self.transfer_rate, self.transfer_epochs, seed
            )
        return h2t.least_squares_transfer(P_head, M_head, self.ridge)

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """The head's network, and each member's rows, tuned on vectors of documents."""
        cost = super().cost(meta)
        if cost is None:
            return None
        labels = trained_label_count(meta)
        tail = self.l_tail * labels if self.l_tail < 1 else min(self.l_tail, labels)
        drawn = min(self.t * tail, meta["n_train"])
        documents = drawn if self.fine_tune_on == "drawn" else meta["n_train"]
        members = self.G if self.member is None else 1
        seen = members * self.fine_tune_epochs * documents
        products = FORWARD_AND_BACKWARD * seen * self.size * meta["n_labels"]
        tuned = {
            "tuning": Term(products, 1 / MULTIPLY_ADDS_PER_S),
            "tuning-step": Term(seen / self.batch_size, TUNING_STEP_SECONDS),
        }
        return replace(cost, terms={**cost.terms, **tuned})

    def _divisor(self, n_head: int) -> float | None:
        return n_head if self.recipe == "as-released" else None

    def _fine_tuned(
        self,
        M: torch.Tensor,
        R: torch.Tensor,
        train: Split,
        drawn: Sequence[np.ndarray],
        scale: float,
        rng: np.random.Generator,
    ) -> torch.Tensor:
        """On the tail's documents alone a fast rate costs much of the micro-F1 of all labels, on
        all documents little (results/reference/choose_httn.csv)."""
        on_drawn = self.fine_tune_on == "drawn"
        rows = np.unique(np.concatenate(drawn)) if on_drawn else np.arange(train.labels.shape[0])
        return h2t.fine_tuned(
            M,
            scale * R[torch.from_numpy(rows)],
            torch.from_numpy(train.labels[rows].toarray().astype(np.float32)),
            rate=self.fine_tune_rate,
            epochs=self.fine_tune_epochs,
            batch=self.batch_size,
            rng=rng,
        )


class EHTTN(HTTN):
    """The mean of G = 30 HTTNs that share head and transfer and differ in the tail's draws."""

    name = "EHTTN"
    RECIPES = recipes({**OWN, "G": 30}, RELEASED_ENSEMBLE, without=OF_WEIGHTED_LOSS)


class Transfer:
    """What turns a prototype into a classifier row: W, and head prototypes to attend to."""

    def __init__(
        self,
        W: torch.Tensor,
        P_head: torch.Tensor | None,
        divisor: float | None = None,
        cosine: bool = False,
    ) -> None:
        self.W = W
        self.P_head = P_head
        self.divisor = divisor
        self.cosine = cosine

    def rows(self, P: torch.Tensor) -> torch.Tensor:
        """Classifier rows of labels with these prototypes (eqs. 9 to 11), float[labels, d]."""
        return h2t.tail_rows(P, self.W, self.P_head, self.divisor, self.cosine)


class ClassifierModel(Model):
    """A trained extractor and one or more classifiers on its representations.

    ``added`` are the names of the labels that came after training, in the order of their columns.
    """

    decision_threshold = 0.5

    def __init__(
        self,
        network: DocumentNetwork,
        classifiers: Sequence[torch.Tensor],
        max_length: int,
        *,
        transfer: Transfer | None = None,
        bias: torch.Tensor | float = 0.0,
        t: int = 5,
        added: Sequence[str] = (),
        device: str = "cpu",
        threads: int = 1,
        notes: Sequence[str] = (),
    ) -> None:
        self.network = network
        self.classifiers = list(classifiers)
        self.max_length = max_length
        self.transfer = transfer
        self.bias = bias
        self.t = t
        self.added = list(added)
        self.device = device
        self.threads = threads
        self.notes = list(notes)

    def represent(self, tokens: Tokens | None) -> torch.Tensor:
        """The representations of documents, float32[n, d]."""
        assert tokens is not None
        documents = Documents.of(tokens, self.max_length)
        return representations(self.network, documents, self.device, self.threads)

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest mean probability; scores are probabilities."""
        R = self.network.scale.item() * self.represent(inputs.tokens)
        scores = h2t.probabilities(R, self.classifiers, self.bias).numpy()
        return TopK.from_dense(np.where(np.isnan(scores), -np.inf, scores), k)

    def add_label(self, name: str, documents: Inputs, seed: int = 0) -> int:
        """Take in a new label from a few documents that carry it; nothing is trained.

        Its column, the index by which predictions name it, comes back.
        """
        if self.transfer is None:
            raise ValueError("this model computes no classifiers from documents")
        if not len(documents):
            raise ValueError(f"label {name!r} needs at least one document")
        if name in self.added:
            raise ValueError(f"label {name!r} was added before, as {self._column(name)}")
        R = self.represent(documents.tokens)
        rng = np.random.default_rng([seed, len(self.added)])
        for g, M in enumerate(self.classifiers):
            drawn = rng.choice(len(R), min(self.t, len(R)), replace=False)
            P = h2t.prototypes(R, [drawn], self.network.unit)
            self.classifiers[g] = torch.cat([M, self.transfer.rows(P)])
        self.added.append(name)
        return self._column(name)

    def _column(self, name: str) -> int:
        return len(self.classifiers[0]) - len(self.added) + self.added.index(name)

    def label_norms(self) -> np.ndarray:
        """Norms of the rows of the mean classifier; NaN for labels without documents."""
        return torch.stack(self.classifiers).mean(dim=0).norm(dim=1).numpy()

    def save(self, folder: Path) -> None:
        """The network, the classifiers and what turns documents into new ones."""
        names = ("network", "classifiers", "transfer", "bias")
        torch.save({name: getattr(self, name) for name in names}, folder / "model.pt")
        facts = {"max_length": self.max_length, "t": self.t, "added": self.added}
        (folder / "model.json").write_text(json.dumps({**facts, "notes": list(self.notes)}))

    @classmethod
    def load(cls, folder: Path) -> ClassifierModel:
        """The model that :meth:`save` wrote, on the CPU."""
        state = torch.load(folder / "model.pt", map_location="cpu", weights_only=False)
        facts = json.loads((folder / "model.json").read_text())
        return cls(**state, **facts)
