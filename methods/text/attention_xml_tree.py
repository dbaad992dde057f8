"""AttentionXML with a shallow label tree, for hundreds of thousands of labels.

Labels are halved again and again by balanced 2-means on the words of their documents; the groups
at some depths are the tree's levels. The first level is a plain AttentionXML over groups. Every
further one starts from the network above, with new attention vectors, and sees of each document
only the members of its best groups; a label's score is the product of the probabilities down to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods._kernels.random import stream
from methods.cost import price_only
from methods.hooks import Hooks
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext, Model
from methods.text.attention_xml import RECIPES, AttentionXML, attention_groups
from methods.text.base import Settings, trained_labels
from methods.text.batches import Documents
from methods.text.candidates import CandidateExamples, CandidateLoss, CandidateNetwork, children
from methods.text.loss import BatchLoss, cross_entropy
from methods.text.training import Examples, Trainer, one_thread_per_operation
from methods.trees.partition import balanced_halves, label_centroids, row_scales


def _of_all_labels(recipe: str) -> Settings:
    """A recipe without the sample of labels: the levels see candidates instead."""
    return {name: value for name, value in RECIPES[recipe].items() if name != "negatives"}


class AttentionXMLTree(AttentionXML):
    """``depths`` are those of the levels above the labels: 2^depth groups each. Of each document,
    the members of its ``top`` best groups are candidates on the next level; ``level_epochs`` are
    the epochs of all levels after the first, ``level_swa_from`` as ``swa_from``."""

    name = "AttentionXML-tree"
    accepts = frozenset({"loss_weights"})

    depths: Sequence[int]
    top: int
    level_epochs: int
    level_swa_from: int

    RECIPES: ClassVar[Mapping[str, Settings]] = {
        # The authors' settings for Amazon-670K (configure/models/AttentionXML-Amazon-670K.yaml).
        "original": {
            **_of_all_labels("original"),
            "train_embeddings": True,
            "hidden": 512,
            "head": (512, 256),
            "batch_size": 200,
            "epochs": 10,
            "swa_from": 6,
            "dev_documents": 4000,
            "depths": (11, 14, 17),
            "top": 160,
            "level_epochs": 10,
            "level_swa_from": 2,
        },
        "converging": {
            **_of_all_labels("converging"),
            "depths": (4,),
            "top": 6,
            "level_epochs": 8,
            "level_swa_from": 4,
        },
    }

    @price_only
    def stages(self, n_labels: int) -> list[tuple[int, float]]:
        """Groups first; on each further level the members of the best groups alone."""
        sizes = [min(2.0**depth, n_labels) for depth in self.depths] + [float(n_labels)]
        below = [min(self.top * size / above, size) for above, size in pairwise(sizes)]
        return [(self.epochs, sizes[0]), *((self.level_epochs, size) for size in below)]

    def fit_in(self, train: Split, context: FitContext) -> AttentionXMLTreeModel:
        labels = trained_labels(train, context.dev)
        groups = label_groups(train, labels, self.depths, context.seed)
        torch.manual_seed(context.seed)
        documents = self.documents(train.inputs, {})
        dev = context.dev
        dev_documents = None if dev is None else self.documents(dev.inputs, {})
        members = [*groups, np.arange(len(labels))]  # of each label, its group on every level
        networks: list[Any] = []
        notes: list[str] = []
        found: TopK | None = None
        found_dev: TopK | None = None
        for level, group_of in enumerate(members):
            size = int(group_of.max()) + 1
            own = _grouped(train.labels[:, labels], group_of, size)
            own_dev = None if dev is None else _grouped(dev.labels[:, labels], group_of, size)
            hooks = self._weights(context.hooks, own, labels, level == len(groups))
            entropy = cross_entropy(hooks, np.arange(size), self.normalise_weights, context.device)
            if level == 0:
                of_groups = replace(context, hooks=hooks)
                network: Any = self.build(replace(train, labels=own), np.arange(size), of_groups)
                examples = Examples(documents, own)
                loss: Any = BatchLoss.of(Hooks(), entropy)
                examples_dev = own_dev is not None and Examples(dev_documents, own_dev)  # type: ignore[arg-type]
                rates: Any = attention_groups(network, self.label_rate)
            else:
                above = members[level - 1]
                n_above = int(above.max()) + 1
                parent = np.zeros(size, np.int64)
                parent[group_of] = above
                assert found is not None
                true = _grouped(train.labels[:, labels], above, n_above)
                network = CandidateNetwork(networks[-1], size)
                examples = CandidateExamples(
                    documents, own, *children(found, parent, n_above, true)
                )
                loss = CandidateLoss(entropy, examples.candidates)
                examples_dev = found_dev is not None and CandidateExamples(
                    dev_documents,  # type: ignore[arg-type]
                    own_dev,
                    *children(found_dev, parent, n_above),
                )
                rates = None
            trainer = Trainer(
                network,
                loss,
                examples,
                self._schedule_of(level),
                context,
                dev=examples_dev or None,
                groups=rates,
                name=f"level{level}",
                n_test=int(train.meta.get("n_test", 0)),
            )
            notes += [f"level {level}: {note}" for note in trainer.run().notes]
            networks.append(network)
            if level < len(groups):
                with one_thread_per_operation():
                    found = examples.top(network, self.top, context.device)
                    if examples_dev:
                        found_dev = examples_dev.top(network, self.top, context.device)
        return AttentionXMLTreeModel(
            networks,
            members,
            labels,
            train.n_labels,
            {"max_length": self.max_length, "top": self.top, "threads": context.threads},
            device=context.device,
            notes=notes,
        )

    def _schedule_of(self, level: int) -> Any:
        if level == 0:
            return self.schedule()
        return replace(self.schedule(), epochs=self.level_epochs, swa_from=self.level_swa_from)

    def _weights(
        self,
        hooks: Hooks,
        counted: sparse.csr_matrix,
        labels: np.ndarray,
        last: bool,
    ) -> Hooks:
        """The weights of a level: those of its labels, or by the counts of its groups."""
        weights = hooks.find(LabelWeights)
        if weights is None:
            return Hooks()
        if last:
            return Hooks(weights.of_labels(labels))
        if weights.of_groups is None:
            raise ValueError(f"{self.name} needs weights that follow from counts, for its groups")
        counts = np.bincount(counted.indices, minlength=counted.shape[1])
        return Hooks(LabelWeights(weights.of_groups(counts), np.ones(len(counts))))


class AttentionXMLTreeModel(Model):
    """A network for each level, and the group of every label on each."""

    def __init__(
        self,
        networks: Sequence[Any],
        members: Sequence[np.ndarray],
        labels: np.ndarray,
        n_labels: int,
        settings: Mapping[str, Any],
        *,
        device: str = "cpu",
        notes: Sequence[str] = (),
    ) -> None:
        self.networks = list(networks)
        self.members = list(members)
        self.labels = labels
        self.n_labels = n_labels
        self.settings = dict(settings)
        self.device = device
        self.notes = list(notes)
        self.decision_threshold = 0.5

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest product of probabilities; scores are these products."""
        assert inputs.tokens is not None
        documents = Documents.of(inputs.tokens, self.settings["max_length"])
        nothing = sparse.csr_matrix((len(documents), 1), dtype=np.float32)
        examples = Examples(documents, nothing)
        with one_thread_per_operation(), ThreadPoolExecutor(self.settings["threads"]) as pool:
            for level, network in enumerate(self.networks):
                last = level == len(self.networks) - 1
                top = examples.top(network, k if last else self.settings["top"], self.device, pool)
                if not last:
                    here, below = self.members[level], self.members[level + 1]
                    parent = np.zeros(int(below.max()) + 1, np.int64)
                    parent[below] = here
                    found = children(top, parent, int(here.max()) + 1)
                    examples = CandidateExamples(documents, nothing, *found)
        there = top.indices >= 0
        top.indices[there] = self.labels[top.indices[there]]
        return top

    def label_norms(self) -> np.ndarray:
        """Norms of the labels' attention vectors, float32[L]; NaN without a training document."""
        norms = np.full(self.n_labels, np.nan, np.float32)
        norms[self.labels] = self.networks[-1].label_embeddings().detach().norm(dim=1).cpu().numpy()
        return norms

    def save(self, folder: Path) -> None:
        """All networks, the groups, and the labels of the last level's columns."""
        torch.save(self.networks, folder / "networks.pt")
        named = {f"level{i}": members for i, members in enumerate(self.members)}
        np.savez(folder / "labels.npz", labels=self.labels, **named)  # type: ignore[arg-type]
        facts = {"n_labels": self.n_labels, "settings": self.settings, "notes": self.notes}
        (folder / "model.json").write_text(json.dumps(facts))

    @classmethod
    def load(cls, folder: Path) -> AttentionXMLTreeModel:
        """The model that :meth:`save` wrote, on the CPU."""
        facts = json.loads((folder / "model.json").read_text())
        networks = torch.load(folder / "networks.pt", map_location="cpu", weights_only=False)
        with np.load(folder / "labels.npz") as kept:
            members = [kept[f"level{i}"] for i in range(len(networks))]
            return cls(networks, members, kept["labels"], **facts)


def label_groups(
    train: Split, labels: np.ndarray, depths: Sequence[int], seed: int
) -> list[np.ndarray]:
    """The group of each label at each depth, int64[len(labels)] each, by balanced halving."""
    tokens = train.inputs.tokens
    assert tokens is not None
    words = train.inputs.bow
    if words is None:
        counts = np.ones(len(tokens.ids), np.float32)
        words = sparse.csr_matrix((counts, tokens.ids, tokens.indptr))
        words.sum_duplicates()
    words = sparse.csr_matrix(words, dtype=np.float32)
    centroids = label_centroids(words, row_scales(words), train.labels[:, labels])
    parts = [np.arange(len(labels))]
    found = []
    for depth in range(1, max(depths, default=0) + 1):
        halves = []
        for number, part in enumerate(parts):
            if len(part) < 2:
                halves.append(part)
                continue
            side = balanced_halves(
                centroids.indptr,
                centroids.indices,
                centroids.data,
                part,
                centroids.shape[1],
                stream(seed, depth, number),
            )
            halves += [part[side == 0], part[side == 1]]
        parts = halves
        if depth in depths:
            group = np.empty(len(labels), np.int64)
            for number, part in enumerate(parts):
                group[part] = number
            found.append(group)
    return found


def _grouped(labels: sparse.csr_matrix, group_of: np.ndarray, n_groups: int) -> sparse.csr_matrix:
    """Documents x groups: a group is there where any of its labels is."""
    ones = np.ones(len(group_of), np.float32)
    into = sparse.csr_matrix(
        (ones, (np.arange(len(group_of)), group_of)), shape=(len(group_of), n_groups)
    )
    grouped = sparse.csr_matrix(labels @ into, dtype=np.float32)
    grouped.data[:] = 1.0
    grouped.sort_indices()
    return grouped
