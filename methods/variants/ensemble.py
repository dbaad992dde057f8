"""Ensembles over seeds: members that differ in nothing but their seed, their scores averaged.

In a run, each member is a cell of its own and a rule averages what they predicted; fitted from
the library, the members are fitted one after another.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.cost import price_only
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed
from methods.variants.nested_model import load_nested, save_nested

ROWS_AT_ONCE = 4096


def average(members: Sequence[TopK], k: int) -> TopK:
    """The k labels of the largest mean score over the members, ties to the lower label.

    A label that a member did not keep for a document counts there with the lowest score that the
    member kept for it: its own score can only be lower. A member without any label for a document
    does not count for it.
    """
    n = len(members[0])
    top = TopK.empty(n, k)
    for start in range(0, n, ROWS_AT_ONCE):
        block = slice(start, min(start + ROWS_AT_ONCE, n))
        parts = [TopK(member.indices[block], member.scores[block]) for member in members]
        mean = TopK.from_sparse(_mean_scores(parts), k)
        top.indices[block], top.scores[block] = mean.indices, mean.scores
    return top


def _mean_scores(members: Sequence[TopK]) -> sparse.csr_matrix:
    """Mean scores, rows x labels, with an entry for each label that any member kept."""
    n = len(members[0])
    width = 1 + max(int(member.indices.max(initial=0)) for member in members)
    kept = [member.indices >= 0 for member in members]
    keys = [
        np.nonzero(real)[0] * width + member.indices[real]
        for member, real in zip(members, kept, strict=True)
    ]
    entries = np.unique(np.concatenate(keys))
    rows, labels = np.divmod(entries, width)
    scores = np.empty((len(members), len(entries)))
    for own, member, real, key in zip(scores, members, kept, keys, strict=True):
        lowest = np.min(member.scores, axis=1, initial=np.inf, where=real)
        lowest[~real.any(axis=1)] = np.nan  # has no label for the document: does not count
        own[:] = lowest[rows]
        own[np.searchsorted(entries, key)] = member.scores[real]
    indptr = np.searchsorted(rows, np.arange(n + 1))
    return sparse.csr_matrix((np.nanmean(scores, axis=0), labels, indptr), shape=(n, width))


class Ensemble(Variant):
    """The mean of ``members`` models of the base, the seeds of which follow one another."""

    name = "ensemble"

    def __init__(self, members: int = 3) -> None:
        if members < 1:
            raise ValueError(f"an ensemble needs at least one member, not {members}")
        self.members = members

    def seeds(self, seed: int) -> range:
        """The seeds of the members; ensembles of different seeds share none."""
        return range(seed * self.members, (seed + 1) * self.members)

    def misfit(self, base: Method) -> str | None:
        """It needs models of the documents; controls have nothing to average."""
        if base.needs:
            return None
        return f"{base.name} looks at no document, so a mean over seeds says nothing"

    def apply(self, base: Method) -> Method:
        """The method that fits all members."""
        return Ensembled(base, self)


class Ensembled(Changed[Ensemble]):
    """A base that is fitted once for each member."""

    @price_only
    def fits_of_base(self) -> float:
        """One for each member."""
        return self._change.members

    def fit_in(self, train: Split, context: FitContext) -> EnsembleModel:
        models = []
        for seed in self._change.seeds(context.seed):
            folder = context.checkpoint and context.checkpoint / f"member{seed}"
            if folder is not None:
                folder.mkdir(exist_ok=True)
            models.append(self._base.fit_in(train, replace(context, seed=seed, checkpoint=folder)))
        return EnsembleModel(models)


class EnsembleModel(Model):
    """The fitted members."""

    def __init__(self, members: Sequence[Model]) -> None:
        self.members = list(members)
        self.notes = tuple(dict.fromkeys(note for member in members for note in member.notes))

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest mean score; each member gives its own k best."""
        return average([member.predict(inputs, k) for member in self.members], k)

    def label_norms(self) -> np.ndarray | None:
        """The mean of the members' norms, float32[L]; None where they have none."""
        norms = [member.label_norms() for member in self.members]
        found = [norm for norm in norms if norm is not None]
        return mean_norms(found) if len(found) == len(norms) else None

    def save(self, folder: Path) -> None:
        """Write each member into a folder of its own."""
        (folder / "ensemble.json").write_text(json.dumps(len(self.members)))
        for number, member in enumerate(self.members):
            save_nested(member, folder / str(number))

    @classmethod
    def load(cls, folder: Path) -> EnsembleModel:
        """The ensemble that :meth:`save` wrote into the folder."""
        n = json.loads((folder / "ensemble.json").read_text())
        return cls([load_nested(folder / str(number)) for number in range(n)])


def mean_norms(norms: Sequence[np.ndarray]) -> np.ndarray:
    """The mean over members, float32[L]; NaN where a member has NaN."""
    return np.asarray(np.mean(np.stack(norms), axis=0, dtype=np.float64), np.float32)
