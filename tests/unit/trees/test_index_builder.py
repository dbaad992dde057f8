"""The search index: what nodes were given is what it holds, in whatever form and order."""

from __future__ import annotations

import io

import numpy as np
import pytest

from methods.trees import index_builder, search_index
from methods.trees.index_builder import IndexBuilder, Outline
from methods.trees.margins import block_margins, gather, workspace, write_codes
from methods.trees.node_solver import NodeWeights
from methods.trees.search_index import DENSE_CODE, LONGEST
from tests.unit.trees.plain_forest import block_matrix, node_matrices

pytestmark = pytest.mark.slow  # compiles kernels

N_FEATURES = 30
N_LABELS = 400


def outline() -> Outline:
    """Two trees: a root with three leaves, of 1, 2 and 397 labels, and a leaf of two labels."""
    targets = [[1, 2, 3], [7], [0, 5], [i for i in range(N_LABELS) if i not in (0, 5, 7)], [3, 4]]
    return Outline(
        n_labels=N_LABELS,
        roots=np.array([0, 4]),
        leaf=np.array([False, True, True, True, True]),
        target_indptr=np.cumsum([0, *map(len, targets)]),
        targets=np.concatenate(targets).astype(np.int32),
    )


def random_matrices(seed: int = 0) -> list[np.ndarray]:
    """Weights of the nodes: rows of every length, some empty, and a bias."""
    rng = np.random.default_rng(seed)
    found = []
    for n in np.diff(outline().target_indptr):
        share = np.append(rng.choice([0.0, 0.01, 0.05, 0.5, 0.9], N_FEATURES), 1.0)
        kept = rng.random((N_FEATURES + 1, n)) < share[:, None]
        matrix = np.where(kept, rng.normal(size=kept.shape), 0.0)
        found.append(matrix.astype(np.float32))
    return found


def weights_of(matrix: np.ndarray) -> NodeWeights:
    """A matrix as the solver returns it."""
    rows, targets = np.nonzero(matrix)
    features, lengths = np.unique(rows, return_counts=True)
    return NodeWeights(
        features.astype(np.int32),
        np.cumsum([0, *lengths]),
        targets.astype(np.int32),
        matrix[rows, targets],
    )


def built(matrices: list[np.ndarray], order: list[int] | None = None) -> IndexBuilder:
    builder = IndexBuilder(outline(), N_FEATURES, 1.0)
    for v in order or range(len(matrices)):
        builder.add(v, weights_of(matrices[v]))
    return builder


@pytest.mark.parametrize("head_nodes", [0, 32])
@pytest.mark.parametrize("numbers", [1 << 24, 64])  # with few numbers rows begin at multiples
def test_an_index_holds_the_weights_that_nodes_were_given(
    monkeypatch, head_nodes: int, numbers: int
) -> None:
    monkeypatch.setattr(search_index, "HEAD_NODES", head_nodes)
    matrices = random_matrices()
    monkeypatch.setattr(index_builder, "CODE_NUMBERS", numbers)
    monkeypatch.setattr(index_builder, "_sizes", index_builder._sizes.py_func)
    builder = built(matrices)
    index = builder.finish()
    assert (index.head_start >= 0).sum() == (1 if head_nodes else 0)
    assert (index.nodes.shift.max() > 0) == (numbers < 1 << 24)
    for found, given in zip(node_matrices(index), matrices, strict=True):
        np.testing.assert_array_equal(found, given)
    assert builder.n_weights == sum(np.count_nonzero(matrix) for matrix in matrices)
    lengths = index.nodes.lengths
    assert (lengths == DENSE_CODE).any()
    assert lengths[lengths < DENSE_CODE].max() <= LONGEST
    check_margins(index, matrices)


def check_margins(index: search_index.SearchIndex, matrices: list[np.ndarray]) -> None:
    """The margins of documents with every node outside the head, by matrix products."""
    rng = np.random.default_rng(1)
    X = rng.random((5, N_FEATURES)).astype(np.float32)
    indptr = np.arange(6) * N_FEATURES
    columns = np.tile(np.arange(N_FEATURES, dtype=np.int32), 5)
    ones = np.ones(5, np.float32)
    documents = gather(indptr, columns, X.ravel(), ones, 0, 5, index.number, index.bias)
    work = workspace(documents, int(index.nodes.width.max()))
    expected = [np.column_stack([X, ones]) @ matrix for matrix in matrices]
    for v in np.flatnonzero(index.head_start < 0):
        table = np.zeros(index.n_used, np.uint32)
        write_codes(table, index.nodes, v)
        block_margins(table, index.nodes, v, documents, np.arange(5), work)
        stride = int(index.nodes.width[v]) + search_index.GROUP
        found = work.margins[: 5 * stride].reshape(5, stride)[:, : expected[v].shape[1]]
        np.testing.assert_allclose(found, expected[v], rtol=1e-4, atol=1e-5)


def test_the_order_in_which_nodes_are_added_does_not_matter() -> None:
    matrices = random_matrices()
    one, two = built(matrices).finish(), built(matrices, [3, 0, 4, 2, 1]).finish()
    np.testing.assert_array_equal(one.number, two.number)
    np.testing.assert_array_equal(one.head_codes, two.head_codes)
    for a, b in zip(node_matrices(one), node_matrices(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_norms_are_those_of_the_leaves_columns_without_bias() -> None:
    matrices = random_matrices()
    shape = outline()
    norms: list[list[float]] = [[] for _ in range(N_LABELS)]
    for v in np.flatnonzero(shape.leaf):
        labels = shape.targets[shape.target_indptr[v] : shape.target_indptr[v + 1]]
        for label, column in zip(labels, matrices[v][:-1].T, strict=True):
            norms[label].append(float(np.linalg.norm(column.astype(np.float64))))
    found = built(matrices).label_norms()
    np.testing.assert_allclose(found, [np.mean(own) for own in norms], rtol=1e-6)


def test_features_are_numbered_by_falling_use() -> None:
    matrices = random_matrices()
    uses = sum((matrix != 0).any(axis=1).astype(int) for matrix in matrices)
    index = built(matrices).finish()
    np.testing.assert_array_equal(index.number >= 0, uses > 0)
    by_number = uses[np.argsort(index.number)][-index.n_used :]
    assert (np.diff(by_number) <= 0).all()


def test_places_are_wide_where_a_node_has_many_targets() -> None:
    n = (1 << 16) + 9
    shape = Outline(
        n_labels=n,
        roots=np.array([0]),
        leaf=np.array([True]),
        target_indptr=np.array([0, n]),
        targets=np.arange(n, dtype=np.int32),
    )
    matrix = np.zeros((N_FEATURES + 1, n), np.float32)
    matrix[3, [0, n - 1]] = 1.0, 2.0
    builder = IndexBuilder(shape, N_FEATURES, 1.0)
    builder.add(0, weights_of(matrix))
    index = builder.finish()
    assert index.nodes.places.dtype == np.int32
    found = block_matrix(index.nodes, 0, n, index.n_used)
    np.testing.assert_array_equal(found[index.number[3]], matrix[3])


def test_a_saved_index_is_the_same_when_loaded() -> None:
    index = built(random_matrices()).finish()
    file = io.BytesIO()
    search_index.save(index, file)
    file.seek(0)
    again = search_index.load(file)
    for name in index._fields:
        old, new = getattr(index, name), getattr(again, name)
        assert type(old) is type(new)
        for a, b in zip(old, new, strict=True) if isinstance(old, tuple) else [(old, new)]:
            np.testing.assert_array_equal(a, b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
