"""A method and a variant outside the tree of tailtables: see README.md beside this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from benchmarks.data.split import Inputs, Split
from methods import Method, Model, TopK, Variant
from methods.interface import FitContext
from methods.variants.applied import Changed


class NearestCentroid(Method):
    """Ranks labels by a document's mean cosine to the label's training documents."""

    name = "NearestCentroid"

    def __init__(self, shrink: float = 0.0) -> None:
        # Every hyper-parameter is a keyword with a default, stored under its own name.
        self.shrink = shrink  # added to a label's count: the larger, the lower rare labels score

    def fit_in(self, train: Split, context: FitContext) -> CentroidModel:
        sums = train.labels.T @ normalize(train.inputs.bow)
        counts = np.maximum(train.label_counts() + self.shrink, 1)
        return CentroidModel(sparse.csr_matrix(sums.multiply(1.0 / counts[:, None])))


class CentroidModel(Model):
    """One centroid per label, CSR[L, D]."""

    def __init__(self, centroids: sparse.csr_matrix) -> None:
        self.centroids = centroids

    def predict(self, inputs: Inputs, k: int) -> TopK:
        scores = normalize(inputs.bow) @ self.centroids.T
        return TopK.from_dense(scores.toarray().astype(np.float32), k)

    def save(self, folder: Path) -> None:
        sparse.save_npz(folder / "centroids.npz", self.centroids)

    @classmethod
    def load(cls, folder: Path) -> CentroidModel:
        return cls(sparse.load_npz(folder / "centroids.npz"))


class TailRepeated(Variant):
    """Documents that carry a rare label are in the training data several times."""

    # It sets no hook: it changes the training data, which every base has, so it fits them all.
    name = "TailRepeated"

    def __init__(self, rare: int = 10, times: int = 2) -> None:
        self.rare = rare  # labels of at most this many training documents are rare
        self.times = times

    def apply(self, base: Method) -> Method:
        return OnRepeatedTail(base, self)


class OnRepeatedTail(Changed[TailRepeated]):
    """A base fitted on training data whose rare labels are repeated."""

    def fit_in(self, train: Split, context: FitContext) -> Model:
        is_rare = train.label_counts() <= self._change.rare
        rare_rows = np.flatnonzero(train.labels @ is_rare)
        copies = np.tile(rare_rows, self._change.times - 1)
        rows = np.concatenate([np.arange(len(train)), copies])
        return self._base.fit_in(train.take(rows), context)
