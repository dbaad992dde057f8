"""Taug: head and tail labels apart, the tail's documents augmented (RankNet+Taug sec. 3.3).

Labels are ranked by frequency; the first floor(tau L) are the head, the rest the tail. One model
learns the head labels on the documents that carry any (the paper's "for all j" must be read as
"there is": no document carries every head label), another the tail labels on the documents that
carry any of those, together with ``n_aug`` changed copies of each. Their label sets are disjoint,
so joining the scores is putting them side by side.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods._kernels.random import below, next_uint64, stream, uniform
from methods._kernels.topk import reordered
from methods.cost import price_only
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed
from methods.variants.nested_model import load_nested, save_nested

ROWS_AT_ONCE = 4096
COPY_SHARE = 0.35
"""A copy's part of the cost of a fit: results/reference/runs.csv has four on EURLex-4K."""


def head_labels(counts: np.ndarray, tau: float) -> np.ndarray:
    """The floor(tau L) most frequent labels (ties to the lower label), ascending."""
    if not 0.0 <= tau <= 1.0:
        raise ValueError(f"tau must be between 0 and 1, not {tau}")
    order = np.argsort(-np.asarray(counts), kind="stable")
    return np.sort(order[: int(np.floor(tau * len(counts)))])


@njit(cache=True, nogil=True)
def augment_rows(indptr, indices, data, rows, copy, keep, swaps, seed, out_indices, out_data):  # type: ignore[no-untyped-def]
    """Write the changed copies of some rows one after the other; the end of each.

    Dropout keeps each feature with probability ``keep``; a swap exchanges the values of two
    features that are there. The draws depend on (seed, copy, row) only, whatever the order.
    """
    ends = np.empty(len(rows), np.int64)
    state = np.empty(1, np.uint64)
    at = 0
    for r in range(len(rows)):
        # Hashed twice: the generator's states of neighbouring rows must be far apart, or their
        # draws would be the same, shifted.
        state[0] = seed ^ np.uint64(rows[r])
        state[0] = next_uint64(state) ^ np.uint64(copy)
        state[0] = next_uint64(state)
        start = at
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            if keep >= 1.0 or uniform(state) < keep:
                out_indices[at] = indices[p]
                out_data[at] = data[p]
                at += 1
        n = at - start
        if n > 1:
            for _ in range(swaps):
                i = start + below(state, n)
                j = start + below(state, n)
                out_data[i], out_data[j] = out_data[j], out_data[i]
        ends[r] = at
    return ends


class Augmentation:
    """The rows of a matrix followed by changed copies of them, made a block at a time."""

    def __init__(
        self, X: sparse.csr_matrix, n_aug: int, keep: float, swaps: int, seed: int
    ) -> None:
        self.X = X
        self.n_aug = n_aug
        self.keep = keep
        self.swaps = swaps
        self.seed = stream(seed, 3)[0]

    def blocks(self) -> Iterator[sparse.csr_matrix]:
        """The original rows, then copy 0 of every row, copy 1, ..., in blocks of rows."""
        n, width = self.X.shape
        for copy in range(-1, self.n_aug):
            for start in range(0, n, ROWS_AT_ONCE):
                stop = min(start + ROWS_AT_ONCE, n)
                if copy < 0:
                    yield self.X[start:stop]
                    continue
                nnz = int(self.X.indptr[stop] - self.X.indptr[start])
                indices = np.empty(nnz, self.X.indices.dtype)
                data = np.empty(nnz, self.X.data.dtype)
                ends = augment_rows(
                    self.X.indptr,
                    self.X.indices,
                    self.X.data,
                    np.arange(start, stop),
                    copy,
                    self.keep,
                    self.swaps,
                    self.seed,
                    indices,
                    data,
                )
                indptr = np.concatenate([[0], ends])
                kept = int(indptr[-1])
                yield sparse.csr_matrix(
                    (data[:kept], indices[:kept], indptr), shape=(stop - start, width)
                )

    def on_disk(self, folder: Path) -> sparse.csr_matrix:
        """All rows as one matrix whose entries lie in files and are paged in when used.

        Only one block is ever in memory; the row pointers are, too.
        """
        lengths = []
        with open(folder / "indices", "wb") as indices, open(folder / "data", "wb") as data:
            for block in self.blocks():
                indices.write(block.indices.astype(np.int32, copy=False).tobytes())
                data.write(block.data.astype(np.float32, copy=False).tobytes())
                lengths.append(np.diff(block.indptr))
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        if indptr[-1] == 0:
            return sparse.csr_matrix((len(indptr) - 1, self.X.shape[1]), dtype=np.float32)
        return sparse.csr_matrix(
            (
                np.memmap(folder / "data", np.float32, "r"),
                np.memmap(folder / "indices", np.int32, "r"),
                indptr,
            ),
            shape=(len(indptr) - 1, self.X.shape[1]),
            copy=False,
        )

    def in_memory(self) -> sparse.csr_matrix:
        """All rows as one ordinary matrix."""
        return sparse.csr_matrix(sparse.vstack(list(self.blocks()), format="csr"))


class TaugModel(Model):
    """A model of the head labels and one of the tail labels; either may be missing."""

    def __init__(self, parts: list[Model], labels: list[np.ndarray], n_labels: int) -> None:
        self.parts = parts
        self.labels = labels  # the label behind each column of each part
        self.n_labels = n_labels
        self.remarks: list[str] = []

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The best of both, by their own scores."""
        tops = []
        for model, own in zip(self.parts, self.labels, strict=True):
            top = model.predict(inputs, k)
            indices = np.where(top.indices >= 0, own[np.maximum(top.indices, 0)], -1)
            tops.append(TopK(indices.astype(np.int32), top.scores))
        if len(tops) == 1:
            return tops[0]
        return reordered(
            np.concatenate([top.indices for top in tops], axis=1),
            np.concatenate([top.scores for top in tops], axis=1),
            k,
        )

    def label_norms(self) -> np.ndarray | None:
        """Norms of the classifiers of both models; None where the base has none."""
        norms = np.full(self.n_labels, np.nan, np.float32)
        for model, own in zip(self.parts, self.labels, strict=True):
            part = model.label_norms()
            if part is None:
                return None
            norms[own] = part
        return norms

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """The notes of both models, and where Taug could not do what it is for."""
        return [*(note for model in self.parts for note in model.notes), *self.remarks]

    def save(self, folder: Path) -> None:
        """Write both models and their labels."""
        for number, (model, own) in enumerate(zip(self.parts, self.labels, strict=True)):
            save_nested(model, folder / f"part{number}")
            np.save(folder / f"labels{number}.npy", own)
        facts = {"n_parts": len(self.parts), "n_labels": self.n_labels}
        (folder / "taug.json").write_text(json.dumps(facts))

    @classmethod
    def load(cls, folder: Path) -> TaugModel:
        """The model that :meth:`save` wrote into the folder."""
        facts = json.loads((folder / "taug.json").read_text())
        numbers = range(facts["n_parts"])
        return cls(
            [load_nested(folder / f"part{number}") for number in numbers],
            [np.load(folder / f"labels{number}.npy") for number in numbers],
            facts["n_labels"],
        )


class Taug(Variant):
    """Both changes to a copy, dropout first (Taug-ds). The paper leaves keep and swaps open.

    tau: 0.1, the paper's for EUR-Lex (0.01 for its larger sets).
    n_aug: 4 copies of each document, the paper's.
    keep: 0.8; a fifth of the words can go and a document is still about the same.
    swap_share: 0.1 swaps for each feature of a mean document, so a fifth of the values move.
    memory_mb: beyond this size the copies are kept in files, not in memory.
    """

    name = "Taug-ds"
    dropout = True
    swap = True

    def __init__(
        self,
        tau: float = 0.1,
        n_aug: int = 4,
        keep: float = 0.8,
        swap_share: float = 0.1,
        memory_mb: float = 2048.0,
    ) -> None:
        if not 0.0 < keep <= 1.0:
            raise ValueError(f"keep must be above 0 and at most 1, not {keep}")
        if n_aug < 0:
            raise ValueError(f"n_aug must not be negative, not {n_aug}")
        if not 0.0 <= tau <= 1.0:
            raise ValueError(f"tau must be between 0 and 1, not {tau}")
        self.tau = tau
        self.n_aug = n_aug
        self.keep = keep
        self.swap_share = swap_share
        self.memory_mb = memory_mb

    def misfit(self, base: Method) -> str | None:
        """Only a bag of words can be augmented like this."""
        if "bow" in base.needs:
            return None
        return (
            f"{base.name} does not learn from a bag of words, whose features Taug drops and swaps"
        )

    def apply(self, base: Method) -> Method:
        """The base, trained apart on head and augmented tail."""
        return Decoupled(base, self)

    def augmentation(self, X: sparse.csr_matrix, seed: int) -> Augmentation:
        """The copies that this variant makes of a matrix."""
        mean_length = X.nnz / max(X.shape[0], 1)
        swaps = max(1, round(self.swap_share * mean_length)) if self.swap else 0
        return Augmentation(X, self.n_aug, self.keep if self.dropout else 1.0, swaps, seed)


class TaugD(Taug):
    """Input dropout only."""

    name = "Taug-d"
    swap = False


class TaugS(Taug):
    """Input swap only."""

    name = "Taug-s"
    dropout = False


class Decoupled(Changed[Taug]):
    """A base trained apart on head labels and on the augmented tail."""

    @price_only
    def fits_of_base(self) -> float:
        """One for head and tail together, and a share of one for each copy of the tail's part."""
        return 1 + COPY_SHARE * self._change.n_aug

    def fit_in(self, train: Split, context: FitContext) -> TaugModel:
        head = head_labels(train.label_counts(), self._change.tau)
        tail = np.setdiff1d(np.arange(train.n_labels), head)
        context = replace(context, checkpoint=None)
        parts, labels, remarks = [], [], []
        # One after the other with all threads: side by side on half of them each, the smaller
        # model's half would soon be idle.
        if len(head):
            part = _restricted(train, head, everything=len(tail) == 0)
            remarks += _without_negatives(part, "head")
            parts.append(self._base.fit_in(part, _of_labels(context, head)))
            labels.append(head)
        if len(tail):
            part = _restricted(train, tail, everything=len(head) == 0)
            remarks += [*_without_negatives(part, "tail"), *self._moot_swaps(part)]
            parts.append(self._fit_tail(part, _of_labels(context, tail)))
            labels.append(tail)
        model = TaugModel(parts, labels, train.n_labels)
        model.remarks = remarks
        return model

    def _moot_swaps(self, part: Split) -> list[str]:
        """A remark where the features of each document are equal, as 0/1 features are."""
        X = part.inputs.bow
        assert X is not None
        if not self._change.swap or self._change.n_aug == 0 or not _equal_within_rows(X):
            return []
        return ["swapping changes nothing: the features that a document has are all equal"]

    def _fit_tail(self, part: Split, context: FitContext) -> Model:
        if self._change.n_aug == 0:
            return self._base.fit_in(part, context)
        assert part.inputs.bow is not None
        augmentation = self._change.augmentation(part.inputs.bow, context.seed)
        copies = 1 + self._change.n_aug
        labels = sparse.csr_matrix(sparse.vstack([part.labels] * copies, format="csr"))
        # Eight bytes per entry: a feature and its value.
        megabytes = part.inputs.bow.nnz * copies * 8 / 1e6
        if megabytes <= self._change.memory_mb:
            inputs = Inputs(bow=augmentation.in_memory())
            return self._base.fit_in(replace(part, inputs=inputs, labels=labels), context)
        with tempfile.TemporaryDirectory(prefix="taug-") as folder:
            inputs = Inputs(bow=augmentation.on_disk(Path(folder)))
            return self._base.fit_in(replace(part, inputs=inputs, labels=labels), context)


def _restricted(train: Split, labels: np.ndarray, everything: bool) -> Split:
    """Some labels and the documents that carry any of them; all documents if no label is left."""
    if everything:
        return train
    own = sparse.csr_matrix(train.labels[:, labels])
    rows = np.flatnonzero(np.diff(own.indptr) > 0)
    return Split(Inputs(bow=train.inputs.bow[rows]), own[rows], train.meta)  # type: ignore[index]


def _without_negatives(part: Split, which: str) -> list[str]:
    """A remark on labels that every document of their part carries."""
    full = int((part.label_counts() == len(part)).sum())
    if not full:
        return []
    noun, verb = ("label", "has") if full == 1 else ("labels", "have")
    return [f"{full} {which} {noun} {verb} no negative document"]


def _equal_within_rows(X: sparse.csr_matrix) -> bool:
    ends = X.indptr[1:-1][(X.indptr[1:-1] > 0) & (X.indptr[1:-1] < X.nnz)]
    same = X.data[1:] == X.data[:-1]
    same[ends - 1] = True  # the first value of a row may differ from the last of the row before
    return bool(same.all())


def _of_labels(context: FitContext, labels: np.ndarray) -> FitContext:
    """The context for a training split that holds only these label columns."""
    dev = context.dev
    if dev is not None:
        dev = replace(dev, labels=sparse.csr_matrix(dev.labels[:, labels]))
    return replace(context, hooks=context.hooks.of_labels(labels), dev=dev)
