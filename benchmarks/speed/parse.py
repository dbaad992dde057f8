"""Reading XC files against scikit-learn's reader, its memory, and opening prepared data.

Writes a file of AmazonCat-13K's shape (or a stated fraction of its documents), reads it with
:func:`benchmarks.data.read_xc` and with ``sklearn.datasets.load_svmlight_file(multilabel=True)``
in turns, and compares the best of each. Peak memory is that of a fresh process, from before the
read to its end.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from benchmarks.common.atomic import atomic_path
from benchmarks.data.prepared import open_prepared
from benchmarks.data.xc import read_xc, write_xc

# AmazonCat-13K as the XC repository has it; 71 features per document on average.
DOCUMENTS, FEATURES, LABELS = 1_186_239, 203_882, 13_330
FEATURES_PER_DOCUMENT, LABELS_PER_DOCUMENT = 71.2, 5.04
PREPARED = "EURLex-4.3K"

_MEMORY_PROBE = """
import json, sys, tempfile
from pathlib import Path
from benchmarks.data.xc import read_xc

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024

path, threads = sys.argv[1], int(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    tiny = Path(folder, "tiny.txt")
    tiny.write_text("0 1:1\\n")
    read_xc(tiny, threads=threads)  # loads the compiled kernels
Path("/proc/self/clear_refs").write_text("5")  # resets the peak to what is held now
before = memory("VmRSS")
split = read_xc(path, threads=threads)
peak = memory("VmHWM") - before
arrays = sum(
    part.nbytes
    for matrix in (split.inputs.bow, split.labels)
    for part in (matrix.indptr, matrix.indices, matrix.data)
)
print(json.dumps({"peak": peak, "arrays": arrays}))
"""


def write_like_amazoncat(path: Path, documents: int, seed: int = 0) -> None:
    """A random file in XC format with AmazonCat-13K's sizes, ids skewed as words and tags are."""
    rng = np.random.default_rng(seed)
    words, values, labels = [], [], []
    for start in range(0, documents, 1000):
        rows = min(1000, documents - start)
        sizes = 1 + rng.poisson(FEATURES_PER_DOCUMENT - 1, rows)
        label_sizes = 1 + rng.poisson(LABELS_PER_DOCUMENT - 1, rows)
        for size, label_size in zip(sizes, label_sizes, strict=True):
            words.append(np.unique((FEATURES * rng.random(size) ** 3).astype(np.int64)))
            values.append(rng.random(len(words[-1])) + 0.01)
            labels.append(np.unique((LABELS * rng.random(label_size) ** 2).astype(np.int64)))
    bow = _csr(words, np.concatenate(values), FEATURES)
    carried = _csr(labels, np.ones(sum(map(len, labels))), LABELS)
    with atomic_path(path) as temporary:
        write_xc(temporary, bow, carried, value=".6f")


def _csr(ids: list[np.ndarray], data: np.ndarray, columns: int) -> sparse.csr_matrix:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in ids])])
    return sparse.csr_matrix((data, np.concatenate(ids), indptr), shape=(len(ids), columns))


def read_with_sklearn(path: Path) -> tuple[Any, Any]:
    """The same file by scikit-learn, which knows no header."""
    with path.open("rb") as stream:
        stream.readline()
        return load_svmlight_file(
            stream, n_features=FEATURES, dtype=np.float32, multilabel=True, zero_based=True
        )


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main(argv: list[str]) -> int:
    """Measure, print, and write ``results/speed/parse.csv``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed parse", description=__doc__)
    parser.add_argument(
        "--fraction", type=float, default=0.05, help="of AmazonCat-13K's documents (default 0.05)"
    )
    parser.add_argument("--threads", type=int, default=2, help="for our reader (default 2)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many (default 3)")
    parser.add_argument("--data", type=Path, default=Path("results/data"), help="prepared datasets")
    parser.add_argument("--out", type=Path, default=Path("results/speed/parse.csv"))
    options = parser.parse_args(argv)
    documents = round(DOCUMENTS * options.fraction)
    rows: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "amazoncat_like.txt"
        write_like_amazoncat(path, documents)
        print(
            f"file: {documents:,} documents ({options.fraction:g} of AmazonCat-13K), "
            f"{FEATURES:,} features, {LABELS:,} labels, {path.stat().st_size / 1e6:.0f} MB"
        )
        ours = read_xc(path, threads=options.threads)  # also loads the compiled kernels
        theirs, labels = read_with_sklearn(path)
        assert ours.inputs.bow is not None
        np.testing.assert_array_equal(ours.inputs.bow.indices, theirs.indices)
        np.testing.assert_array_equal(ours.inputs.bow.data, theirs.data)
        np.testing.assert_array_equal(ours.labels.indices, np.concatenate(labels).astype(np.int64))
        print("both readers return the same matrix and labels")
        del ours, theirs, labels
        times: dict[str, list[float]] = {"read_xc": [], "sklearn": []}
        for _ in range(options.repeats):
            times["read_xc"].append(_seconds(lambda: read_xc(path, threads=options.threads)))
            times["sklearn"].append(_seconds(lambda: read_with_sklearn(path)))
        ratio = min(times["sklearn"]) / min(times["read_xc"])
        rows.append(("parse", ratio, f"times faster than sklearn, {options.threads} threads"))
        probe = subprocess.run(
            [sys.executable, "-c", _MEMORY_PROBE, str(path), str(options.threads)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        memory = json.loads(probe.stdout)
        rows.append(("memory", memory["peak"] / memory["arrays"], "peak memory / arrays returned"))
    prepared = options.data / PREPARED
    if (prepared / "meta.json").exists():
        opening = min(_seconds(lambda: open_prepared(prepared)) for _ in range(options.repeats))
        rows.append(("open", opening * 1000, f"ms to open the prepared {PREPARED}"))
    else:
        print(f"open: {prepared} is not there; `snakemake --cores 2 datasets` prepares it")
    for name, value, unit in rows:
        print(f"{name}: {value:.2f} {unit}")
    with atomic_path(options.out) as temporary, temporary.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["name", "value", "unit", "fraction", "threads"])
        writer.writerows([*row, options.fraction, options.threads] for row in rows)
    return 0
