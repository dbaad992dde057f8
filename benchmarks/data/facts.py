"""Counts of a dataset: what a card demands and what ``meta.json`` reports."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split


def count(train: Split, test: Split, extra: Mapping[str, Split] | None = None) -> dict[str, Any]:
    """Every fact of a prepared dataset, by the names a card uses."""
    in_train, in_test = train.label_counts(), test.label_counts()
    bow = train.inputs.bow
    facts: dict[str, Any] = {
        "n_train": len(train),
        "n_test": len(test),
        **{f"n_{name}": len(split) for name, split in (extra or {}).items()},
        "n_features": None if bow is None else int(bow.shape[1]),
        "n_labels": train.n_labels,
        "train_rows_without_labels": _empty_rows(train.labels),
        "test_rows_without_labels": _empty_rows(test.labels),
        "train_rows_without_features": None if bow is None else _empty_rows(bow),
        "test_rows_without_features": None
        if test.inputs.bow is None
        else _empty_rows(test.inputs.bow),
        "labels_in_train": int((in_train > 0).sum()),
        "labels_only_in_test": int(((in_train == 0) & (in_test > 0)).sum()),
        "labels_not_in_train": int((in_train == 0).sum()),
        "least_label_count": int(in_train[in_train > 0].min()) if in_train.any() else 0,
        "labels_50_or_more": int((in_train >= 50).sum()),
        "labels_1_to_49": int(((in_train >= 1) & (in_train < 50)).sum()),
        "labels_1_to_10": int(((in_train >= 1) & (in_train <= 10)).sum()),
        **label_averages(train.labels, test.labels),
        "features_per_train_document": None if bow is None else float(bow.nnz / max(1, len(train))),
    }
    if train.inputs.tokens is not None and test.inputs.tokens is not None:
        facts["tokens_per_document"] = _mean_length(train.inputs.tokens.indptr)
        facts["tokens_per_test_document"] = _mean_length(test.inputs.tokens.indptr)
        facts["n_words"] = len(train.inputs.tokens.vocabulary)
    facts["duplicates"] = duplicates(train.inputs, test.inputs)
    return facts


def label_averages(train: sparse.csr_matrix, test: sparse.csr_matrix) -> dict[str, float]:
    """Labels per document, documents per label; papers count train, or train and test."""
    n_train, n_labels = max(1, train.shape[0]), max(1, train.shape[1])
    return {
        "labels_per_document": float(train.nnz / n_train),
        "documents_per_label": float(train.nnz / n_labels),
        "documents_per_label_with_test": float((train.nnz + test.nnz) / n_labels),
    }


def disagreements(facts: Mapping[str, Any], wanted: Mapping[str, int]) -> list[str]:
    """Where the counts are not what the card says they must be."""
    return [
        f"{key} is {facts.get(key)} instead of {value}"
        for key, value in wanted.items()
        if facts.get(key) != value
    ]


def duplicates(train: Inputs, test: Inputs) -> dict[str, int]:
    """Documents that occurred before: within train, within test, and in test as in train.

    Documents are equal if their texts are; without texts, if all their features are; without
    features, if their tokens are.
    """
    seen = list(_digests(train))
    of_test = list(_digests(test))
    known = set(seen)
    return {
        "train": len(seen) - len(known),
        "test": len(of_test) - len(set(of_test)),
        "train_test": sum(digest in known for digest in of_test),
    }


def _digests(inputs: Inputs) -> Iterable[bytes]:
    if inputs.texts is not None:
        for text in inputs.texts:
            yield hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()
    elif inputs.bow is not None:
        bow = inputs.bow
        for start, end in zip(bow.indptr[:-1], bow.indptr[1:], strict=True):
            digest = hashlib.blake2b(bow.indices[start:end].tobytes(), digest_size=16)
            digest.update(bow.data[start:end].tobytes())
            yield digest.digest()
    elif inputs.tokens is not None:
        for ids in inputs.tokens:
            yield hashlib.blake2b(ids.tobytes(), digest_size=16).digest()


def _empty_rows(matrix: sparse.csr_matrix) -> int:
    return int((np.diff(matrix.indptr) == 0).sum())


def _mean_length(indptr: np.ndarray) -> float:
    return float(np.diff(indptr).mean()) if len(indptr) > 1 else 0.0
