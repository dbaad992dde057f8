"""Label trees against omikuji and PECOS, forests against their authors' programs, RankNet and Taug
against their base; ratios within one run.

``python -m benchmarks.speed trees [--dataset NAME ...] [--threads 2] [--repeats 3]
[--copies 0 1 4] [--peer NAME ...] [--skip-label-trees] [--skip-variants] [--skip-forests]
[--fastxml-binaries FOLDER]`` needs a local mirror or network for the datasets, ``pip install
.[peers]`` for omikuji and ``python -m methods.peers.pecos`` for PECOS' own environment. FastXML and
PfastreXML have no peer that can be installed; a user who has built their authors' programs names
the folder, else our times stand alone. Times are the least of the repeats, all programs in turn,
metrics their means; compiling is not counted.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.data import load
from benchmarks.data.split import Split
from benchmarks.evaluation.metrics import score
from benchmarks.evaluation.topk import TopK
from benchmarks.speed._authors_forests import AUTHORS, AuthorsForest, write_splits
from methods import get
from methods.interface import Resources
from methods.peers.omikuji import Omikuji, write_documents
from methods.peers.pecos_tree import PecosTree, PecosTreeModel
from methods.trees.fastxml import FastXML, PfastreXML
from methods.trees.parabel import Bonsai, Parabel
from methods.variants.ranknet import RankNet
from methods.variants.taug import Taug

DATASETS = ("EURLex-4K", "EURLex-4.3K")
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
TOP = 5
OMIKUJI: dict[str, dict[str, Any]] = {
    Parabel.name: {},
    Bonsai.name: {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}
"""What differs from omikuji's defaults, which are Parabel's."""
PECOS: dict[str, dict[str, Any]] = {Parabel.name: {"splits": 2}, Bonsai.name: {"splits": 16}}
"""PECOS' trees are always balanced: binary ones, and its own default, which is as shallow as
Bonsai's. Trees, leaves, beam and the weights that are dropped are ours."""
PEERS = (Omikuji.name, PecosTree.name)


def _timed(action: Callable[..., Any], *given: Any, **named: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = action(*given, **named)
    return time.perf_counter() - started, result


def _row(
    dataset: str, method: str, program: str, seconds: Sequence[float], values: dict[str, float]
) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "method": method,
        "program": program,
        "fit_s": seconds[0],
        "predict_s": seconds[1],
        **{name: values[name] for name in METRICS},
    }


class _Ours:
    """One of our methods, its seeds differing from run to run."""

    def __init__(self, name: str, train: Split, threads: int) -> None:
        self.method, self.train, self.threads = get(name), train, threads
        self.method.warm_up(train)

    def run(self, repeat: int, test: Split) -> tuple[tuple[float, float], TopK]:
        """Seconds of fitting and of predicting, and the ranking."""
        fit, model = _timed(self.method.fit, self.train, seed=repeat, threads=self.threads)
        predict, top = _timed(model.predict, test.inputs, TOP)
        return (fit, predict), top


class _Omikuji:
    """omikuji, which cannot be seeded; its fit starts from a file, as its interface asks."""

    def __init__(self, name: str, path: Path, threads: int) -> None:
        self.method, self.path, self.threads = Omikuji(**OMIKUJI[name]), path, threads

    def run(self, repeat: int, test: Split) -> tuple[tuple[float, float], TopK]:
        """Seconds of fitting and of predicting, and the ranking."""
        fit, model = _timed(self.method.fit_file, self.path, self.threads)
        predict, top = _timed(model.predict, test.inputs, TOP)
        return (fit, predict), top


class _Pecos:
    """PECOS in its own environment; seconds are those of its process, files not counted."""

    def __init__(self, name: str, train: Split, threads: int) -> None:
        self.method, self.train, self.threads = PecosTree(**PECOS[name]), train, threads

    def run(self, repeat: int, test: Split) -> tuple[tuple[float, float], TopK]:
        """Seconds of fitting and of predicting, and the ranking."""
        model = self.method.fit(self.train, seed=repeat, threads=self.threads)
        assert isinstance(model, PecosTreeModel)
        top = model.predict(test.inputs, TOP)
        return (model.seconds["fit"], model.seconds["predict"]), top


def against_peers(
    dataset: str, threads: int, repeats: int, peers: Sequence[str]
) -> list[dict[str, Any]]:
    """Parabel and Bonsai beside omikuji and PECOS, as far as these are wanted and installed."""
    train, test = load(dataset)
    missing = {peer: get(peer).skip(train.meta, Resources()) for peer in peers}
    for reason in filter(None, missing.values()):
        print(f"left out: {reason}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="speed-trees-") as folder:
        path = Path(folder, "train.txt")
        write_documents(path, train)
        for name in OMIKUJI:
            programs: dict[str, _Ours | _Omikuji | _Pecos] = {"ours": _Ours(name, train, threads)}
            if missing.get(Omikuji.name, "") is None:
                programs[Omikuji.name] = _Omikuji(name, path, threads)
            if missing.get(PecosTree.name, "") is None:
                programs[PecosTree.name] = _Pecos(name, train, threads)
            best = dict.fromkeys(programs, (np.inf, np.inf))
            values: dict[str, list[dict[str, float]]] = {program: [] for program in programs}
            for repeat in range(repeats):
                for program, runner in programs.items():
                    seconds, top = runner.run(repeat, test)
                    best[program] = tuple(np.minimum(best[program], seconds).tolist())
                    values[program].append(score(top, test.labels, train.labels))
            for program, scored in values.items():
                means = pd.DataFrame(scored).mean().to_dict()
                rows.append(_row(dataset, name, program, best[program], means))
    return rows


def of_variants(
    dataset: str, threads: int, repeats: int, copies: Sequence[int]
) -> list[dict[str, Any]]:
    """RankNet's own training and Taug's fit against Bonsai's fit, all in turn."""
    train, test = load(dataset)
    # Named apart: the plain row beside the peers is another measurement.
    plain = f"{Bonsai.name}, base of these"
    methods = {plain: get(Bonsai.name)}
    methods[f"{Bonsai.name} {RankNet.name}"] = get(Bonsai.name, RankNet.name)
    for n_aug in copies:
        name = f"{Bonsai.name} {Taug.name} n_aug={n_aug}"
        methods[name] = get(Bonsai.name, Taug.name, variant_params={"n_aug": n_aug})
    for method in methods.values():
        method.warm_up(train)
    best: dict[str, dict[str, float]] = {name: {} for name in methods}
    values: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, method in methods.items():
            fit, model = _timed(method.fit, train, seed=0, threads=threads)
            predict, top = _timed(model.predict, test.inputs, TOP)
            took = {"fit": fit, "predict": predict, **getattr(model, "seconds", {})}
            best[name] = {part: min(s, best[name].get(part, np.inf)) for part, s in took.items()}
            values[name] = score(top, test.labels, train.labels)
    rows = []
    for name, took in best.items():
        row = _row(dataset, name, "ours", (took["fit"], took["predict"]), values[name])
        if name != plain:
            row["fit_over_base"] = took["fit"] / best[plain]["fit"]
        for part in ("network", "scores"):
            if part in took:
                row[f"{part}_over_base"] = took[part] / best[plain]["fit"]
        rows.append(row)
    return rows


def of_forests(dataset: str, threads: int, binaries: Path | None) -> list[dict[str, Any]]:
    """FastXML and PfastreXML, twice each in turn: fifty trees take long.

    All runs have seed 0: those of the authors' programs, if there are any, grow the same trees.
    """
    train, test = load(dataset)
    programs: dict[tuple[str, str], _Ours | AuthorsForest] = {}
    with tempfile.TemporaryDirectory(prefix="speed-trees-") as folder:
        if binaries is not None:
            write_splits(Path(folder), train, test)
        for method in (FastXML(), PfastreXML()):
            programs[method.name, "ours"] = _Ours(method.name, train, threads)
            if binaries is not None:
                authors = AuthorsForest(method, binaries, Path(folder), threads, TOP)
                programs[method.name, AUTHORS] = authors
        best = dict.fromkeys(programs, (np.inf, np.inf))
        values: dict[tuple[str, str], dict[str, float]] = {}
        for _ in range(2):
            for key, runner in programs.items():
                seconds, top = runner.run(0, test)
                best[key] = tuple(np.minimum(best[key], seconds).tolist())
                values[key] = score(top, test.labels, train.labels)
    return [_row(dataset, *key, best[key], values[key]) for key in programs]


def print_ratios(frame: pd.DataFrame) -> None:
    """How many times a peer's time is ours, and the differences in P@k and PSP@k."""
    for (dataset, method), part in frame.groupby(["dataset", "method"], sort=False):
        by = part.set_index("program")
        for name in filter(by.index.__contains__, (*PEERS, AUTHORS)):
            ours, peer = by.loc["ours"], by.loc[name]
            differences = " ".join(f"{m} {ours[m] - peer[m]:+.2f}" for m in METRICS)
            print(
                f"{dataset} {method}: fit {peer['fit_s'] / ours['fit_s']:.1f}x and predict "
                f"{peer['predict_s'] / ours['predict_s']:.1f}x as fast as {name}; {differences}"
            )
    if (frame["program"] == Omikuji.name).any():
        print(
            "omikuji is asked for one document at a time, which is all that its Python package "
            "offers; ours for all at once. Part of the ratio of prediction is that."
        )
    if (frame["program"] == AUTHORS).any():
        print(
            f"{AUTHORS} print the times of all threads added up; here that is divided by the "
            "threads. Reading and writing files is not counted."
        )
    variants = frame[frame["fit_over_base"].notna()] if "fit_over_base" in frame else frame[:0]
    for _, row in variants.iterrows():
        line = f"{row['dataset']} {row['method']}: fit {row['fit_over_base']:.2f} of the base's"
        if pd.notna(row.get("network_over_base")):
            line += (
                f" (network {row['network_over_base']:.3f}, "
                f"out-of-fold scores {row['scores_over_base']:.2f})"
            )
        print(line)


def main(argv: list[str]) -> int:
    """Measure, print ratios, write ``results/speed/trees.csv``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed trees")
    parser.add_argument("--dataset", action="append", help=f"default: {', '.join(DATASETS)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--copies", type=int, nargs="*", default=[0, 1, 4], help="n_aug of Taug")
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--skip-variants", action="store_true")
    parser.add_argument("--skip-forests", action="store_true")
    parser.add_argument("--skip-label-trees", action="store_true")
    parser.add_argument(
        "--fastxml-binaries",
        type=Path,
        metavar="FOLDER",
        help="of fastXML_train, fastXML_predict, PfastreXML_train and PfastreXML_predict",
    )
    parser.add_argument("--out", type=Path, default=Path("results/speed/trees.csv"))
    options = parser.parse_args(argv)
    logging.getLogger().setLevel(logging.WARNING)
    numba.set_num_threads(min(options.threads, numba.config.NUMBA_NUM_THREADS))
    rows: list[dict[str, Any]] = []
    for dataset in options.dataset or DATASETS:
        if not options.skip_label_trees:
            rows += against_peers(dataset, options.threads, options.repeats, options.peer or PEERS)
        if not options.skip_variants:
            rows += of_variants(dataset, options.threads, options.repeats, options.copies)
        if not options.skip_forests:
            rows += of_forests(dataset, options.threads, options.fastxml_binaries)
    frame = pd.DataFrame(rows)
    print(frame.round(3).to_string(index=False))
    print_ratios(frame)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(options.out) as temporary:
        frame.to_csv(temporary, index=False)
    return 0
