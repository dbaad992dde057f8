"""Which cells are which rows of the HTTN paper, and predictions restricted to tail labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.split import Split
from benchmarks.evaluation.metrics import Evaluation, evaluate
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cell import PLAIN

METHODS = (
    *("Joint", "DXML", "XML-CNN", "OLTR", "Imprinting", "BBN", "LTMCP"),
    *("HTTN", "EHTTN"),
)
"""In the order of the paper's tables."""
SWEPT = ("S", "l_tail", "member")
"""Settings of the base that the paper varies."""
TAIL_SHARE = 1 / 3
"""The labels called tail here: the rarest third of those that occur, HTTN's default."""
THRESHOLD = 0.5

Settings = Mapping[str, Mapping[str, Any]]


def method_of(base: str) -> str | None:
    """The method of the paper that a base is, also by a name such as ``HTTN-glove``; or None."""
    fits = [method for method in METHODS if base == method or base.startswith(f"{method}-")]
    return max(fits, key=len, default=None)


def row_name(base: str, variant: str, settings: Settings) -> str | None:
    """The row of tables 2 to 4 that a cell is, ``HTTN, l_tail = 15``; None for other cells."""
    method = method_of(base)
    if method is None or variant == PLAIN:
        return method
    varied = {k: v for k, v in settings.get(variant, {}).items() if v is not None}
    return f"{method}, l_tail = {varied['l_tail']:g}" if list(varied) == ["l_tail"] else None


def only(setting: str, settings: Settings) -> dict[str, Any]:
    """The variants that change one setting and no other: {variant: its value}."""
    found = {}
    for variant, values in settings.items():
        varied = {k: v for k, v in values.items() if v is not None}
        if list(varied) == [setting]:
            found[variant] = varied[setting]
    return found


def tail_labels(train: Split) -> np.ndarray:
    """The rarest third of the labels that occur, most frequent first."""
    counts = train.label_counts()
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    return order[len(order) - round(TAIL_SHARE * len(order)) :]


def on_labels(top: TopK, labels: np.ndarray, n_labels: int) -> TopK:
    """The predictions of some labels alone, renumbered in their order."""
    return TopK.from_sparse(sparse.csr_matrix(top.to_sparse(n_labels)[:, labels]), len(labels))


def tail_evaluation(top: TopK, train: Split, test: Split, tail: np.ndarray) -> Evaluation:
    """Everything that is measured, over tail labels alone."""
    part = on_labels(top, tail, train.n_labels)
    return evaluate(part, test.labels[:, tail], train.labels[:, tail], threshold=THRESHOLD)


def tail_ranking(top: TopK, train: Split, test: Split, tail: np.ndarray) -> Evaluation:
    """How the tail labels of a document are ranked among all tail labels, whatever a threshold
    would make of them, over the documents that carry one."""
    true = test.labels[:, tail]
    rows = np.flatnonzero(np.diff(true.indptr))
    part = on_labels(top, tail, train.n_labels)
    ranked = TopK(part.indices[rows], part.scores[rows])
    return evaluate(ranked, true[rows], train.labels[:, tail])


def f1_by_label(top: TopK, test: Split, labels: np.ndarray) -> np.ndarray:
    """F1 in percent of each label at the threshold; NaN where it is neither true nor predicted."""
    part = on_labels(top, labels, test.n_labels)
    predicted = part.to_sparse(len(labels)).toarray() > THRESHOLD
    true = test.labels[:, labels].toarray() > 0
    both, sizes = (predicted & true).sum(axis=0), predicted.sum(axis=0) + true.sum(axis=0)
    return 200.0 * np.divide(both, sizes, out=np.full(len(labels), np.nan), where=sizes > 0)
