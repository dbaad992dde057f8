"""GLaS and its rivals: penalties on the geometry of label embeddings (GLaS sec. 3.2).

All are sums over pairs of labels of a function of their inner product and their adjacency
u = (F(y|y') + F(y'|y)) / 2, F(y|y') being the share of the documents of y' that carry y:

    GLaS (eq. 3)        (v.v' - u)^2
    Spread-out (eq. 2)  (v.v')^2
    Laplacian (eq. 4)   |v - v'|^2 u

Gravity (Krichene et al. 2018, the paper's reference 16) is the same for pairs of a document and a
label, (phi.v)^2: the inner product of the two Gramians. As in Algorithm 2, a batch's term is over
the labels drawn in it; u comes from all of train and is never held as a dense L x L matrix.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import normalize

from benchmarks.data.split import Split
from methods.hooks import Hooks
from methods.hooks.regulariser import DocumentRegulariser, Regulariser
from methods.interface import FitContext, Method, Model, Variant
from methods.variants.applied import Changed

DRAWS = ("batch", "uniform")
SCALES = ("batch", "labels", "unbiased")


def adjacency(labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """(A Z^-1 + Z^-1 A) / 2 of GLaS eq. 3, float32 L x L, sparse.

    A counts co-occurrences and Z is its diagonal. A label without a document has an empty row,
    where eq. 3 is undefined.
    """
    Y = sparse.csr_matrix(labels, dtype=np.float32)
    together = sparse.csr_matrix(Y.T @ Y)
    counts = together.diagonal()
    inverse = sparse.diags(np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0))
    return sparse.csr_matrix(0.5 * (together @ inverse + inverse @ together), dtype=np.float32)


class LabelGeometry(Regulariser):
    """``weight`` times the scaled sum of a pair function over the labels of a batch.

    ``draw``: ``batch`` takes the label drawn for each document, or draws one of the labels it
    carries; ``uniform`` takes as many distinct labels, drawn uniformly from all, whatever the
    batch carries. ``scale``: ``batch`` divides the sum over pairs by B^2, a mean; ``labels`` by
    L^2, as eqs. 2-4 are written; ``unbiased`` weighs it, for uniformly drawn labels, so that its
    expectation is the whole of eqs. 2-4.
    """

    def __init__(
        self,
        pairs: Pairs,
        U: sparse.csr_matrix,
        *,
        weight: float,
        draw: str = "batch",
        scale: str = "batch",
        seed: int = 0,
    ) -> None:
        self.pairs = pairs
        self.U = sparse.csr_matrix(U)
        self.weight, self.draw, self.scale, self.seed = weight, draw, scale, seed
        self._rng = np.random.default_rng([seed, self.U.shape[0]])

    def of_labels(self, labels: np.ndarray) -> LabelGeometry:
        """The penalty over these labels only."""
        return type(self)(
            self.pairs,
            self.U[labels][:, labels],
            weight=self.weight,
            draw=self.draw,
            scale=self.scale,
            seed=self.seed,
        )

    def penalty(
        self,
        label_embeddings: Any,
        targets: Any,
        document_embeddings: Any | None = None,
        rng: np.random.Generator | None = None,
    ) -> Any:
        """The term of a batch; a torch scalar."""
        return self.of_draws(self.draws(targets, rng), label_embeddings, document_embeddings)

    def of_draws(
        self, drawn: np.ndarray, label_embeddings: Any, documents: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The term for labels that are drawn already, int64[B], possibly some more than once."""
        if len(drawn) == 0:
            return torch.zeros(())
        # Labels that were drawn more than once make equal pairs: counted, not computed again.
        labels, times = np.unique(drawn, return_counts=True)
        rows = label_embeddings[torch.from_numpy(labels)]
        total = self.pairs.sum(
            normalize(rows, dim=1),
            torch.from_numpy(times).to(rows),
            torch.from_numpy(self.part(labels)).to(rows),
            self.factors(len(drawn)),
            documents,
        )
        return self.weight * total

    def part(self, labels: np.ndarray) -> np.ndarray:
        """The rows and columns of U of distinct labels in ascending order, dense."""
        rows = self.U[labels]
        column = np.minimum(np.searchsorted(labels, rows.indices), len(labels) - 1)
        there = labels[column] == rows.indices
        row = np.repeat(np.arange(len(labels)), np.diff(rows.indptr))
        dense = np.zeros((len(labels), len(labels)), np.float32)
        dense[row[there], column[there]] = rows.data[there]
        return dense

    def draws(self, targets: Any, rng: np.random.Generator | None = None) -> np.ndarray:
        """The labels whose pairs a batch's term is over."""
        rng = self._rng if rng is None else rng
        if self.draw == "uniform":
            n = min(int(targets.shape[0]), self.U.shape[0])
            return rng.choice(self.U.shape[0], n, replace=False)
        if targets.ndim == 1:
            return np.asarray(targets.cpu(), dtype=np.int64)
        if targets.shape[1] != self.U.shape[0]:
            raise ValueError(
                f"targets have {targets.shape[1]} columns, the co-occurrences {self.U.shape[0]}"
            )
        rows, columns = (np.asarray(part.cpu()) for part in torch.nonzero(targets, as_tuple=True))
        sizes = np.bincount(rows, minlength=len(targets))
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])[sizes > 0]
        sizes = sizes[sizes > 0]
        return columns[first + (rng.random(len(sizes)) * sizes).astype(np.int64)]

    def factors(self, drawn: int) -> Factors:
        """What the sums over so many draws are multiplied with."""
        n = self.U.shape[0]
        if self.scale == "unbiased":
            # A pair of labels is drawn with probability B(B - 1) / (L(L - 1)), a label with B / L.
            pair = (n - 1) / (n * drawn * (drawn - 1)) if drawn > 1 else 0.0
            return Factors(pair, 1.0 / (n * drawn), 1.0 / drawn)
        size = drawn if self.scale == "batch" else n
        return Factors(1.0 / size**2, 1.0 / size**2, 1.0 / size)


class DocumentGeometry(LabelGeometry, DocumentRegulariser):
    """A :class:`LabelGeometry` of pairs of a document and a label."""


class Factors(NamedTuple):
    """Factors of a pair of draws, of a draw paired with itself, and of a single draw."""

    pair: float
    itself: float
    single: float


class Pairs(abc.ABC):
    """What is summed over pairs of labels."""

    def sum(
        self,
        V: torch.Tensor,
        times: torch.Tensor,
        U: torch.Tensor,
        factors: Factors,
        documents: torch.Tensor | None,
    ) -> torch.Tensor:
        """The sum over pairs, each as often as its labels were drawn; V has unit rows."""
        terms = self.terms(V @ V.T, U)
        # The diagonal is constant for unit rows; it is there for the value.
        once = factors.itself - factors.pair
        return factors.pair * (times @ terms @ times) + once * (times @ terms.diagonal())

    @abc.abstractmethod
    def terms(self, products: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        """The function of each pair, from the inner products and adjacencies."""


class GLaSPairs(Pairs):
    """GLaS eq. 3."""

    def terms(self, products: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return (products - U).square()


class SpreadOutPairs(Pairs):
    """GLaS eq. 2."""

    def terms(self, products: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return products.square()


class LaplacianPairs(Pairs):
    """GLaS eq. 4, where |v - v'|^2 = 2 - 2 v.v' for unit rows."""

    def terms(self, products: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        return (2.0 - 2.0 * products) * U


class GravityPairs(Pairs):
    """The squared scores of documents and labels: <Gramian of documents, Gramian of labels>."""

    def terms(self, products: torch.Tensor, U: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("gravity has no pairs of labels")

    def sum(
        self,
        V: torch.Tensor,
        times: torch.Tensor,
        U: torch.Tensor,
        factors: Factors,
        documents: torch.Tensor | None,
    ) -> torch.Tensor:
        """The mean over the batch's documents of the sum over labels."""
        if documents is None:
            raise ValueError("gravity needs a base that has document embeddings")
        squares = (normalize(documents, dim=1) @ V.T).square()
        return factors.single * (squares.mean(dim=0) @ times)


class LabelGeometryVariant(Variant):
    """A variant that adds a :class:`LabelGeometry` to a base's loss.

    ``weight`` is the paper's lambda; for ``draw`` and ``scale`` see :class:`LabelGeometry`. Each
    variant's default weight was chosen on documents held out of EURLex-4K's train, for the
    embedding model (``python -m workflow.studies.choose_embedding``): the paper prints 10, for
    AmazonCat-13K, and a weight means nothing without the scale of the loss beside it.
    """

    sets = frozenset({"regulariser"})
    pairs: type[Pairs]
    geometry: type[LabelGeometry] = LabelGeometry

    def __init__(self, weight: float = 10.0, draw: str = "batch", scale: str = "batch") -> None:
        for name, value, known in (("draw", draw, DRAWS), ("scale", scale, SCALES)):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        if scale == "unbiased" and draw != "uniform":
            raise ValueError("scale: unbiased needs draw: uniform")
        self.weight = weight
        self.draw = draw
        self.scale = scale

    def apply(self, base: Method) -> Method:
        """The base with a penalty in its loss."""
        return Regularised(base, self)

    def regulariser(self, train: Split, seed: int) -> LabelGeometry:
        """The penalty for a training split."""
        settings: Mapping[str, Any] = vars(self)
        return self.geometry(self.pairs(), adjacency(train.labels), seed=seed, **settings)


class GLaS(LabelGeometryVariant):
    """Graph Laplacian and spread-out: label embeddings reflect co-occurrence (GLaS eq. 3)."""

    name = "GLaS"
    pairs = GLaSPairs

    def __init__(self, weight: float = 100.0, draw: str = "batch", scale: str = "batch") -> None:
        super().__init__(weight, draw, scale)


class SpreadOut(LabelGeometryVariant):
    """Label embeddings orthogonal to one another (GLaS eq. 2)."""

    name = "spread-out"
    pairs = SpreadOutPairs

    def __init__(self, weight: float = 100.0, draw: str = "batch", scale: str = "batch") -> None:
        super().__init__(weight, draw, scale)


class Laplacian(LabelGeometryVariant):
    """Labels that co-occur have embeddings nearby (GLaS eq. 4)."""

    name = "Laplacian"
    pairs = LaplacianPairs


class Gravity(LabelGeometryVariant):
    """Documents and labels orthogonal to one another (Krichene et al. 2018)."""

    name = "gravity"
    sets = frozenset({"document_regulariser"})
    pairs = GravityPairs
    geometry = DocumentGeometry

    def __init__(self, weight: float = 1.0, draw: str = "batch", scale: str = "batch") -> None:
        super().__init__(weight, draw, scale)


class Regularised(Changed[LabelGeometryVariant]):
    """A base whose loss has the penalty of a :class:`LabelGeometryVariant`."""

    def fit_in(self, train: Split, context: FitContext) -> Model:
        hooks = Hooks(*context.hooks.values(), self._change.regulariser(train, context.seed))
        return self._base.fit_in(train, replace(context, hooks=hooks))
