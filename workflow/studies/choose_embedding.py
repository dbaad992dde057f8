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
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.evaluation.metrics import score
from methods import get
from methods.interface import Method, Model
from workflow.studies.held_out import Row, Study

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


class EmbeddingStudy(Study):
    """Fits of the embedding model, judged by the mean of P@1, 3, 5."""

    threads: int = 1

    def mean(self, method: Method, **named: Any) -> float:
        """The mean of P@1, 3, 5 on the documents held out."""
        text = method.variant + " " + repr(method.params())

        def fit() -> Model:
            return method.fit(self.fitted, seed=self.seed, threads=self.threads)

        return float(self.measure(text, fit, self.scored, **named)["P"])

    def scored(self, model: Model) -> Row:
        """What a row says of a model."""
        top = model.predict(self.kept_out.inputs, 5)
        measured = score(top, self.kept_out.labels, self.fitted.labels)
        found = {metric: round(measured[metric], 3) for metric in METRICS}
        mean = round(float(np.mean([measured[m] for m in METRICS[:3]])), 3)
        return {"P": mean, **found, "train_P@1": round(model.fit_history["train_P@1"][-1], 3)}


def best_setting(study: EmbeddingStudy, fixed: Setting) -> Setting:
    """Go through the axes; the setting that was kept."""
    kept = dict(FIRST)
    for axis in AXES:
        means = []
        for values in axis:
            setting = {**kept, **values}
            means.append(study.mean(get("Embedding", **fixed, **setting), **setting))
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
    study = EmbeddingStudy(train, options.held_out, options.seed, options.out)
    study.threads = options.threads
    fixed = {"dim": options.dim, "epochs": options.epochs, "keep": 0.8, "negatives": 0}
    kept = best_setting(study, fixed)
    print("kept:", kept)
    for name in REGULARISERS:
        means = {
            weight: study.mean(
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
