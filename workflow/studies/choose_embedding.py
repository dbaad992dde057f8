"""Choose what the GLaS paper leaves open, without looking at a test document.

``python -m workflow.studies.choose_embedding [--dataset EURLex-4K]`` holds 2,000 documents out of
train and fits the rest. From a first setting of the embedding model without a regulariser it goes
through the axes of ``AXES`` in turn, tries every value with the others as they are, and keeps the
one with the highest mean of P@1, 3, 5 on the documents held out. Each regulariser then gets its
weight in the same way, the model's setting being fixed: none is chosen with another's in view.
Dimension, input dropout and epochs are the paper's (1024, 0.8, 10) in the runs; here the dimension
and the epochs are smaller, to try more.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.data import load
from benchmarks.data.split import Split
from benchmarks.evaluation.metrics import score
from methods import get
from methods.holdout import hold_out
from methods.interface import Method

Setting = dict[str, Any]

FIRST: Setting = {
    "margin": 0.4,
    "mined": 10,
    "rate": 0.03,
    "batch": 256,
    "unit": True,
    "weight_norm": False,
    "activation": "relu",
    "hidden": 0,
    "loss": "margin",
    "length": 1.0,
}
AXES: list[list[Setting]] = [
    [{"margin": 0.1}, {"margin": 0.2}, {"margin": 0.4}],
    [{"mined": 3}, {"mined": 10}, {"mined": 30}],
    [{"rate": 0.01}, {"rate": 0.03}, {"rate": 0.1}],
    [
        {"unit": True, "weight_norm": False},
        {"unit": True, "weight_norm": True},
        {"unit": False, "weight_norm": True},
    ],
    [{"activation": "relu"}, {"activation": "linear"}, {"activation": "relu", "hidden": 256}],
    [{"batch": 256}, {"batch": 1024}],
    [
        {"loss": "margin"},
        {"loss": "softmax", "length": 10.0, "weight_norm": True},
        {"loss": "softmax", "length": 20.0, "weight_norm": True},
    ],
]
REGULARISERS = ("GLaS", "spread-out", "gravity", "Laplacian")
WEIGHTS = (1.0, 10.0, 100.0, 1000.0)
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


class Study:
    """Fits on one part of train, scored on the other; one row per fit.

    The rows are written to ``out`` after each fit; those that are there already are not repeated.
    """

    def __init__(self, train: Split, held_out: int, seed: int, threads: int, out: Path) -> None:
        self.fitted, self.kept_out = hold_out(train, held_out, seed)
        self.seed, self.threads, self.out = seed, threads, out
        self.rows = pd.read_csv(out).to_dict("records") if out.exists() else []

    def measure(self, method: Method, **named: Any) -> float:
        """The mean of P@1, 3, 5 on the documents held out."""
        text = method.variant + " " + repr(method.params())
        for row in self.rows:
            if row["method"] == text:
                return float(row["P"])
        started = time.process_time()
        model = method.fit(self.fitted, seed=self.seed, threads=self.threads)
        top = model.predict(self.kept_out.inputs, 5)
        measured = score(top, self.kept_out.labels, self.fitted.labels)
        found = {metric: round(measured[metric], 3) for metric in METRICS}
        mean = round(float(np.mean([measured[m] for m in METRICS[:3]])), 3)
        train = round(model.fit_history["train_P@1"][-1], 3)
        seconds = round(time.process_time() - started, 1)
        last = {"train_P@1": train, "cpu_s": seconds, "method": text}
        self.rows.append({**named, "P": mean, **found, **last})
        print({k: v for k, v in self.rows[-1].items() if k != "method"}, flush=True)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(self.out) as temporary:
            pd.DataFrame(self.rows).to_csv(temporary, index=False)
        return mean


def best_setting(study: Study, fixed: Setting) -> Setting:
    """Go through the axes; the setting that was kept."""
    kept = dict(FIRST)
    for axis in AXES:
        means = []
        for values in axis:
            setting = {**kept, **values}
            means.append(study.measure(get("Embedding", **fixed, **setting), **setting))
        kept |= axis[int(np.argmax(means))]
    return kept


def main(argv: list[str]) -> int:
    """Run the study; print what was kept; write every fit."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.studies.choose_embedding", description=__doc__
    )
    parser.add_argument("--dataset", default="EURLex-4K")
    parser.add_argument("--held-out", type=int, default=2000, help="documents")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/speed/choose_embedding.csv"))
    options = parser.parse_args(argv)
    train, _ = load(options.dataset)
    study = Study(train, options.held_out, options.seed, options.threads, options.out)
    fixed = {"dim": options.dim, "epochs": options.epochs, "keep": 0.8, "negatives": 0}
    kept = best_setting(study, fixed)
    print("kept:", kept)
    for name in REGULARISERS:
        means = {
            weight: study.measure(
                get("Embedding", name, variant_params={"weight": weight}, **fixed, **kept),
                **kept,
                variant=name,
                weight=weight,
            )
            for weight in WEIGHTS
        }
        print(f"{name}: weight {max(means, key=lambda weight: means[weight])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
