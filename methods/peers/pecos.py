"""PECOS (C++) one-vs-rest, in an environment of its own since it needs numpy below 2.

``python -m methods.peers.pecos FOLDER`` makes the environment; fitting makes it where it is
missing. Label weights are not taken: PECOS has one Cp and Cn for all labels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Split
from methods.cost import Cost, price_only
from methods.interface import FitContext, Method, Resources
from methods.linear.cost import one_vs_rest_cost
from methods.linear.model import SparseLinearModel, as_unit_rows

PACKAGE = "libpecos==1.2.8"
REQUIREMENTS = ("numpy<2", "scipy<1.14", "scikit-learn<1.6", "joblib<1.5")
"""What linear models need; PECOS names PyTorch and transformers, too, for its text models."""
ENVIRONMENT = "TAILTABLES_PECOS"  # names the folder of the environment

# Runs inside that environment, so it imports nothing of this project.
TRAIN = """
import sys, time
import scipy.sparse as sp
from pecos.xmc.base import MLModel, MLProblem
folder, C, eps, prune, threads = sys.argv[1], *map(float, sys.argv[2:6])
X, Y = sp.load_npz(folder + "/X.npz"), sp.load_npz(folder + "/Y.npz").tocsc()
start = time.perf_counter()
model = MLModel.train(
    MLProblem(X, Y, threads=int(threads)), threshold=prune, Cp=C, Cn=C, eps=eps, bias=1.0,
    solver_type="L2R_L2LOSS_SVC_DUAL", threads=int(threads),
)
print(time.perf_counter() - start)
sp.save_npz(folder + "/W.npz", sp.csc_matrix(model.W))
"""


def environment_folder() -> Path:
    """Where the environment is or is to be."""
    default = Path.home() / ".cache" / "tailtables" / "pecos"
    return Path(os.environ.get(ENVIRONMENT, default))


def make_environment(folder: Path) -> Path:
    """Make the environment unless it is there; the path of its interpreter."""
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        for wanted in (REQUIREMENTS, ("--no-deps", PACKAGE)):
            install = [str(python), "-m", "pip", "install", "--quiet", *wanted]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(
                    f"cannot install {', '.join((*REQUIREMENTS, PACKAGE))} into {folder}; install "
                    f"them there, or name an environment that has them in {ENVIRONMENT}:\n"
                    f"{done.stderr[-2000:]}"
                )
        ready.touch()
    return python


def run_inside(script: str, *arguments: str) -> float:
    """Run a script in the environment; the number that it printed last, its seconds."""
    python = make_environment(environment_folder())
    command = [str(python), "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"PECOS failed: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def train_weights(
    X: sparse.csr_matrix, Y: sparse.csr_matrix, C: float, eps: float, prune: float, threads: int
) -> tuple[sparse.csr_matrix, float]:
    """Weights L x (D + 1), the bias last, and the seconds that training alone took."""
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder, "X.npz"), sparse.csr_matrix(X, dtype=np.float32))
        sparse.save_npz(Path(folder, "Y.npz"), sparse.csr_matrix(Y, dtype=np.float32))
        seconds = run_inside(TRAIN, folder, *map(str, (C, eps, prune, threads)))
        W = sparse.csr_matrix(sparse.load_npz(Path(folder, "W.npz")).T)
    W.sort_indices()
    return W, seconds


# A round figure of `python -m benchmarks.speed linear`.
SLOWER_THAN_OURS = 4.0


class PecosMethod(Method):
    """A method of PECOS, which runs where its environment is."""

    def skip(self, meta: Mapping[str, Any], resources: Resources) -> str | None:
        """Making the environment takes the network."""
        if not (environment_folder() / "ready").exists():
            return f"{self.name} needs its environment: python -m methods.peers.pecos"
        return super().skip(meta, resources)


class Pecos(PecosMethod):
    """PECOS's dual squared hinge without a tree, on unit rows."""

    name = "PECOS-OVR"

    def __init__(self, C: float = 1.0, eps: float = 0.1, prune: float = 0.01) -> None:
        self.C = C
        self.eps = eps
        self.prune = prune

    @price_only
    def cost(self, meta: Mapping[str, Any]) -> Cost | None:
        """As one-vs-rest by our solver, slower by a round factor."""
        return one_vs_rest_cost(meta, 500.0, slower=SLOWER_THAN_OURS)

    def fit_in(self, train: Split, context: FitContext) -> SparseLinearModel:
        assert train.inputs.bow is not None
        trained = train.label_counts() > 0
        labels = np.flatnonzero(trained)
        W, _ = train_weights(
            as_unit_rows(train.inputs.bow),
            train.labels[:, labels],
            self.C,
            self.eps,
            self.prune,
            context.threads,
        )
        counts = np.zeros(train.n_labels, np.int64)
        counts[labels] = np.diff(W.indptr)
        weights = sparse.csr_matrix(
            (W.data.astype(np.float32), W.indices, np.concatenate([[0], np.cumsum(counts)])),
            shape=(train.n_labels, W.shape[1]),
        )
        return SparseLinearModel(weights, trained, threads=context.threads)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else environment_folder()
    print(make_environment(target))
