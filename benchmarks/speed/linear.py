"""The one-vs-rest core against liblinear and scipy: time, gap, memory, scaling.

Parts (``--part``, repeatable; all by default):

* ``eurlex4k-half``: training on EURLex-4K-half, vanilla and PW, two threads, beside scikit-learn's
  LinearSVC (liblinear's dual, tol 0.1) on two processes and, if installed, napkinXC's binary
  relevance and PECOS's one-vs-rest on two threads; the worst relative gap of each is printed;
* ``eurlex-4.3k``: the whole of EURLex-4.3K, vanilla and PW: time, peak memory, P and PSP;
* ``wiki10``: a synthetic set of Wiki10-31K's shape: time and peak memory;
* ``scaling``: time against the number of labels, documents and features, fitted exponents, figure;
* ``predict``: top 100 of EURLex-4.3K's test documents beside ``X @ W`` in scipy + ``argpartition``.

Each measurement of training runs in a process of its own, so that its peak memory is its own.
Compilation is cached and not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.common.atomic import atomic_path
from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.metrics import score
from benchmarks.speed._corpus import Corpus, Shape
from benchmarks.speed._memory import peak_mb
from benchmarks.speed._one_vs_rest import THREADS, liblinear, ours, peers
from methods.hooks.loss_weights import LabelWeights
from methods.linear.dismec import DiSMEC
from methods.linear.model import SparseLinearModel, as_unit_rows
from methods.linear.solver import objective, solve
from methods.linear.svc import LinearSVC
from methods.variants.pw import PW

PARTS = ("eurlex4k-half", "eurlex-4.3k", "wiki10", "scaling", "predict")
Row = dict[str, Any]


def load_dataset(name: str) -> tuple[Split, Split]:
    """Train and test of a dataset by name."""
    from benchmarks.data import load

    return load(name)


def pw_weights(train: Split) -> np.ndarray:
    """2 / p - 1 for each label (PW eq. 15)."""
    return 2.0 * train.inverse_propensity() - 1.0


def best_time(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least wall time of some runs, and what the last returned."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


# --- EURLex-4K-half: time per label and gap, beside liblinear -------------------------------------


def eurlex4k_half(options: argparse.Namespace) -> list[Row]:
    """Milliseconds per label and worst gap."""
    train, _ = load_dataset("EURLex-4K-half")
    assert train.inputs.bow is not None
    X = as_unit_rows(train.inputs.bow)
    counts = train.label_counts()
    seen = np.flatnonzero(counts)
    by_frequency = seen[np.argsort(-counts[seen], kind="stable")]
    # Evenly over the frequencies, so that a sample costs what the whole does.
    step = max(1, len(seen) // options.labels) if options.labels else 1
    labels = np.sort(by_frequency[step // 2 :: step])
    Y = sparse.csc_matrix(train.labels)[:, labels]
    X64 = X.astype(np.float64)
    print(
        f"EURLex-4K-half {X.shape}, {X.nnz / X.shape[0]:.0f} non-zeros per row, "
        f"{len(labels)} labels"
    )
    solve(X, Y[:, :3])  # compiles
    rows: list[Row] = []
    for variant, weight in (("vanilla", np.ones(train.n_labels)), (PW.name, pw_weights(train))):
        w = weight[labels]
        programs: dict[str, Callable[[], tuple[Any, float]]] = {
            "ours": partial(ours, X, Y, w, 1e-3),
            "ours, tol 1e-6": partial(ours, X, Y, w, 1e-6),
            LinearSVC.name: partial(liblinear, X64, Y, w),
        }
        if variant == "vanilla":
            programs |= peers(X, Y)
        liblinear(X64, Y[:, :2], w[:2])  # starts the processes
        wall: dict[str, float] = {}
        cpu: dict[str, float] = {}
        reached: dict[str, np.ndarray] = {}
        # In turns and each as often, so that what else the machine does hits all alike.
        for turn in range(options.repeats):
            for program, run in programs.items():
                start = time.perf_counter()
                found, spent = run()
                took = time.perf_counter() - start
                if program == "PECOS OVR":
                    took, spent = spent, np.nan  # it reports its own wall time
                wall[program] = min(wall.get(program, np.inf), took)
                cpu[program] = np.fmin(cpu.get(program, np.nan), spent)
                if turn == 0 and found is not None:
                    matrix = sparse.csr_matrix(found)
                    reached[program] = objective(X, Y, matrix, positive_weight=w)
        tight = solve(X, Y, positive_weight=w, tol=1e-9, threads=THREADS)
        optimum = np.minimum(
            objective(X, Y, tight.weights, positive_weight=w), np.min([*reached.values()], axis=0)
        )
        for program in programs:
            gap = np.nan
            if program in reached:
                gap = float(((reached[program] - optimum) / optimum).max())
            row = _row("eurlex4k-half", variant, program, wall[program], len(labels), gap)
            row["CPU ms per label"] = 1e3 * cpu[program] / len(labels)
            row["speed-up"] = wall[LinearSVC.name] / wall[program]
            row["CPU speed-up"] = cpu[LinearSVC.name] / cpu[program]
            rows.append(row)
            print(
                f"  {variant:8s}{program:15s}{row['ms per label']:7.2f} ms per label "
                f"({row['CPU ms per label']:.2f} of CPU); LinearSVC / it: {row['speed-up']:.1f} "
                f"({row['CPU speed-up']:.1f} of CPU); worst gap {gap:.1e}"
            )
    return rows


def _row(part: str, variant: str, program: str, seconds: float, labels: int, gap: float) -> Row:
    return {
        "part": part,
        "variant": variant,
        "program": program,
        "threads": THREADS,
        "seconds": seconds,
        "labels": labels,
        "ms per label": 1e3 * seconds / labels,
        "worst gap": gap,
    }


# --- Whole runs in a process of their own ---------------------------------------------------------


def _alone(part: str, variant: str, options: argparse.Namespace) -> Row:
    """Run one fit in a fresh process; its report, with the peak memory of that process."""
    command = [sys.executable, "-m", "benchmarks.speed", "linear", "--part", part]
    command += ["--child", variant, "--out", str(options.out), "--labels", str(options.labels)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    print("  " + ", ".join(f"{k} {_short(v)}" for k, v in row.items() if k != "part"))
    return row


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _fit_report(part: str, variant: str, train: Split, seconds: float, method: DiSMEC) -> Row:
    labels = int((train.label_counts() > 0).sum())
    row = _row(part, variant, f"ours tol {method.tol:g}", seconds, labels, np.nan)
    del row["worst gap"]
    row["peak MB"] = peak_mb()
    return row


def _warm_up() -> None:
    """Compile, or load what was compiled."""
    X = sparse.random(40, 20, 0.3, format="csr", dtype=np.float32, random_state=0)
    Y = sparse.random(40, 5, 0.3, format="csr", random_state=0)
    Y.data[:] = 1
    train = Split(Inputs(bow=X), sparse.csr_matrix(Y, dtype=np.float32))
    DiSMEC().fit(train, threads=THREADS).predict(train.inputs, 3)


def eurlex43k_child(variant: str, options: argparse.Namespace) -> Row:
    """Fit all labels of EURLex-4.3K, score the test documents, keep the model for ``predict``."""
    train, test = load_dataset("EURLex-4.3K")
    _warm_up()
    hooks = []
    if variant == PW.name:
        hooks.append(LabelWeights(pw_weights(train), np.ones(train.n_labels)))
    method = DiSMEC()
    start = time.perf_counter()
    model = method.fit(train, threads=THREADS, hooks=hooks)
    assert isinstance(model, SparseLinearModel)
    row = _fit_report("eurlex-4.3k", variant, train, time.perf_counter() - start, method)
    top = model.predict(test.inputs, 5)
    values = score(top, test.labels, train.labels)
    row |= {m: values[m] for m in ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")}
    row["weights per label"] = model.label_weights().nnz / row["labels"]
    folder = _model_folder(options, variant)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder)
    return row


def _model_folder(options: argparse.Namespace, variant: str) -> Path:
    return Path(options.out) / f"linear-eurlex-4.3k-{variant}"


def eurlex43k(options: argparse.Namespace) -> list[Row]:
    """The whole one-vs-rest of EURLex-4.3K."""
    print("EURLex-4.3K")
    return [_alone("eurlex-4.3k", variant, options) for variant in ("vanilla", PW.name)]


def wiki10_child(variant: str, options: argparse.Namespace) -> Row:
    """Fit the synthetic set of Wiki10-31K's shape: 14,146 x 101,938, 30,938 labels."""
    train = Corpus(Shape("Wiki10-31K", 14_146, 101_938, 30_938, 673, 18.6)).train()
    _warm_up()
    method = DiSMEC()
    start = time.perf_counter()
    model = method.fit(train, threads=THREADS)
    assert isinstance(model, SparseLinearModel)
    row = _fit_report("wiki10", variant, train, time.perf_counter() - start, method)
    assert train.inputs.bow is not None
    row["non-zeros per row"] = train.inputs.bow.nnz / len(train)
    row["labels per row"] = train.labels.nnz / len(train)
    row["weights per label"] = model.label_weights().nnz / row["labels"]
    return row


def wiki10(options: argparse.Namespace) -> list[Row]:
    """Wiki10-31K's shape."""
    print("Synthetic set of Wiki10-31K's shape")
    return [_alone("wiki10", "vanilla", options)]


# --- Scaling --------------------------------------------------------------------------------------


def scaling(options: argparse.Namespace) -> list[Row]:
    """Seconds against L, N and D, each varied alone."""
    base = {"L": 800, "N": 4000, "D": 20_000}
    factors = (0.25, 0.5, 1.0, 2.0, 4.0)
    _warm_up()
    rows: list[Row] = []
    exponents = {}
    print("Scaling, one axis at a time around", base)
    for axis in base:
        sizes, seconds = [], []
        for factor in factors:
            at = {**base, axis: int(base[axis] * factor)}
            train = Corpus(Shape("scaling", at["N"], at["D"], at["L"], 150, 5.0)).train()
            took, _ = best_time(
                partial(DiSMEC().fit, train, threads=THREADS),
                options.repeats,
            )
            sizes.append(at[axis])
            seconds.append(took)
            rows.append({"part": "scaling", "axis": axis, **at, "seconds": took})
        exponents[axis] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        print(
            f"  {axis}: "
            + "  ".join(f"{s}: {t:.2f} s" for s, t in zip(sizes, seconds, strict=True))
        )
        print(f"  time ~ {axis}^{exponents[axis]:.2f}")
        rows += [{"part": "scaling", "axis": axis, "exponent": exponents[axis]}]
    _scaling_figure(rows, exponents, Path(options.out))
    return rows


def _scaling_figure(rows: list[Row], exponents: dict[str, float], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = {"L": "labels", "N": "documents", "D": "features"}
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for panel, (axis, name) in zip(panels, names.items(), strict=True):
        points = [(r[axis], r["seconds"]) for r in rows if r["axis"] == axis and "seconds" in r]
        sizes, seconds = (np.array(values) for values in zip(*points, strict=True))
        slope = exponents[axis]
        centre = np.exp(np.mean(np.log(seconds)) - slope * np.mean(np.log(sizes)))
        panel.loglog(sizes, seconds, "o", color="C0")
        panel.loglog(sizes, centre * sizes**slope, "-", color="C0", alpha=0.6)
        panel.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        panel.minorticks_off()
        panel.set_xlabel(name)
        panel.set_title(f"time ~ {axis}^{slope:.2f}", fontsize=10)
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel(f"seconds ({THREADS} threads)")
    panels[0].yaxis.set_major_formatter("{x:g}")
    figure.tight_layout()
    for suffix in ("svg", "png"):
        with atomic_path(folder / f"linear-scaling.{suffix}") as temporary:
            figure.savefig(temporary, format=suffix, dpi=150)
    plt.close(figure)


# --- Prediction -----------------------------------------------------------------------------------


def _scipy_top(
    X: sparse.csr_matrix, WT: sparse.csr_matrix, offset: np.ndarray, k: int
) -> np.ndarray:
    """What one writes with scipy: sparse product, dense blocks of rows, argpartition."""
    best = []
    for first in range(0, X.shape[0], 1000):
        scores = (X[first : first + 1000] @ WT).toarray() + offset
        top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
        best.append(np.take_along_axis(top, order, axis=1))
    return np.concatenate(best)


def predict(options: argparse.Namespace) -> list[Row]:
    """Top 100 of 4,271 labels for 6,000 documents."""
    folder = _model_folder(options, "vanilla")
    if not (folder / "model.json").exists():
        _alone("eurlex-4.3k", "vanilla", options)
    model = SparseLinearModel.load(folder)
    _, test = load_dataset("EURLex-4.3K")
    assert test.inputs.bow is not None
    k = 100
    X = as_unit_rows(test.inputs.bow)
    WT = sparse.csr_matrix(model.weights[:, :-1].T)
    offset = model.weights[:, [-1]].toarray().ravel()
    offset[~model.trained] = -np.inf
    _warm_up()
    start = time.perf_counter()
    model.predict(test.inputs.take(np.arange(1)), 1)
    index = time.perf_counter() - start
    peer, theirs = best_time(lambda: _scipy_top(X, WT, offset, k), options.repeats)
    rows: list[Row] = []
    print(f"Prediction: top {k} of {model.weights.shape[0]} labels, {X.shape[0]} documents")
    print(
        f"  scipy X @ W + argpartition {peer:.2f} s; index of the weights made once: {index:.2f} s"
    )
    for threads in (1, THREADS):
        model.threads = threads
        seconds, top = best_time(lambda: model.predict(test.inputs, k), options.repeats)
        same = float((top.indices == theirs).mean())
        print(f"  ours, {threads} threads {seconds:.2f} s: scipy / ours {peer / seconds:.1f}")
        print(
            f"    {100 * same:.2f} % of places hold the same label "
            "(argpartition orders ties as it likes)"
        )
        rows.append(
            {
                "part": "predict",
                "program": "ours",
                "threads": threads,
                "seconds": seconds,
                "peer seconds": peer,
                "index seconds": index,
                "speed-up": peer / seconds,
                "same places": same,
            }
        )
    return rows


def main(argv: list[str]) -> int:
    """Run the parts asked for; print ratios, write ``linear.csv``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed linear", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--labels", type=int, default=600, help="labels timed, 0 for all (half)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best counts")
    parser.add_argument("--out", default="results/speed", help="folder for the CSV and figure")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    parts = options.part or list(PARTS)
    if options.child:
        child = {"eurlex-4.3k": eurlex43k_child, "wiki10": wiki10_child}[parts[0]]
        print(json.dumps(child(options.child, options)))
        return 0
    print(f"{os.cpu_count()} cores, {THREADS} threads used by each program")
    whole = {
        "eurlex4k-half": eurlex4k_half,
        "eurlex-4.3k": eurlex43k,
        "wiki10": wiki10,
        "scaling": scaling,
        "predict": predict,
    }
    for part in parts:
        rows = whole[part](options)
        with atomic_path(Path(options.out) / f"linear-{part}.csv") as temporary:
            pd.DataFrame(rows).to_csv(temporary, index=False)
    return 0
