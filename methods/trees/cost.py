"""The law of cost of label trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from methods.cost import Cost, Term, labels_per_document, trained_label_count, words_per_document

# One core's seconds: round figures before any run.
NODE_SECONDS = 1.5e-9  # per document at a node, its words and the node's children
VISIT_SECONDS = 3e-8  # per document at a node and the node's children, however many words it has
CLUSTER_SECONDS = 3e-9  # per non-zero of the labels' centroids and centre
SEARCH_SECONDS = 3e-9  # per test document, its words and the children of the beam's nodes
WEIGHTS_PER_LABEL, BYTES_PER_WEIGHT = 500.0, 10.0  # round figures, too

Levels = Sequence[tuple[float, float]]
"""Of each level from the root on: how many nodes there are, and children of each."""


def halved(n_labels: int, max_leaf: int) -> Levels:
    """Halves down to the leaves, whose children are labels."""
    depth = max(0, math.ceil(math.log2(max(1.0, n_labels / max(max_leaf, 1)))))
    return [*((2.0**level, 2.0) for level in range(depth)), (2.0**depth, n_labels / 2**depth)]


def clustered(n_labels: int, n_children: int, depth: int) -> Levels:
    """Clusterings while nodes have more labels than children are allowed."""
    found, nodes = [], 1.0
    for _ in range(depth - 1):
        if n_labels / nodes <= n_children:
            break
        found.append((nodes, float(n_children)))
        nodes *= n_children
    return [*found, (nodes, n_labels / nodes)]


def label_tree_cost(
    meta: Mapping[str, Any], levels: Levels, n_trees: int, beam: int
) -> Cost | None:
    """A document is trained on at each node that has one of its labels, for all children."""
    if not meta.get("n_features"):
        return None
    labels, words, own = (
        trained_label_count(meta),
        words_per_document(meta),
        labels_per_document(meta),
    )
    reached = sum(min(own, nodes) * children for nodes, children in levels)
    searched = sum(min(beam, nodes) * children for nodes, children in levels)
    centroids = min(meta["n_train"] * own * words, labels * meta["n_features"])
    centres = sum(children for _, children in levels[:-1])
    seen, asked = meta["n_train"] * words, meta.get("n_test", 0) * words
    terms = {
        "node": Term(n_trees * seen * reached, NODE_SECONDS),
        "visit": Term(n_trees * meta["n_train"] * reached, VISIT_SECONDS),
        "cluster": Term(n_trees * centroids * centres, CLUSTER_SECONDS),
        "search": Term(n_trees * asked * searched, SEARCH_SECONDS),
    }
    weights = n_trees * labels * min(WEIGHTS_PER_LABEL, own * words)
    held = 16 * seen + 8 * centroids + BYTES_PER_WEIGHT * weights
    return Cost(terms, 150 + held / 2**20)
