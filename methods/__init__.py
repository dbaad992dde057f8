"""What is run: base learners and the variants that change them, behind one protocol."""

from benchmarks.evaluation.topk import TopK
from methods.hooks.loss_weights import LabelWeights
from methods.interface import Method, Model, Variant
from methods.registry import get

__all__ = ["LabelWeights", "Method", "Model", "TopK", "Variant", "get"]
