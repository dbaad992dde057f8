"""The public names of :mod:`benchmarks.evaluation.metrics`."""

from benchmarks.evaluation.metrics import Evaluation, evaluate, score

__all__ = ["Evaluation", "evaluate", "score"]
