"""One-vs-rest training against what the machine allows: bandwidth, arithmetic and memory.

In one run: the bandwidth of a STREAM-like triad and the arithmetic of a matrix product, on the
threads that the solver uses; then the solver on labels of a dataset, evenly over their frequencies.
It counts its own work: rounds, which each read the hot columns of X once for the labels that are in
work together, and the entries of rows and cold columns that are visited for a label alone. From
that follow the operations and bytes per label and the time they would take at these rates. Bytes
are counted as if no cache held anything, so where caches do, the solver can be faster than that.

``--part ways`` times the solver's two ways on the same labels of a made-up corpus of full size:
every round on all of X, and directions found on candidates (:mod:`methods.linear.direction`).
``--part memory`` fits the whole dataset in a process of its own and says which part of its peak
memory was there before the fit: Python, its libraries, compiled code and the data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

from benchmarks.common.atomic import write_csv
from benchmarks.data.prepare import DATA_FOLDER, ensure
from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.speed._corpus import SHAPES, Corpus
from methods.linear.dismec import DiSMEC
from methods.linear.model import as_unit_rows
from methods.linear.solver import OneVsRest, Solution

DATASETS = ("EURLex-4K-half", "EURLex-4.3K")
PARTS = ("time", "ways", "memory")
WAYS = {False: "all of X", True: "candidates"}
WAYS_LABELS, WAYS_MB = 96, 4096.0
TRIAD = 1 << 24  # float64 entries of each of the three arrays
PRODUCT = 2048  # rows and columns of each matrix
_REPEATS = 3
ENTRY = 8  # bytes of an entry of X: its column and its value
VALUE = 4  # bytes of a weight or a score
PASSES_OVER_SCORES = 8
"""Reads and writes of a row's score in a round: gradient, three steps of the search, the update."""
PASSES_OVER_WEIGHTS = 10
"""Of a weight: gradient, gap, direction, packing, update."""


@njit(nogil=True)
def _triad(a, b, c, factor):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        a[i] = b[i] + factor * c[i]


def bandwidth(threads: int) -> float:
    """Bytes per second of ``a = b + factor c`` on arrays that no cache holds."""
    arrays = [np.ones(TRIAD) for _ in range(3)]
    shares = np.array_split(np.arange(TRIAD), threads)
    parts = [[array[s[0] : s[-1] + 1] for array in arrays] for s in shares]
    _triad(*(array[:8] for array in arrays), 0.5)  # compiles
    best = np.inf
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_REPEATS):
            start = time.perf_counter()
            list(pool.map(lambda part: _triad(*part, 0.5), parts))
            best = min(best, time.perf_counter() - start)
    return 3 * 8 * TRIAD / best


def arithmetic(threads: int) -> float:
    """Operations per second of a product of two matrices of float32."""
    import torch  # here, since it would count in the peak memory of programs that need none of it

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    a, b = torch.ones(PRODUCT, PRODUCT), torch.ones(PRODUCT, PRODUCT)
    best = np.inf
    for _ in range(_REPEATS):
        start = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start)
    torch.set_num_threads(before)
    return 2 * PRODUCT**3 / best


def work(solution: Solution, n: int, columns: int, nonzeros: int, slots: int) -> dict[str, float]:
    """Mean operations and bytes per label; bytes as if no cache held anything but a row of X."""
    rounds, visited = float(solution.rounds.mean()), float(solution.visited.mean())
    shared = rounds * nonzeros * ENTRY / slots
    gathered = rounds * nonzeros * VALUE
    active = visited * (ENTRY + VALUE)
    dense = rounds * VALUE * (PASSES_OVER_SCORES * n + PASSES_OVER_WEIGHTS * columns)
    return {
        "rounds": rounds,
        "products": float(solution.products.mean()),
        "Mflop": 2e-6 * (rounds * nonzeros + visited),
        "MB of X": 1e-6 * (shared + active),
        "MB of weights": 1e-6 * gathered,
        "MB of vectors": 1e-6 * dense,
        "MB": 1e-6 * (shared + gathered + active + dense),
    }


def labels_of_all_frequencies(train: Split, labels: int) -> np.ndarray:
    """So many labels, evenly over their frequencies."""
    counts = train.label_counts()
    by_frequency = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    share = max(1, len(by_frequency) // labels)
    # The middle of each share: the first label of all is like no other.
    return np.sort(by_frequency[share // 2 :: share])


def distance(train: Split, labels: int, threads: int, repeats: int, mb: float) -> dict[str, Any]:
    """Milliseconds per label, and how many times those that its work takes at the full rates.

    So many ``labels`` are timed, evenly over their frequencies; ``mb`` is the solver's memory.
    """
    assert train.inputs.bow is not None
    X = as_unit_rows(train.inputs.bow)
    timed = labels_of_all_frequencies(train, labels)
    method = DiSMEC()
    problem = OneVsRest(
        X, train.labels, tol=method.tol, prune=method.prune, threads=threads, memory_mb=mb
    )
    problem.solve(timed[:2])  # compiles
    bytes_per_s, flops_per_s = bandwidth(threads), arithmetic(threads)
    seconds, cpu = np.inf, np.inf
    for _ in range(repeats):
        start, spent = time.perf_counter(), time.process_time()
        solution = problem.solve(timed)
        seconds = min(seconds, time.perf_counter() - start)
        cpu = min(cpu, time.process_time() - spent)
    hot = problem.layout.hot_entries
    done = work(solution, X.shape[0], X.shape[1], hot, problem.slots)
    by_flops = 1e9 * done["Mflop"] / flops_per_s
    by_bytes = 1e9 * done["MB"] / bytes_per_s
    measured = 1e3 * seconds / len(timed)
    return {
        "threads": threads,
        "labels": len(timed),
        "ms per label": measured,
        "CPU ms per label": 1e3 * cpu / len(timed),
        **done,
        "GB/s": 1e-9 * bytes_per_s,
        "Gflop/s": 1e-9 * flops_per_s,
        "ms by flops": by_flops,
        "ms by bytes": by_bytes,
        "times by flops": measured / by_flops,
        "times by bytes": measured / by_bytes,
    }


def time_row(dataset: str, options: argparse.Namespace) -> dict[str, Any]:
    """The distance of a dataset's labels from what the machine allows."""
    train, _ = open_prepared(ensure(dataset, options.data))
    memory = DiSMEC().memory_mb
    found = distance(train, options.labels, options.threads, options.repeats, memory)
    return {"dataset": dataset, **found}


def ways_row(shape: str, options: argparse.Namespace) -> dict[str, Any]:
    """CPU milliseconds per label both ways, on a corpus of a shape, in one run."""
    train = Corpus(SHAPES[shape]).train()
    assert train.inputs.bow is not None
    timed = labels_of_all_frequencies(train, min(options.labels, WAYS_LABELS))
    method = DiSMEC()
    row: dict[str, Any] = {"shape": shape, "threads": options.threads, "labels": len(timed)}
    spent = {}
    for wide, way in WAYS.items():
        problem = OneVsRest(
            train.inputs.bow,
            train.labels,
            tol=method.tol,
            prune=method.prune,
            threads=options.threads,
            memory_mb=WAYS_MB,
            wide=wide,
        )
        problem.solve(timed[:2])  # compiles
        start = time.process_time()
        solution = problem.solve(timed)
        spent[way] = time.process_time() - start
        row[f"CPU ms per label, {way}"] = 1e3 * spent[way] / len(timed)
        row[f"rounds, {way}"] = float(solution.rounds.mean())
        row[f"largest gap, {way}"] = float(solution.gap.max())
    return {**row, "times as fast": spent[WAYS[False]] / spent[WAYS[True]]}


def memory_row(dataset: str, options: argparse.Namespace) -> dict[str, Any]:
    """Peak megabytes of a whole fit, in a process of its own, and of that before the fit."""
    ensure(dataset, options.data)
    # Compiling takes more memory than fitting does.
    subprocess.run([sys.executable, "-m", "methods.warm_up", DiSMEC.name], check=True)
    command = [sys.executable, "-c", _FIT, str(options.data / dataset), str(options.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {"dataset": dataset, **json.loads(done.stdout.splitlines()[-1])}


# Imports no more than a cell of a run does.
_FIT = """
import json, sys, time
from pathlib import Path
from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.speed._corpus import SHAPES, Corpus
from benchmarks.speed._memory import peak_mb
from methods.linear.dismec import DiSMEC

train, _ = open_prepared(Path(sys.argv[1]))
method = DiSMEC()
method.warm_up(train)
before = peak_mb()
start = time.perf_counter()
model = method.fit(train, threads=int(sys.argv[2]))
seconds = time.perf_counter() - start
weights = model.label_weights()
held = sum(part.nbytes for part in (weights.indptr, weights.indices, weights.data)) / 2**20
print(json.dumps({"seconds": seconds, "peak MB": peak_mb(), "MB before the fit": before,
                  "MB of the model": held}))
"""


def main(argv: list[str]) -> int:
    """Measure, print, write ``results/speed/bounds-PART.csv``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed bounds", description=__doc__)
    parser.add_argument("--dataset", action="append", help=f"default: {', '.join(DATASETS)}")
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="of `ways`")
    parser.add_argument("--labels", type=int, default=600, help="labels timed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=_REPEATS, help="the best counts")
    parser.add_argument("--data", type=Path, default=DATA_FOLDER, help="prepared datasets")
    parser.add_argument("--out", type=Path, default=Path("results/speed"))
    options = parser.parse_args(argv)
    measures = {"time": time_row, "ways": ways_row, "memory": memory_row}
    for part in options.part or PARTS:
        rows = []
        of_part = options.shape or SHAPES if part == "ways" else options.dataset or DATASETS
        for dataset in of_part:
            rows.append(measures[part](dataset, options))
            print(", ".join(f"{k} {_short(v)}" for k, v in rows[-1].items()), flush=True)
        write_csv(options.out / f"bounds-{part}.csv", pd.DataFrame(rows))
    return 0


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
