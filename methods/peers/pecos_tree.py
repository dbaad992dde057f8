"""PECOS (C++) label trees, in the environment of :mod:`methods.peers.pecos`.

The trees are balanced, as Parabel's: with ``splits`` 2 they are binary, with 16 (PECOS' own
default) as shallow as Bonsai's. Labels without a training document are left out, as by ours.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.cost import Cost, price_only, trained_label_count
from methods.interface import FitContext, Model
from methods.linear.model import as_unit_rows
from methods.peers.pecos import PecosMethod, run_inside
from methods.trees.cost import halved, label_tree_cost

# These run inside the environment, so they import nothing of this project.
TRAIN = """
import json, sys, time
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
folder, asked = sys.argv[1], json.loads(sys.argv[2])
X, Y = sp.load_npz(folder + "/X.npz"), sp.load_npz(folder + "/Y.npz").tocsc()
threads, splits = asked["threads"], asked["splits"]
start = time.perf_counter()
features = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=threads)
models = []
for seed in asked["seeds"]:
    chain = Indexer.gen(features, nr_splits=splits, max_leaf_size=asked["max_leaf"], seed=seed,
                        spherical=True, threads=threads)
    models.append(XLinearModel.train(
        X, Y, C=chain, nr_splits=splits, min_codes=splits, Cp=asked["C"], Cn=asked["C"], bias=1.0,
        threshold=asked["prune"], solver_type="L2R_L2LOSS_SVC_DUAL",
        negative_sampling_scheme="tfn", threads=threads))
print(time.perf_counter() - start)
for number, model in enumerate(models):
    model.save(f"{folder}/tree{number}")
"""
PREDICT = """
import json, sys, time
import scipy.sparse as sp
from pecos.xmc.xlinear.model import XLinearModel
folder, asked = sys.argv[1], json.loads(sys.argv[2])
X = sp.load_npz(folder + "/X.npz")
models = [XLinearModel.load(path, is_predict_only=True) for path in asked["trees"]]
start = time.perf_counter()
scores = [m.predict(X, beam_size=asked["beam"], only_topk=asked["k"], post_processor="l2-hinge",
                    threads=asked["threads"]) for m in models]
print(time.perf_counter() - start)
total = scores[0]
for more in scores[1:]:
    total = total + more
sp.save_npz(folder + "/scores.npz", sp.csr_matrix(total / len(scores)))
"""


class PecosTreeModel(Model):
    """Trained trees in a folder."""

    def __init__(
        self,
        folder: Path,
        labels: np.ndarray,
        beam: int,
        threads: int,
        kept: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.folder, self.labels, self.beam, self.threads = folder, labels, beam, threads
        self._kept = kept  # a folder that is removed with the model
        self.seconds: dict[str, float] = {}
        """What training and the last prediction alone took, as PECOS' own process timed them."""

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The mean of the trees' scores, of the 2 k best labels of each."""
        assert inputs.bow is not None
        asked = {
            "trees": sorted(str(path.resolve()) for path in self.folder.glob("tree*")),
            "beam": self.beam,
            "k": max(2 * k, 20),
            "threads": self.threads,
        }
        with tempfile.TemporaryDirectory() as folder:
            sparse.save_npz(Path(folder, "X.npz"), as_unit_rows(inputs.bow))
            self.seconds["predict"] = run_inside(PREDICT, folder, json.dumps(asked))
            scores = sparse.csr_matrix(sparse.load_npz(Path(folder, "scores.npz")))
        top = TopK.from_sparse(scores, k)
        named = np.append(self.labels, -1)  # the last for places that no label takes
        return TopK(named[top.indices].astype(np.int32), top.scores)

    def save(self, folder: Path) -> None:
        """Copy the trees, and write which labels they have."""
        for tree in self.folder.glob("tree*"):
            shutil.copytree(tree, folder / tree.name)
        np.save(folder / "labels.npy", self.labels)
        settings = {"beam": self.beam, "threads": self.threads}
        (folder / "search.json").write_text(json.dumps(settings))

    @classmethod
    def load(cls, folder: Path) -> PecosTreeModel:
        """The model that :meth:`save` wrote into the folder."""
        settings = json.loads((folder / "search.json").read_text())
        return cls(folder, np.load(folder / "labels.npy"), **settings)


class PecosTree(PecosMethod):
    """Balanced label trees with the squared hinge, searched by beam, on unit rows."""

    name = "PECOS-tree"

    def __init__(
        self,
        n_trees: int = 3,
        splits: int = 2,
        max_leaf: int = 100,
        C: float = 1.0,
        prune: float = 0.1,
        beam: int = 10,
    ) -> None:
        self.n_trees = n_trees
        self.splits = splits
        self.max_leaf = max_leaf
        self.C = C
        self.prune = prune
        self.beam = beam

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """As Parabel's trees."""
        levels = halved(trained_label_count(meta), self.max_leaf)
        return label_tree_cost(meta, levels, self.n_trees, self.beam)

    def fit_in(self, train: Split, context: FitContext) -> PecosTreeModel:
        assert train.inputs.bow is not None
        labels = np.flatnonzero(train.label_counts() > 0)
        kept = tempfile.TemporaryDirectory(prefix="pecos-tree-")
        folder = Path(kept.name)
        asked = {
            "splits": self.splits,
            "max_leaf": self.max_leaf,
            "C": self.C,
            "prune": self.prune,
            "threads": context.threads,
            "seeds": [context.seed % 2**20 * self.n_trees + t for t in range(self.n_trees)],
        }
        sparse.save_npz(folder / "X.npz", as_unit_rows(train.inputs.bow))
        sparse.save_npz(folder / "Y.npz", sparse.csr_matrix(train.labels[:, labels], dtype="f4"))
        seconds = run_inside(TRAIN, kept.name, json.dumps(asked))
        model = PecosTreeModel(folder, labels, self.beam, context.threads, kept)
        model.seconds["fit"] = seconds
        return model
