"""The stages of ``python -m benchmarks.speed scale``, each run in a process of its own.

A stage prepares what it does not measure (imports, compiled code, what an earlier stage wrote) and
does its work under a :class:`Clock`. It returns what its row says besides time and memory.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd

from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.data.xc import read_xc
from benchmarks.evaluation.bins import frequency_bins
from benchmarks.evaluation.conventions import CONVENTIONS, DEFAULT
from benchmarks.evaluation.metrics import evaluate as evaluate_ranking
from benchmarks.evaluation.topk import TopK
from benchmarks.speed._corpus import SPLITS, Corpus, Shape
from benchmarks.speed._memory import peak_mb
from benchmarks.speed.bounds import distance
from methods.interface import Method
from methods.linear.dismec import DiSMEC
from methods.linear.model import SparseLinearModel
from methods.trees.parabel import Bonsai, LabelTreesModel, Parabel

NAME = "documents"  # of the dataset, in a folder of its own
TOP = 100  # labels kept per document, as in a run's configuration
KS = (1, 3, 5)
PILOT_LABELS = 128
SOLVER_MB = 4096.0
"""Working memory of one-vs-rest: with less, fewer labels share a pass over 1.6 million features."""
METHODS: dict[str, Method] = {
    Parabel.name: Parabel(n_trees=1),
    # The depth that its authors state for Amazon-670K.
    Bonsai.name: Bonsai(n_trees=1, depth=3),
}


@dataclass
class Clock:
    """Wall and CPU time of what runs inside ``measured``, and the process' peak memory after it."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Time the body."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds = time.perf_counter() - wall
        self.cpu_s = time.process_time() - cpu
        self.peak_mb = peak_mb()


@dataclass(frozen=True)
class Place:
    """Where the files of one corpus are, and how its stages are run."""

    shape: Shape
    folder: Path
    threads: int
    shard_s: float
    """Seconds that a shard of one-vs-rest is to take."""
    clock: Clock = field(default_factory=Clock)

    def text(self, split: str) -> Path:
        """The file of a split in XC format."""
        return self.folder / f"{split}.txt"

    def opened(self) -> tuple[Split, Split]:
        """The prepared splits."""
        return open_prepared(self.folder / "data" / NAME)

    def model(self, name: str) -> Path:
        """The folder of a trained tree."""
        return self.folder / name

    def predictions(self, name: str) -> Path:
        """The ranking of a trained tree."""
        return self.folder / f"{name}.npz"


def write(place: Place) -> dict[str, Any]:
    """Make the documents and write them as text."""
    with place.clock.measured():
        corpus = Corpus(place.shape)
        for split in SPLITS:
            corpus.write(split, place.text(split))
    return {"bytes": sum(place.text(split).stat().st_size for split in SPLITS)}


def parse(place: Place) -> dict[str, Any]:
    """Read the training file."""
    tiny = place.folder / "tiny.txt"
    tiny.write_text("0 1:1\n", encoding="ascii")
    read_xc(tiny)  # loads the compiled kernels
    with place.clock.measured():
        train = read_xc(place.text("train"), threads=place.threads)
    assert train.inputs.bow is not None
    return {
        "nonzeros": int(train.inputs.bow.nnz),
        "label_entries": int(train.labels.nnz),
        "bytes": place.text("train").stat().st_size,
    }


def prepare(place: Place) -> dict[str, Any]:
    """Read both files, count everything, write the prepared folder."""
    files = {split: str(place.text(split).resolve()) for split in SPLITS}
    cards = {NAME: {"format": "xc", **files}}
    with place.clock.measured():
        folder = ensure(NAME, place.folder / "data", cards=cards)
    return {"bytes": sum(path.stat().st_size for path in folder.iterdir())}


def open_data(place: Place) -> dict[str, Any]:
    """Open the prepared folder for the second time: its digests have been checked."""
    place.opened()
    with place.clock.measured():
        train, _ = place.opened()
    return {"documents": len(train)}


def dismec_shard(place: Place) -> dict[str, Any]:
    """Fit one shard, of as many as keep a shard at the seconds asked for."""
    train, _ = place.opened()
    method = DiSMEC(memory_mb=SOLVER_MB)
    method.warm_up(train)
    labels = int((train.label_counts() > 0).sum())

    def seconds(of: int) -> float:
        start = time.perf_counter()
        method.fit(train, threads=place.threads, shard=(of // 2, of))
        return time.perf_counter() - start

    fixed = seconds(labels)  # one label: mostly what every shard does once
    pilot = max(1, min(PILOT_LABELS, labels))
    per_label = max(1e-6, (seconds(labels // pilot) - fixed) / pilot)
    shards = max(1, round(labels * per_label / max(place.shard_s - fixed, 0.1 * place.shard_s)))
    with place.clock.measured():
        model = method.fit(train, threads=place.threads, shard=(shards // 2, shards))
    assert isinstance(model, SparseLinearModel)
    fitted = int(model.trained.sum())
    del model
    found = distance(train, PILOT_LABELS, place.threads, 1, SOLVER_MB)
    of_bound = {name: found[name] for name in ("CPU ms per label", "MB", "GB/s", "times by bytes")}
    return {"amount": fitted, "shards": shards, "fixed_s": fixed, **of_bound}


def fit_tree(name: str) -> Callable[[Place], dict[str, Any]]:
    """The stage that fits one tree of a method."""

    def fit(place: Place) -> dict[str, Any]:
        train, _ = place.opened()
        method = METHODS[name]
        method.warm_up(train)
        with place.clock.measured():
            model = method.fit(train, threads=place.threads)
        assert isinstance(model, LabelTreesModel)
        place.model(name).mkdir(exist_ok=True)
        model.save(place.model(name))
        return {"weights": model.forest.n_weights, "nodes": len(model.forest.index.leaf)}

    return fit


def predict_tree(name: str) -> Callable[[Place], dict[str, Any]]:
    """The stage that ranks the labels of the test documents by the tree of a method."""

    def predict(place: Place) -> dict[str, Any]:
        train, test = place.opened()
        METHODS[name].warm_up(train)
        numba.set_num_threads(min(place.threads, numba.config.NUMBA_NUM_THREADS))
        with place.clock.measured():
            model = LabelTreesModel.load(place.model(name))
            top = model.predict(test.inputs, TOP)
        with place.predictions(name).open("wb") as file:
            np.savez(file, indices=top.indices, scores=top.scores)
        return {"documents": len(test)}

    return predict


def evaluate(place: Place) -> dict[str, Any]:
    """Every metric under every convention, with its values per document and by label frequency."""
    train, test = place.opened()
    first = next(iter(METHODS))
    with np.load(place.predictions(first)) as stored:
        top = TopK(stored["indices"], stored["scores"])
    few = np.arange(min(len(test), 200))
    part = TopK(top.indices[few], top.scores[few])
    evaluate_ranking(part, test.labels[few], train.labels, ks=KS)  # loads the compiled kernels
    with place.clock.measured():
        bins = frequency_bins(train.label_counts())
        found = evaluate_ranking(top, test.labels, train.labels, ks=KS, bins=bins)
        found.save(place.folder / "instance.npz")
        frames = [found.frame()]
        for convention in CONVENTIONS:
            if convention != DEFAULT:
                other = evaluate_ranking(
                    top, test.labels, train.labels, ks=KS, convention=convention
                )
                frames.append(other.frame())
        values = pd.concat(frames, ignore_index=True)
    return {"documents": len(test), "values": len(values), "P@1": found.values()["P@1"]}


STAGES: dict[str, Callable[[Place], dict[str, Any]]] = {
    "write": write,
    "parse": parse,
    "prepare": prepare,
    "open": open_data,
    "DiSMEC shard": dismec_shard,
    **{f"{name} fit": fit_tree(name) for name in METHODS},
    **{f"{name} predict": predict_tree(name) for name in METHODS},
    "evaluate": evaluate,
}
"""In the order in which they need each other's files."""


def run_stage(stage: str, place: Place) -> str:
    """Do a stage in this process; its row as JSON."""
    numba.set_num_threads(min(place.threads, numba.config.NUMBA_NUM_THREADS))
    facts = STAGES[stage](place)
    clock = place.clock
    measured = {"seconds": clock.seconds, "cpu_s": clock.cpu_s, "peak_mb": clock.peak_mb}
    return json.dumps({**measured, **facts})
