"""What each part of AttentionXML's recipe `matched` is worth, without looking at a test document.

``python -m workflow.studies.choose_attentionxml [--dataset EURLex-4K-half]`` holds documents out of
train, fits the rest by usual settings and with one thing changed, and scores all of them on the
documents held out, DiSMEC on the bags of words of the same documents beside them. A fit takes
minutes of one core; fits that are in the file already are not repeated.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.data import load
from benchmarks.data.prepare import ensure
from benchmarks.evaluation.metrics import score
from methods import get
from methods.interface import Method, Model
from workflow.studies.held_out import Row, Study

RECIPE = {"recipe": "matched", "word_vectors": "GloVe-6B-100d-subset"}
USUAL = {
    "max_length": 64,
    "hidden": 128,
    "head": (128,),
    "embedding_dropout": 0.3,
    "dropout": 0.2,
    "epochs": 10,
    "match": 1.0,
    "negatives": 1024,
}
VARIANT = "variant"
SMALLER = {"hidden": 64, "head": (64,)}
TRIED: dict[str, dict[str, Any]] = {
    "64 words, 128 units": {},
    "256 others a step": {"negatives": 256},
    "PW-cb": {VARIANT: "PW-cb"},
    "PW-cb, 256 others a step": {VARIANT: "PW-cb", "negatives": 256},
    "100 words": {"max_length": 100},
    "100 words, 64 units": {**SMALLER, "max_length": 100},
    "100 words, 64 units, dropout 0.1, 256 others": {
        **SMALLER,
        "max_length": 100,
        "embedding_dropout": 0.1,
        "dropout": 0.1,
        "negatives": 256,
    },
    "64 units, 15 epochs, 256 others": {**SMALLER, "epochs": 15, "negatives": 256},
    "the authors' head": {"match": 0.0},
}
"""What differs from the usual settings, or a variant with them. All are spelt out, so that a row
stays the same fit when the recipe changes."""
METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5")


class TextStudy(Study):
    """Fits of text methods, DiSMEC among them."""

    def row(self, name: str, method: Method) -> Row:
        """The scores of a method on the documents held out."""
        resources = {name: ensure(name) for name in method.resources}
        fit = partial(method.fit, self.fitted, seed=self.seed, threads=1, resources=resources)
        text = f"{method.name} {method.params()!r}"
        return self.measure(text, fit, self.scored, base=method.name, tried=name)

    def scored(self, model: Model) -> Row:
        """What a row says of a model."""
        top = model.predict(self.kept_out.inputs, 5)
        measured = score(top, self.kept_out.labels, self.fitted.labels)
        return {metric: round(measured[metric], 3) for metric in METRICS}


def main(argv: list[str]) -> int:
    """Fit, print, write every fit."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.studies.choose_attentionxml", description=__doc__
    )
    parser.add_argument("--dataset", default="EURLex-4K-half")
    parser.add_argument("--held-out", type=int, default=737, help="documents")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--tried", nargs="+", choices=TRIED, default=list(TRIED))
    parser.add_argument("--out", type=Path, default=Path("results/speed/choose_attentionxml.csv"))
    options = parser.parse_args(argv)
    train, _ = load(options.dataset)
    study = TextStudy(train, options.held_out, options.seed, options.out)
    study.row("", get("DiSMEC"))
    for name in options.tried:
        settings = {**RECIPE, **USUAL, **TRIED[name]}
        study.row(name, get("AttentionXML", settings.pop(VARIANT, None), **settings))
    frame = pd.DataFrame(study.rows)[["base", "tried", *METRICS, "cpu_s"]]
    print(frame.to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
