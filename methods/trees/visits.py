"""Documents are grouped by the node they visit, so that its weights are read once.

A visit is a query (a document in a tree) and a slot of its beam, which holds a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from methods.trees.margins import (
    BATCH,
    WARM_DOCUMENTS,
    block_margins,
    clear_codes,
    warm,
    write_codes,
)

NO_NODE = -1


class Visits(NamedTuple):
    """Visits in the order of their nodes."""

    node: np.ndarray  # int64
    query: np.ndarray  # int64
    slot: np.ndarray  # int64
    n_trees: int
    ids: np.ndarray  # int64[BATCH]: the documents that :func:`next_margins` served


@njit(cache=True, nogil=True)
def by_node(node, query, slot, n, n_nodes, n_trees):  # type: ignore[no-untyped-def]
    """The first n pairs of query and slot, those of the same node side by side."""
    starts = np.zeros(n_nodes + 1, np.int64)
    for i in range(n):
        starts[node[query[i], slot[i]] + 1] += 1
    for v in range(n_nodes):
        starts[v + 1] += starts[v]
    visits = Visits(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        n_trees,
        np.empty(BATCH, np.int64),
    )
    for i in range(n):
        v = node[query[i], slot[i]]
        visits.node[starts[v]] = v
        visits.query[starts[v]] = query[i]
        visits.slot[starts[v]] = slot[i]
        starts[v] += 1
    return visits


@njit(cache=True, nogil=True)
def next_margins(visits, at, last, nodes, documents, table, work):  # type: ignore[no-untyped-def]
    """The margins of the documents that visit the node at a place, into ``work.margins``.

    Returns the node and how many documents they are, BATCH at most. ``last`` is the node whose
    codes are in ``table``: NO_NODE at first, then what the call before returned.
    """
    v = visits.node[at]
    size = 0
    while size < BATCH and at + size < len(visits.node) and visits.node[at + size] == v:
        visits.ids[size] = visits.query[at + size] // visits.n_trees
        size += 1
    if v != last:
        leave(nodes, last, table)
        write_codes(table, nodes, v)
        if size >= WARM_DOCUMENTS:
            warm(nodes, v, work)
    block_margins(table, nodes, v, documents, visits.ids[:size], work)
    return v, size


@njit(cache=True, nogil=True)
def leave(nodes, last, table):  # type: ignore[no-untyped-def]
    """Empty the table after the last call of :func:`next_margins`."""
    if last != NO_NODE:
        clear_codes(table, nodes, last)
