"""napkinXC (C++): binary relevance by liblinear. It takes no label weights, reports no norms."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, price_only
from methods.interface import FitContext, Method, Model
from methods.linear.cost import one_vs_rest_cost

SEEDLESS = "napkinXC's result moves with the number of threads, whatever the seed"

# A round figure of `python -m benchmarks.speed linear`.
SLOWER_THAN_OURS = 3.0


class NapkinXCModel(Model):
    """A trained model; napkinXC keeps it in a folder."""

    def __init__(
        self, model: Any, path: Path, temporary: tempfile.TemporaryDirectory[str] | None = None
    ) -> None:
        self._model = model
        self._path = path
        self._temporary = temporary  # removed together with this object
        self.notes = [SEEDLESS]

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k largest scores of each document, ties to the lower label."""
        if inputs.bow is None:
            raise ValueError("napkinXC predicts from a bag of words; the inputs have none")
        found = self._model.predict_proba(inputs.bow.astype(np.float32), top_k=k)
        top = TopK.empty(len(found), k)
        for i, pairs in enumerate(found):
            for rank, (label, score) in enumerate(sorted(pairs, key=lambda p: (-p[1], p[0]))):
                top.indices[i, rank] = label
                top.scores[i, rank] = score
        return top

    def save(self, folder: Path) -> None:
        """napkinXC's own files."""
        shutil.copytree(self._path, folder / "napkinxc")

    @classmethod
    def load(cls, folder: Path) -> NapkinXCModel:
        """The model that :meth:`save` wrote into the folder."""
        from napkinxc.models import BR

        model = BR(str(folder / "napkinxc"))
        model.load()
        return cls(model, folder / "napkinxc")


class NapkinXC(Method):
    """One liblinear classifier per label (dual squared hinge), as DiSMEC's problem."""

    name = "napkinXC-BR"
    package = "napkinxc"
    extra = "peers"
    seedable = False

    def __init__(self, C: float = 1.0, eps: float = 0.1, prune: float = 0.01) -> None:
        self.C = C
        self.eps = eps
        self.prune = prune

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """As one-vs-rest by our solver, slower by a round factor."""
        return one_vs_rest_cost(meta, 500.0, slower=SLOWER_THAN_OURS)

    def fit_in(self, train: Split, context: FitContext) -> NapkinXCModel:
        from napkinxc.models import BR

        assert train.inputs.bow is not None
        Y = train.labels
        labels = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(Y.shape[0])]
        folder = tempfile.TemporaryDirectory(prefix="napkinxc")
        model = BR(
            folder.name,
            loss="squaredHinge",
            liblinear_solver="L2R_L2LOSS_SVC_DUAL",
            liblinear_c=self.C,
            liblinear_eps=self.eps,
            weights_threshold=self.prune,
            threads=context.threads,
            seed=context.seed,
        )
        model.fit(train.inputs.bow.astype(np.float32), labels)
        return NapkinXCModel(model, Path(folder.name), folder)
