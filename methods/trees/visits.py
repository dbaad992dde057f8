"""All documents that stand before a node are served together, so that it is read once.

A visit is a query (a document in a tree) and a slot of its beam, which holds a node.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.trees.margins import WARM_DOCUMENTS, block_margins, spread_out, take_in, warm

NO_NODE = -1


@njit(cache=True, nogil=True)
def by_node(node, query, slot, n, n_nodes):  # type: ignore[no-untyped-def]
    """The order that puts the first n visits of the same node side by side."""
    starts = np.zeros(n_nodes + 1, np.int64)
    for i in range(n):
        starts[node[query[i], slot[i]] + 1] += 1
    for v in range(n_nodes):
        starts[v + 1] += starts[v]
    order = np.empty(n, np.int64)
    for i in range(n):
        v = node[query[i], slot[i]]
        order[starts[v]] = i
        starts[v] += 1
    return order


@njit(cache=True, nogil=True)
def batch_at(node, query, slot, order, at, n_trees, ids):  # type: ignore[no-untyped-def]
    """How many documents from a place of :func:`by_node`'s order on visit the same node: as many
    as ``ids``, which they are written into, has room for."""
    v = node[query[order[at]], slot[order[at]]]
    size = 0
    while size < len(ids) and at + size < len(order):
        q = query[order[at + size]]
        if node[q, slot[order[at + size]]] != v:
            break
        ids[size] = q // n_trees
        size += 1
    return size


@njit(cache=True, nogil=True)
def margins_at(nodes, v, last, documents, ids, table, work):  # type: ignore[no-untyped-def]
    """The margins of documents at node v, into ``work.margins``; returns v, the next ``last``.

    ``last`` is the node whose codes are in ``table``, NO_NODE at first.
    """
    if v != last:
        leave(nodes, last, table)
        spread_out(table, nodes, v)
        if len(ids) >= WARM_DOCUMENTS:
            warm(nodes, v, work)
    block_margins(table, nodes, v, documents, ids, work)
    return v


@njit(cache=True, nogil=True)
def leave(nodes, last, table):  # type: ignore[no-untyped-def]
    """Empty the table after the last call of :func:`margins_at`."""
    if last != NO_NODE:
        take_in(table, nodes, last)
