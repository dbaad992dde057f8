"""TopK against a plain sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from benchmarks.evaluation.topk import TopK

# Few distinct values, so that ties are common.
scores = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=7),
    elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]),
)


def plain_top(row, k):
    ranked = sorted((-s, i) for i, s in enumerate(row) if s != -np.inf)[:k]
    indices = [i for _, i in ranked]
    return indices + [-1] * (k - len(indices))


@given(scores, st.integers(1, 9))
def test_from_dense_equals_a_plain_sort(dense, k):
    top = TopK.from_dense(dense, k)
    assert top.indices.tolist() == [plain_top(row, k) for row in dense.tolist()]
    assert top.fault(len(dense), dense.shape[1]) is None


@given(scores, st.integers(1, 9))
def test_from_sparse_ranks_the_stored_entries(dense, k):
    stored = np.isfinite(dense)
    rows, columns = np.nonzero(stored)
    matrix = sparse.csr_matrix((dense[stored], (rows, columns)), shape=dense.shape)
    top = TopK.from_sparse(matrix, k)
    assert top.indices.tolist() == TopK.from_dense(dense, k).indices.tolist()
    assert (top.scores == TopK.from_dense(dense, k).scores).all()


@given(scores)
def test_to_sparse_gives_the_scores_back(dense):
    top = TopK.from_dense(dense, dense.shape[1])
    back = top.to_sparse(dense.shape[1]).toarray()
    assert (back == np.where(np.isfinite(dense), dense, 0)).all()


@pytest.mark.parametrize(
    ("indices", "values", "fault"),
    [
        ([[0, 1]], [[2.0, 1.0]], None),
        ([[0, 5]], [[2.0, 1.0]], "outside"),
        ([[0, -2]], [[2.0, 1.0]], "outside"),
        ([[0, 1]], [[1.0, 2.0]], "sorted"),
        ([[1, 1]], [[2.0, 1.0]], "twice"),
        ([[-1, 1]], [[-np.inf, 1.0]], "padding"),
        ([[0, 1]], [[np.nan, 1.0]], "not a number"),
        ([[0, 1], [1, 2]], [[2.0, 1.0], [2.0, 1.0]], "2 rows"),
    ],
)
def test_fault_finds_what_is_wrong(indices, values, fault):
    found = TopK(np.array(indices, np.int32), np.array(values, np.float32)).fault(1, 5)
    assert (found is None) if fault is None else (fault in found)
