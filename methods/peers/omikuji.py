"""omikuji (Rust): Parabel-style forests. Takes no label weights and no seed, tells no norms."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.interface import FitContext, Method, Model

SEEDLESS = "omikuji draws its own random numbers: a seed has no effect, runs differ"


def write_xc(path: Path, X: sparse.csr_matrix, Y: sparse.csr_matrix) -> int:
    """Write an XC file without the rows omikuji refuses, those with no feature; how many left."""
    kept = np.flatnonzero(np.diff(X.indptr))
    with path.open("w", encoding="ascii") as file:
        file.write(f"{len(kept)} {X.shape[1]} {Y.shape[1]}\n")
        for i in kept:
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True)
            file.write(labels + "".join(f" {j}:{v:.9g}" for j, v in pairs) + "\n")
    return int(X.shape[0] - len(kept))


class OmikujiModel(Model):
    """A trained forest."""

    def __init__(self, model: Any, beam: int, notes: list[str]) -> None:
        self._model = model
        self.beam = beam
        self.notes = notes

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """Beam search for each document; its order among equal scores is kept to ours."""
        X = inputs.bow
        if X is None:
            raise ValueError("omikuji predicts from a bag of words; the inputs have none")
        top = TopK.empty(X.shape[0], k)
        for i in range(X.shape[0]):
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = list(zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True))
            found = self._model.predict(pairs, beam_size=self.beam, top_k=k)
            found = sorted(found, key=lambda pair: (-pair[1], pair[0]))
            for rank, (label, score) in enumerate(found):
                top.indices[i, rank] = label
                top.scores[i, rank] = score
        return top

    def save(self, folder: Path) -> None:
        """omikuji's own format."""
        self._model.save(str(folder / "omikuji"))
        (folder / "beam.txt").write_text(f"{self.beam}\n", encoding="ascii")

    @classmethod
    def load(cls, folder: Path) -> OmikujiModel:
        """Read it back."""
        import omikuji

        beam = int((folder / "beam.txt").read_text(encoding="ascii"))
        return cls(omikuji.Model.load(str(folder / "omikuji")), beam, [SEEDLESS])


class Omikuji(Method):
    """omikuji's defaults: three trees, squared hinge, weights below 0.1 dropped."""

    name = "omikuji"
    package = "omikuji"
    seedable = False

    def __init__(self, n_trees: int = 3, collapse_every_n_layers: int = 0, beam: int = 10) -> None:
        self.n_trees = n_trees
        self.collapse_every_n_layers = collapse_every_n_layers
        """0 grows Parabel's deep trees, 5 Bonsai's shallow ones."""
        self.beam = beam

    def fit_in(self, train: Split, context: FitContext) -> OmikujiModel:
        import omikuji

        assert train.inputs.bow is not None
        options = omikuji.Model.default_hyper_param()
        options.n_trees = self.n_trees
        options.collapse_every_n_layers = self.collapse_every_n_layers
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "train.txt")
            dropped = write_xc(path, train.inputs.bow, train.labels)
            model = omikuji.Model.train_on_data(str(path), options, context.threads)
        model.init_prediction_thread_pool(context.threads)
        notes = [SEEDLESS]
        if dropped:
            notes.append(
                f"{dropped} training documents without a feature left out: omikuji refuses them"
            )
        return OmikujiModel(model, self.beam, notes)
