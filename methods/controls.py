"""Controls: methods that bound every metric and expose a broken evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.interface import FitContext, Method, Model


class ConstantModel(Model):
    """The same ranking for every document."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = np.asarray(scores, dtype=np.float32)

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest score."""
        row = TopK.from_dense(self.scores[None, :], k)
        repeat = (len(inputs), 1)
        return TopK(np.tile(row.indices, repeat), np.tile(row.scores, repeat))

    def save(self, folder: Path) -> None:
        """Write the scores."""
        np.save(folder / "scores.npy", self.scores)

    @classmethod
    def load(cls, folder: Path) -> ConstantModel:
        """The model that :meth:`save` wrote into the folder."""
        return cls(np.load(folder / "scores.npy"))


class Popularity(Method):
    """The most frequent training labels, for every document."""

    name = "popularity"
    needs = frozenset()

    def fit_in(self, train: Split, context: FitContext) -> ConstantModel:
        return ConstantModel(train.label_counts())


class RandomModel(Model):
    """Labels drawn at random, the same at every call."""

    def __init__(self, n_labels: int, seed: int) -> None:
        self.n_labels = n_labels
        self.seed = seed

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """k different labels per document, drawn uniformly."""
        rng = np.random.default_rng(self.seed)
        top = TopK.empty(len(inputs), k)
        kept = min(k, self.n_labels)
        # Row by row: an n x L array of random numbers would not fit for large L.
        for row in range(len(inputs)):
            top.indices[row, :kept] = rng.choice(self.n_labels, size=kept, replace=False)
        top.scores[:, :kept] = np.linspace(1.0, 0.0, kept, endpoint=False, dtype=np.float32)
        return top

    def save(self, folder: Path) -> None:
        """Write the two numbers that make the model."""
        np.save(folder / "random.npy", np.array([self.n_labels, self.seed]))

    @classmethod
    def load(cls, folder: Path) -> RandomModel:
        """The model that :meth:`save` wrote into the folder."""
        n_labels, seed = np.load(folder / "random.npy").tolist()
        return cls(n_labels, seed)


class Random(Method):
    """Labels drawn uniformly at random."""

    name = "random"
    needs = frozenset()

    def fit_in(self, train: Split, context: FitContext) -> RandomModel:
        return RandomModel(train.n_labels, context.seed)


class OracleModel(Model):
    """The true labels, rarest first: the order in which every metric reaches its bound."""

    def __init__(self, solution: sparse.csr_matrix, value: np.ndarray) -> None:
        self.solution = solution
        self.value = value

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The true labels of the documents it was given the solution of."""
        if len(inputs) != self.solution.shape[0]:
            raise ValueError(
                f"the oracle knows {self.solution.shape[0]} documents, not these {len(inputs)}"
            )
        scores = self.solution.astype(np.float32)
        scores.data = self.value[scores.indices].astype(np.float32)
        return TopK.from_sparse(scores, k)

    def save(self, folder: Path) -> None:
        """Write the solution and the labels' values."""
        sparse.save_npz(folder / "solution.npz", self.solution)
        np.save(folder / "value.npy", self.value)

    @classmethod
    def load(cls, folder: Path) -> OracleModel:
        """The model that :meth:`save` wrote into the folder."""
        solution = sparse.csr_matrix(sparse.load_npz(folder / "solution.npz"))
        return cls(solution, np.load(folder / "value.npy"))


class Oracle(Method):
    """Predicts the test labels, which it is given by :meth:`given` and in no other way."""

    name = "oracle"
    needs = frozenset()

    def __init__(self) -> None:
        self._solution: sparse.csr_matrix | None = None

    def given(self, solution: sparse.csr_matrix) -> Oracle:
        """This oracle, knowing the labels of the documents it will be asked about."""
        told = Oracle()
        told._solution = solution
        return told

    def fit_in(self, train: Split, context: FitContext) -> OracleModel:
        if self._solution is None:
            raise ValueError('the oracle needs the solution: get("oracle").given(test.labels)')
        return OracleModel(self._solution, train.inverse_propensity())
