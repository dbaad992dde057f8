"""The law of cost of one-vs-rest classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from methods.cost import Cost, Term, trained_label_count, words_per_document

# One core's seconds per label, and per label and non-zero of X: round figures for what
# ``python -m benchmarks.speed linear`` shows on EURLex-4K-half and EURLex-4.3K.
LABEL_SECONDS = 3e-4
NONZERO_SECONDS = 2e-9
SCORE_SECONDS = 2e-10  # per label and non-zero of the test documents


def one_vs_rest_cost(meta: Mapping[str, Any], extra_mb: float, slower: float = 1.0) -> Cost | None:
    """The law of one classifier per label, ``slower`` times slower than ours.

    ``extra_mb`` is held beside the data and the model.
    """
    if not meta.get("n_features"):
        return None
    labels, words = trained_label_count(meta), words_per_document(meta)
    nonzeros = meta["n_train"] * words
    model_mb = labels * min(meta["n_features"], 5000) * 8 / 2**20
    terms = {
        "label": Term(labels, slower * LABEL_SECONDS),
        "nonzero": Term(labels * nonzeros, slower * NONZERO_SECONDS),
        "score": Term(labels * meta.get("n_test", 0) * words, SCORE_SECONDS),
    }
    return Cost(terms, nonzeros * 16 / 2**20 + extra_mb + 2 * model_mb)
