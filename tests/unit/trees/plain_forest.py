"""The weights of a search index as one plain matrix per node, read entry by entry."""

from __future__ import annotations

import numpy as np

from methods.trees.search_index import DENSE_CODE, Blocks, SearchIndex


def block_matrix(blocks: Blocks, b: int, n_columns: int, n_used: int) -> np.ndarray:
    """The weights of a block, float32[n_used, n_columns]."""
    width, unit = int(blocks.width[b]), 1 << int(blocks.shift[b])
    dense = blocks.dense[blocks.dense_start[b] : blocks.dense_stop[b]].reshape(-1, max(width, 1))
    weights = blocks.weights[blocks.entry_start[b] : blocks.entry_stop[b]]
    places = blocks.places[blocks.entry_start[b] : blocks.entry_stop[b]]
    out = np.zeros((n_used, n_columns), np.float32)
    n_dense = 1 if width == 2 else 0
    at = 0
    for r in range(blocks.row_start[b], blocks.row_stop[b]):
        length = int(blocks.lengths[r])
        if length == DENSE_CODE:
            out[blocks.features[r]] = dense[n_dense, :n_columns]
            assert not dense[n_dense, n_columns:].any()
            n_dense += 1
        else:
            out[blocks.features[r], places[at : at + length]] = weights[at : at + length]
            at += -(-length // unit) * unit
    assert (n_dense, at) == (len(dense), len(weights))
    return out


def node_matrices(index: SearchIndex) -> list[np.ndarray]:
    """The weights of each node, float32[n_features + 1, targets], by the features' own numbers."""
    n_targets = np.diff(index.target_indptr)
    used = np.flatnonzero(index.number >= 0)
    found = []
    for v, n in enumerate(n_targets):
        start = int(index.head_start[v])
        if start < 0:
            own = block_matrix(index.nodes, v, n, index.n_used)
        else:
            head = block_matrix(index.head, 0, int(index.head.width[0]), index.n_used)
            own = head[:, start : start + n]
        matrix = np.zeros((len(index.number), n), np.float32)
        matrix[used] = own[index.number[used]]
        found.append(matrix)
    return found
