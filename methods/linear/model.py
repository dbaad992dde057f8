"""One sparse linear classifier per label: the model of DiSMEC and its variants."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.common.atomic import write_json
from benchmarks.data.split import Inputs
from benchmarks.evaluation.topk import TopK
from methods._kernels.rows import scaled_to_unit
from methods.interface import Model
from methods.linear.topk import Strip, is_small, make_strips, top_labels


def as_unit_rows(bow: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows scaled to Euclidean length 1; a row without words stays empty.

    Only the values are new: positions are those of ``bow``, which may be mapped from a file.
    """
    data = scaled_to_unit(bow.indptr, bow.data.astype(np.float32, copy=False))
    return sparse.csr_matrix((data, bow.indices, bow.indptr), shape=bow.shape, copy=False)


class SparseLinearModel(Model):
    """Weights L x (D + 1), the bias last. A label that was not trained is never predicted:
    its score would be 0, above that of most labels with a classifier."""

    decision_threshold = 0.0

    def __init__(
        self,
        weights: sparse.csr_matrix,
        trained: np.ndarray,
        *,
        unit_rows: bool = True,
        notes: Sequence[str] = (),
        threads: int | None = None,
    ) -> None:
        if weights.shape[0] != len(trained):
            raise ValueError(f"{weights.shape[0]} rows of weights for {len(trained)} labels")
        self.weights = weights
        self.trained = np.asarray(trained, dtype=bool)
        self.unit_rows = unit_rows
        self.notes = list(notes)
        """What a reader of the results should know of this fit."""
        self.threads = threads or len(os.sched_getaffinity(0))
        """How many threads predict; changes nothing but the time."""
        self._strips: list[Strip] | None = None

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest margins, ties to the lower label."""
        if inputs.bow is None:
            raise ValueError("a linear model predicts from a bag of words; the inputs have none")
        X = as_unit_rows(inputs.bow) if self.unit_rows else inputs.bow
        if X.shape[1] + 1 != self.weights.shape[1]:
            raise ValueError(
                f"the model has {self.weights.shape[1] - 1} features, "
                f"the documents have {X.shape[1]}"
            )
        if is_small(self.weights):
            if self._strips is None:
                self._strips = list(make_strips(self.weights, self.trained))
            return top_labels(X, self._strips, k, self.threads)
        return top_labels(X, make_strips(self.weights, self.trained), k, self.threads)

    def label_norms(self) -> np.ndarray:
        """Euclidean norms, the bias left out; NaN for a label without a classifier."""
        words = self.weights[:, :-1].astype(np.float64)
        norms = np.sqrt(np.asarray(words.multiply(words).sum(axis=1)).ravel())
        return np.where(self.trained, norms, np.nan).astype(np.float32)

    def label_weights(self) -> sparse.csr_matrix:
        """The classifiers, L x (D + 1), the bias last."""
        return self.weights

    def save(self, folder: Path) -> None:
        """Write the arrays and ``model.json``."""
        for part in ("indptr", "indices", "data"):
            np.save(folder / f"{part}.npy", getattr(self.weights, part))
        np.save(folder / "trained.npy", self.trained)
        facts = {
            "shape": list(self.weights.shape),
            "unit_rows": self.unit_rows,
            "notes": self.notes,
        }
        write_json(folder / "model.json", facts)

    @classmethod
    def load(cls, folder: Path) -> SparseLinearModel:
        """The model that :meth:`save` wrote into the folder."""
        facts = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        arrays = [np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr")]
        return cls(
            sparse.csr_matrix(tuple(arrays), shape=tuple(facts["shape"])),
            np.load(folder / "trained.npy"),
            unit_rows=facts["unit_rows"],
            notes=facts["notes"],
        )

    @classmethod
    def merge(cls, models: Sequence[SparseLinearModel]) -> SparseLinearModel:
        """Join models of different labels (the shards of one fit)."""
        first = models[0]
        if any(m.weights.shape != first.weights.shape for m in models):
            raise ValueError(f"shards of different shapes: {[m.weights.shape for m in models]}")
        if any(m.unit_rows != first.unit_rows for m in models):
            raise ValueError("shards disagree on whether rows are scaled to length 1")
        times = np.sum([m.trained for m in models], axis=0)
        if (times > 1).any():
            raise ValueError(f"label {int(np.argmax(times))} is in {int(times.max())} shards")
        weights = models[0].weights
        for model in models[1:]:
            weights = weights + model.weights
        weights = sparse.csr_matrix(weights)
        weights.sort_indices()
        notes = list(dict.fromkeys(note for m in models for note in m.notes))
        return cls(weights, times > 0, unit_rows=first.unit_rows, notes=notes)
