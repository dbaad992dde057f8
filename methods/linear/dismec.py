"""DiSMEC: one squared-hinge classifier per label, small weights dropped (PW eq. 22).

As the authors' program (``-s 2 -B 1 -c 1``): unit rows, a regularised bias feature of value 1,
weights below 0.01 in size set to 0 (the bias among them), classifiers only for labels with a
training document. Given label weights it is PW-DiSMEC (PW eqs. 15, 21).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common.atomic import atomic_path
from benchmarks.data.split import Split
from methods.cost import Cost, price_only
from methods.hooks.loss_weights import LabelWeights
from methods.interface import FitContext, Method
from methods.linear.cost import one_vs_rest_cost
from methods.linear.model import SparseLinearModel, as_unit_rows
from methods.linear.newton import REPORT
from methods.linear.solver import OneVsRest, Solution, join_solutions
from methods.warm_up import fit_tiny

LABELS_AT_ONCE = 1024  # trained between two writes of a checkpoint


class DiSMEC(Method):
    """One-vs-rest with the squared hinge, solved to a certified relative gap ``tol``."""

    name = "DiSMEC"
    accepts = frozenset({"loss_weights"})
    shardable = True

    def __init__(
        self,
        tol: float = 1e-3,
        prune: float = 0.01,
        C: float = 1.0,
        normalize: bool = True,
        memory_mb: float = 1024.0,
    ) -> None:
        self.tol = tol
        self.prune = prune
        self.C = C
        self.normalize = normalize
        self.memory_mb = memory_mb

    def warm_up(self, train: Split) -> None:
        """Compile by a fit on a few documents."""
        fit_tiny(self, train)

    def fit_in(self, train: Split, context: FitContext) -> SparseLinearModel:
        bow = train.inputs.bow
        assert bow is not None
        X = as_unit_rows(bow) if self.normalize else bow
        weights = context.hooks.find(LabelWeights)
        trained = train.label_counts() > 0
        labels = np.flatnonzero(trained)
        if context.shard is not None:
            part, of = context.shard
            if not 0 <= part < of:
                raise ValueError(f"shard {part} of {of} does not exist")
            labels = labels[part::of]
        problem = OneVsRest(
            X,
            train.labels,
            cost=self.C,
            positive_weight=None if weights is None else weights.positive,
            negative_weight=None if weights is None else weights.negative,
            tol=self.tol,
            prune=self.prune,
            threads=context.threads,
            memory_mb=self.memory_mb,
        )
        key = self._digest(train, weights) if context.checkpoint is not None else ""
        pieces: list[Solution] = []
        # Every n-th label, so that each piece has its share of frequent, slow ones.
        n_pieces = -(-len(labels) // LABELS_AT_ONCE)
        done = 0
        for number in range(n_pieces):
            mine = labels[number::n_pieces]
            path = None
            if context.checkpoint is not None:
                name = hashlib.sha256(mine.tobytes()).hexdigest()[:16]
                path = Path(context.checkpoint) / f"labels-{key}-{name}.npz"
            pieces.append(_resume(problem, mine, path))
            done += len(mine)
            context.progress(done, len(labels), "labels")
        mine_only = np.zeros(train.n_labels, dtype=bool)
        mine_only[labels] = True
        notes = _notes(pieces, self.tol)
        joined = join_solutions(pieces, labels, X.shape[1] + 1).weights
        counts = np.zeros(train.n_labels, np.int64)
        counts[labels] = np.diff(joined.indptr)
        return SparseLinearModel(
            sparse.csr_matrix(
                (joined.data, joined.indices, np.concatenate([[0], np.cumsum(counts)])),
                shape=(train.n_labels, X.shape[1] + 1),
            ),
            mine_only,
            unit_rows=self.normalize,
            notes=notes,
            threads=context.threads,
        )

    def _digest(self, train: Split, weights: LabelWeights | None) -> str:
        """A name of the problem, so that a checkpoint of another one is never taken for it."""
        settings = (self.tol, self.prune, self.C, self.normalize, REPORT)
        digest = hashlib.sha256(repr(settings).encode())
        bow = train.inputs.bow
        assert bow is not None
        arrays = [bow.indptr, bow.indices, bow.data, train.labels.indptr, train.labels.indices]
        if weights is not None:
            arrays += [weights.positive, weights.negative]
        for array in arrays:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """Linear in labels and in labels times non-zeros."""
        return one_vs_rest_cost(meta, self.memory_mb)


def _resume(problem: OneVsRest, labels: np.ndarray, path: Path | None) -> Solution:
    """Train the labels, or read them where an earlier, interrupted fit has left them."""
    if path is not None and path.exists():
        with np.load(path) as kept:
            shape = (len(labels), int(kept["width"]))
            matrix = sparse.csr_matrix((kept["data"], kept["indices"], kept["indptr"]), shape=shape)
            return Solution(labels, matrix, kept["report"])
    solution = problem.solve(labels)
    if path is not None:
        matrix = solution.weights
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                indptr=matrix.indptr,
                indices=matrix.indices,
                data=matrix.data,
                width=matrix.shape[1],
                report=solution.report,
            )
    return solution


def _notes(pieces: list[Solution], tol: float) -> list[str]:
    """A note where labels were not solved to the tolerance, else nothing."""
    worst = max((float(piece.gap.max(initial=0.0)) for piece in pieces), default=0.0)
    missed = sum(int((piece.gap > tol).sum()) for piece in pieces)
    if not missed:
        return []
    return [f"{missed} labels stopped short of tol {tol:g}; largest gap bound {worst:.2g}"]
