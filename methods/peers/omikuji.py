"""omikuji (Rust): Parabel-style forests. It takes no label weights or seed, reports no norms."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.split import Inputs, Split
from benchmarks.data.xc import write_xc
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, price_only, trained_label_count
from methods.interface import FitContext, Method, Model
from methods.trees.cost import halved, label_tree_cost

SEEDLESS = "omikuji draws its own random numbers: a seed has no effect, runs differ"
MAX_LEAF = 100  # labels of a leaf by omikuji's default


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
        """The model that :meth:`save` wrote into the folder."""
        import omikuji

        beam = int((folder / "beam.txt").read_text(encoding="ascii"))
        return cls(omikuji.Model.load(str(folder / "omikuji")), beam, [SEEDLESS])


class Omikuji(Method):
    """omikuji's defaults: three trees, squared hinge, weights below 0.1 dropped."""

    name = "omikuji"
    package = "omikuji"
    extra = "peers"
    seedable = False

    def __init__(
        self,
        n_trees: int = 3,
        collapse_every_n_layers: int = 0,
        beam: int = 10,
        cluster_balanced: bool = True,
        cluster_k: int = 2,
        max_depth: int = 20,
    ) -> None:
        self.n_trees = n_trees
        self.collapse_every_n_layers = collapse_every_n_layers
        """0 grows Parabel's deep trees, 5 Bonsai's shallow ones."""
        self.beam = beam
        self.cluster_balanced = cluster_balanced
        self.cluster_k = cluster_k
        self.max_depth = max_depth

    def fit_in(self, train: Split, context: FitContext) -> OmikujiModel:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "train.txt")
            dropped = write_documents(path, train)
            model = self.fit_file(path, context.threads)
        if dropped:
            left_out = f"{dropped} training documents without a feature left out"
            model.notes = [*model.notes, f"{left_out}: omikuji refuses them"]
        return model

    def fit_file(self, path: Path, threads: int) -> OmikujiModel:
        """Fit on a file in XC format, the only way in that omikuji offers."""
        import omikuji

        options = omikuji.Model.default_hyper_param()
        for name, value in vars(self).items():
            if name != "beam":
                setattr(options, name, value)
        model = omikuji.Model.train_on_data(str(path), options, threads)
        model.init_prediction_thread_pool(threads)
        return OmikujiModel(model, self.beam, [SEEDLESS])

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """As Parabel's trees."""
        levels = halved(trained_label_count(meta), MAX_LEAF)
        return label_tree_cost(meta, levels, self.n_trees, self.beam)


def write_documents(path: Path, train: Split) -> int:
    """Write an XC file without the documents that have no feature; returns how many these are."""
    bow = train.inputs.bow
    assert bow is not None
    kept = np.flatnonzero(np.diff(bow.indptr))
    write_xc(path, bow[kept], train.labels[kept])
    return len(train) - len(kept)
