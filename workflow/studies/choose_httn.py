"""Choose what the HTTN paper leaves open, without looking at a test document.

``python -m workflow.studies.choose_httn`` holds documents out of Reuters-21578's train and fits
the rest with the settings of the paper's run (``benchmarks/papers/httn/config.yaml``). Two things
are tried, and of each the setting with the highest micro-F1 on the documents held out is kept, the
score by which the released code chooses its weights:

- The learning rate, by fits of Joint. Every method on its extractor takes the same, so that none
  has more of a choice than the baseline; ``--bases`` tries the rates on others too. XML-CNN is
  another network and keeps the rate of its recipe.
- The similarity of the attention, how the transfer learner is trained and how fast the classifier
  is fine-tuned, on one trained extractor of HTTN.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common.schema import load_yaml
from benchmarks.data import load
from benchmarks.data.prepare import ensure
from benchmarks.evaluation.metrics import evaluate
from benchmarks.papers.httn import rows
from methods import get
from methods.holdout import hold_out
from methods.interface import FitContext, Method, Model
from methods.text.httn import HTTN
from workflow.studies.held_out import Row, Study

CONFIG = Path(__file__).parents[2] / "benchmarks" / "papers" / "httn" / "config.yaml"
RATES = (0.002, 0.005, 0.01, 0.02)
AFTER: tuple[Row, ...] = tuple(
    {"similarity": similarity, "transfer": transfer, "ridge": ridge, "fine_tune_rate": rate}
    for similarity in ("inner product", "cosine")
    for transfer, ridge in (
        ("least-squares", 1e-6),
        ("least-squares", 0.01),
        ("least-squares", 1.0),
        ("adam", 1e-6),
    )
    for rate in (1e-4, 1e-3)
)
"""What comes after HTTN's extractor; the released code has the cosine, adam and 1e-4."""
CHOSEN_BY = "microF1"
METRICS = (CHOSEN_BY, "P@1", "P@3", "P@5", "nDCG@5")


class TextStudy(Study):
    """Fits of text methods with the settings of a run."""

    def settings(self, base: str, **changed: Any) -> Method:
        """A method as the paper's run has it, some settings changed."""
        defined = load_yaml(CONFIG)["define"]["bases"][f"{base}-glove"]
        return get(defined["extends"], **{**defined["params"], **changed})

    def context(self, method: Method) -> dict[str, Any]:
        """What a fit is given besides its documents."""
        resources = {name: ensure(name) for name in method.resources}
        return {"seed": self.seed, "threads": 1, "resources": resources}

    def scored(self, model: Model) -> Row:
        """Metrics over all labels, and the micro-F1 of the tail alone, in percent."""
        top = model.predict(self.kept_out.inputs, self.fitted.n_labels)
        measured = evaluate(
            top, self.kept_out.labels, self.fitted.labels, threshold=rows.THRESHOLD
        ).values()
        tail = rows.tail_labels(self.fitted)
        of_tail = rows.tail_evaluation(top, self.fitted, self.kept_out, tail).values()
        found = {metric: round(measured[metric], 3) for metric in METRICS}
        return {**found, "tail microF1": round(of_tail[CHOSEN_BY], 3)}


def try_rates(study: TextStudy, bases: Sequence[str]) -> None:
    """A fit for each method and rate."""
    for base in bases:
        for rate in RATES:
            method = study.settings(base, learning_rate=rate)
            fit = partial(method.fit, study.fitted, **study.context(method))
            study.measure(repr(method.params()), fit, study.scored, base=base, learning_rate=rate)


def try_transfer(study: TextStudy, rate: float) -> None:
    """The settings of ``AFTER`` on one extractor, trained with the rate."""
    first = study.settings("HTTN", learning_rate=rate)
    assert isinstance(first, HTTN)
    given = study.context(first)
    train, dev = hold_out(study.fitted, first.dev_size(study.fitted.meta), study.seed)
    context = FitContext(dev=dev, **given)
    trained = None
    for setting in AFTER:
        method = study.settings("HTTN", learning_rate=rate, **setting)
        assert isinstance(method, HTTN)
        trained = trained or first.trained_head(train, context)
        fit = partial(method.put_together, trained, train, context)
        named = {"base": "HTTN", "learning_rate": rate, **setting}
        study.measure(repr(method.params()), fit, study.scored, **named)


def best(frame: pd.DataFrame) -> pd.Series:
    """The row with the highest score; the first of equals."""
    return frame.loc[frame[CHOSEN_BY].idxmax()]


def main(argv: list[str]) -> int:
    """Run the study; print what was kept; write every fit."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.studies.choose_httn", description=__doc__
    )
    parser.add_argument("--dataset", default="Reuters-21578")
    parser.add_argument("--bases", nargs="+", default=["Joint"], help="to try the rates on")
    parser.add_argument("--held-out", type=int, default=2000, help="documents")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/speed/choose_httn.csv"))
    options = parser.parse_args(argv)
    train, _ = load(options.dataset)
    study = TextStudy(train, options.held_out, options.seed, options.out)
    try_rates(study, list(dict.fromkeys(["Joint", *options.bases])))
    frame = pd.DataFrame(study.rows)
    kept = {base: best(own)["learning_rate"] for base, own in frame.groupby("base", sort=False)}
    print("learning rates:", kept)
    try_transfer(study, kept["Joint"])
    frame = pd.DataFrame(study.rows)
    after = best(frame[frame["similarity"].notna()])
    print("after the extractor:", {name: after[name] for name in AFTER[0]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
