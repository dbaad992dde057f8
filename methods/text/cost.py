"""Multiply-adds of the deep text models, from which their laws of cost are made.

All are of one document and one forward pass; a training step takes three times as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MULTIPLY_ADDS_PER_S = 4e10
"""A round figure for one core in torch's products of matrices."""
TURN_SECONDS = 1e-5
"""Of an LSTM beside its products, per word of a piece of a batch: it waits for the one before."""
VECTOR_SECONDS = 1.5e-8
"""Per number of the word vectors that a document trains: sparse gradients, and Adam on them."""
STEP_SECONDS = 5e-3
"""Of a training step beside its products: batches, the optimiser, calls."""
TUNING_STEP_SECONDS = 3e-4
"""Of a training step of one layer alone, on vectors that are there already."""
FORWARD_AND_BACKWARD = 3
ASSUMED_TOKENS = 200.0
"""Per document, where the data do not say."""
ENCODERS = {"all-MiniLM-L6-v2": (384, 6)}
"""Width and layers of pretrained encoders; those that are not here are of RoBERTa-base's size."""
BASE_SIZE = (768, 12)


def tokens_read(meta: Mapping[str, Any], max_length: int) -> float:
    """Tokens per document that a model reads."""
    return min(float(meta.get("tokens_per_document") or ASSUMED_TOKENS), float(max_length))


def bilstm(tokens: float, width: int, hidden: int) -> float:
    """Two directions of four gates."""
    return tokens * 2 * 4 * hidden * (width + hidden)


def transformer(tokens: float, encoder: str, layers: int | None) -> float:
    """Projections and the two layers behind them, and attention between all tokens."""
    width, depth = ENCODERS.get(encoder, BASE_SIZE)
    return tokens * min(layers or depth, depth) * (12 * width**2 + 2 * tokens * width)


def encoder_width(encoder: str) -> int:
    """Numbers per token that an encoder gives."""
    return ENCODERS.get(encoder, BASE_SIZE)[0]


def label_attention(tokens: float, labels: float, width: int, head: Sequence[int]) -> float:
    """Attention of every label to every token, and the head on each label's context."""
    layers = sum(a * b for a, b in pairwise([width, *head, 1]))
    return labels * (2 * tokens * width + layers)
