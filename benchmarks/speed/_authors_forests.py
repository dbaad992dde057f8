"""The C++ programs of FastXML's and PfastreXML's authors, where a user has built them.

They read and write text: a matrix is a line ``rows columns`` and a line ``column:value ...`` for
each row. Seconds are those that they print, without reading and writing files. They add up what
each thread took; here that is divided by the threads, which for the parts that only one thread does
(PfastreXML's label means and re-ranking) is in their favour.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data.split import Split
from benchmarks.evaluation.topk import TopK
from methods.trees.fastxml import FastXML, PfastreXML

AUTHORS = "authors' C++"
_PROGRAMS = {FastXML.name: "fastXML", PfastreXML.name: PfastreXML.name}
"""How the names of their programs begin; each comes in a folder that is called as the method."""
_TRAINED = re.compile(r"training time: (\S+) hr")
_PREDICTED = re.compile(r"prediction time: (\S+) ms/point")


def write_matrix(path: Path, matrix: sparse.csr_matrix) -> None:
    """Write their text format; nine digits give every float32 back."""
    matrix = matrix.tocsr()
    columns, values = matrix.indices.tolist(), matrix.data.tolist()
    with path.open("w", encoding="ascii") as file:
        file.write(f"{matrix.shape[0]} {matrix.shape[1]}\n")
        for start, stop in zip(
            matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True
        ):
            pairs = zip(columns[start:stop], values[start:stop], strict=True)
            file.write(" ".join(f"{column}:{value:.9g}" for column, value in pairs) + "\n")


def read_matrix(path: Path) -> sparse.csr_matrix:
    """Read their text format."""
    with path.open(encoding="ascii") as file:
        rows, columns = map(int, file.readline().split())
        lines = [np.array(line.replace(":", " ").split(), np.float64) for line in file]
    if len(lines) != rows:
        raise ValueError(f"{path} has {len(lines)} lines for {rows} rows")
    flat = np.concatenate([*lines, np.empty(0)])
    indptr = np.concatenate([[0], np.cumsum([len(line) // 2 for line in lines])])
    parts = (flat[1::2].astype(np.float32), flat[::2].astype(np.int32), indptr.astype(np.int64))
    return sparse.csr_matrix(parts, shape=(rows, columns))


def write_splits(folder: Path, train: Split, test: Split) -> None:
    """What the programs read, in a folder that :class:`AuthorsForest` is told of."""
    assert train.inputs.bow is not None
    assert test.inputs.bow is not None
    write_matrix(folder / "train_X.txt", train.inputs.bow)
    write_matrix(folder / "train_Y.txt", train.labels)
    write_matrix(folder / "test_X.txt", test.inputs.bow)
    np.savetxt(folder / "inverse_propensity.txt", train.inverse_propensity(), fmt="%.9g")


def find_program(binaries: Path, method: str, task: str) -> Path:
    """``fastXML_train`` and so on, in the folder itself or where their Makefile leaves it."""
    name = f"{_PROGRAMS[method]}_{task}"
    places = [binaries / name, binaries / method / name]
    for place in places:
        if place.is_file():
            return place.resolve()
    raise FileNotFoundError(f"no {' or '.join(map(str, places))}")


class AuthorsForest:
    """Their program with the settings of one of our methods, whose seeds are its start trees."""

    def __init__(self, method: FastXML, binaries: Path, folder: Path, threads: int, k: int) -> None:
        self.method, self.folder, self.threads, self.k = method, folder, threads, k
        self.train = find_program(binaries, method.name, "train")
        self.predict = find_program(binaries, method.name, "predict")

    def run(self, repeat: int, test: Split) -> tuple[tuple[float, float], TopK]:
        """Seconds of fitting and of predicting, and the ranking."""
        method, model = self.method, self.folder / f"model_{self.method.name}"
        model.mkdir(exist_ok=True)
        inputs = ["train_X.txt", "train_Y.txt"]
        trees = {"-T": self.threads, "-s": repeat * method.n_trees, "-t": method.n_trees, "-q": 1}
        asked = {"-b": method.bias, "-c": method.C, "-m": method.max_leaf}
        asked["-l"] = method.labels_per_leaf
        shortlist = {}
        if isinstance(method, PfastreXML):
            inputs.append("inverse_propensity.txt")
            asked |= {"-g": method.gamma, "-a": method.alpha}
            shortlist = {"-n": method.shortlist}
        fit = self._seconds(_TRAINED, 3600.0, self.train, [*inputs, model.name], trees | asked)
        predict = self._seconds(
            _PREDICTED,
            len(test) / 1000.0,
            self.predict,
            ["test_X.txt", "scores.txt", model.name],
            trees | shortlist,
        )
        scores = read_matrix(self.folder / "scores.txt")
        return (fit, predict), TopK.from_sparse(scores, self.k)

    def _seconds(
        self,
        printed: re.Pattern[str],
        unit: float,
        program: Path,
        files: list[str],
        options: Mapping[str, float],
    ) -> float:
        """Run a program; the time that it printed, in seconds of elapsed time."""
        words = [str(word) for option in options.items() for word in option]
        done = subprocess.run(
            [str(program), *files, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        found = printed.search(done.stdout)
        if done.returncode or found is None:
            said = (done.stderr or done.stdout)[-2000:]
            raise RuntimeError(f"{program.name} ended with {done.returncode}: {said}")
        return float(found[1]) * unit / self.threads
