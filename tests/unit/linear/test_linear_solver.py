"""The one-vs-rest solver against liblinear, and identities that hold whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import LinearSVC

from methods.linear import layout
from methods.linear.direction import drop_negligible
from methods.linear.kernels import add_columns, block_product, pack_columns
from methods.linear.solver import Solution, objective, solve


def random_problem(
    seed: int, n: int = 120, columns: int = 60, n_labels: int = 12
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Sparse rows of unit length; the odd zero row; labels that depend on the features."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, columns, density=0.15, random_state=rng, dtype=np.float64, format="csr")
    lengths = np.asarray(np.sqrt(X.multiply(X).sum(axis=1))).ravel()
    lengths[lengths == 0] = 1
    X = sparse.csr_matrix(sparse.diags(1 / lengths) @ X).astype(np.float32)
    logits = X @ rng.standard_normal((columns, n_labels)) - rng.uniform(0.2, 1.2, n_labels)
    Y = sparse.csr_matrix((logits + 0.3 * rng.standard_normal(logits.shape) > 0).astype(np.float32))
    return X, Y


def liblinear_objective(
    X: sparse.csr_matrix,
    positives: np.ndarray,
    positive_weight: float = 1.0,
    negative_weight: float = 1.0,
    cost: float = 1.0,
) -> float:
    """The optimum by LinearSVC; its intercept is a regularised feature, as ours."""
    model = LinearSVC(
        C=cost,
        tol=1e-8,
        dual=True,
        max_iter=1_000_000,
        intercept_scaling=1.0,
        class_weight={1: positive_weight, 0: negative_weight},
        random_state=0,
    ).fit(X.astype(np.float64), positives.astype(int))
    w = np.append(model.coef_[0], model.intercept_[0])
    scores = X @ w[:-1] + w[-1]
    slack = np.maximum(0, 1 - np.where(positives, 1, -1) * scores)
    weights = np.where(positives, positive_weight, negative_weight)
    return float(0.5 * w @ w + cost * (weights * slack**2).sum())


@pytest.fixture
def small_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes small problems wide: some columns hot, directions found on a few candidates."""
    monkeypatch.setattr(layout, "WIDE_COLUMNS", 10)
    monkeypatch.setattr(layout, "WIDE_ROWS", 10)
    monkeypatch.setattr(layout, "HOT_COLUMNS", 16)
    monkeypatch.setattr(layout, "CANDIDATES", 40)


def same(a: Solution, b: Solution) -> bool:
    return (
        np.array_equal(a.weights.indptr, b.weights.indptr)
        and np.array_equal(a.weights.indices, b.weights.indices)
        and np.array_equal(a.weights.data.view(np.uint32), b.weights.data.view(np.uint32))
        and np.array_equal(a.report, b.report)
    )


@pytest.mark.parametrize("cost", [0.3, 1.0, 10.0])
def test_reaches_the_optimum_of_liblinear(cost: float) -> None:
    X, Y = random_problem(1)
    rng = np.random.default_rng(2)
    positive, negative = rng.uniform(0.5, 15, Y.shape[1]), rng.uniform(0.5, 3, Y.shape[1])
    given = {"cost": cost, "positive_weight": positive, "negative_weight": negative}
    for tol, allowed in ((1e-3, 1e-3), (1e-7, 1e-6)):
        solution = solve(X, Y, tol=tol, **given)
        reached = objective(X, Y, solution.weights, **given)
        np.testing.assert_allclose(solution.objective, reached, rtol=1e-5)
        for label in range(Y.shape[1]):
            true = Y[:, [label]].toarray().ravel() > 0
            best = liblinear_objective(X, true, positive[label], negative[label], cost)
            assert reached[label] <= best * (1 + allowed), f"label {label} at tol {tol}"


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-3])
def test_the_gap_reported_is_never_below_the_true_one(tol: float) -> None:
    X, Y = random_problem(11, n_labels=40)
    weight = np.random.default_rng(12).uniform(0.5, 20, 40)
    best = solve(X, Y, positive_weight=weight, tol=1e-9).objective
    rough = solve(X, Y, positive_weight=weight, tol=tol)
    true_gap = (objective(X, Y, rough.weights, positive_weight=weight) - best) / rough.objective
    assert (true_gap <= rough.gap + 1e-6).all()
    assert (rough.gap <= tol).all()
    # The bound is of use: not far above the truth where there is a gap to speak of.
    wide = true_gap > 1e-5
    assert np.median(rough.gap[wide] / true_gap[wide]) < 20


@pytest.mark.parametrize("wide", [False, True])
def test_labels_with_no_one_and_all_positives(wide: bool, request: pytest.FixtureRequest) -> None:
    if wide:
        request.getfixturevalue("small_layout")
    X, _ = random_problem(3)
    n = X.shape[0]
    Y = np.zeros((n, 3), np.float32)
    Y[17, 1] = 1
    Y[:, 2] = 1
    solution = solve(X, sparse.csr_matrix(Y), tol=1e-7)
    assert solution.gap.max() <= 1e-7
    one = liblinear_objective(X, Y[:, 1] > 0)
    assert solution.objective[1] == pytest.approx(one, rel=1e-6)
    # liblinear wants two classes; the all-negative and all-positive problems mirror each other.
    np.testing.assert_allclose(
        solution.weights[0].toarray(), -solution.weights[2].toarray(), atol=1e-5
    )
    # An optimum satisfies w = sum_i 2 c_i slack_i y_i x_i.
    w = solution.weights[0].toarray().ravel().astype(np.float64)
    slack = np.maximum(0, 1 + X @ w[:-1] + w[-1])
    np.testing.assert_allclose(w[:-1], -2 * (X.T @ slack), atol=1e-3)
    assert w[-1] == pytest.approx(-2 * slack.sum(), abs=1e-3)


@pytest.mark.parametrize("wide", [False, True])
def test_zero_rows_and_duplicated_rows(wide: bool, request: pytest.FixtureRequest) -> None:
    if wide:
        request.getfixturevalue("small_layout")
    X, Y = random_problem(4)
    X = X.tolil()
    X[5] = 0
    X[6] = 0
    X = sparse.csr_matrix(sparse.vstack([X, X[:30]]), dtype=np.float32)
    Y = sparse.csr_matrix(sparse.vstack([Y, Y[:30]]))
    solution = solve(X, Y, tol=1e-7)
    for label in range(Y.shape[1]):
        true = Y[:, [label]].toarray().ravel() > 0
        assert solution.objective[label] == pytest.approx(liblinear_objective(X, true), rel=1e-6)


def test_weight_two_equals_the_rows_twice() -> None:
    X, Y = random_problem(5, n_labels=4)
    for label in range(4):
        y = Y[:, [label]]
        positive = np.flatnonzero(y.toarray().ravel())
        weighted = solve(X, y, positive_weight=np.array([2.0]), tol=1e-9)
        doubled = solve(
            sparse.csr_matrix(sparse.vstack([X, X[positive]])),
            sparse.csr_matrix(sparse.vstack([y, y[positive]])),
            tol=1e-9,
        )
        assert weighted.objective[0] == pytest.approx(doubled.objective[0], rel=1e-6)
        np.testing.assert_allclose(weighted.weights.toarray(), doubled.weights.toarray(), atol=1e-3)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_labels=st.integers(1, 90),
    cut=st.floats(0, 1),
    memory_mb=st.floats(0.001, 1),
)
def test_same_bits_however_the_work_is_divided(
    seed: int, n_labels: int, cut: float, memory_mb: float
) -> None:
    X, Y = random_problem(seed, n=50, columns=30, n_labels=n_labels)
    whole = solve(X, Y, threads=1)
    assert same(whole, solve(X, Y, threads=2))
    assert same(whole, solve(X, Y, threads=2, memory_mb=memory_mb))
    order = np.random.default_rng(seed).permutation(n_labels)
    part = order[: max(1, int(cut * n_labels))]
    some = solve(X, Y, labels=part)
    np.testing.assert_array_equal(some.weights.toarray(), whole.weights[part].toarray())
    np.testing.assert_array_equal(some.report, whole.report[part])


def test_without_bias() -> None:
    X, Y = random_problem(8)
    solution = solve(X, Y, bias=False, tol=1e-7)
    assert not solution.weights[:, -1].toarray().any()
    true = Y[:, [0]].toarray().ravel() > 0
    model = LinearSVC(tol=1e-8, fit_intercept=False, max_iter=1_000_000, random_state=0)
    w = model.fit(X.astype(np.float64), true).coef_[0]
    best = 0.5 * w @ w + (np.maximum(0, 1 - np.where(true, 1, -1) * (X @ w)) ** 2).sum()
    assert solution.objective[0] == pytest.approx(best, rel=1e-6)


def test_prune_leaves_out_small_weights_only() -> None:
    X, Y = random_problem(9)
    full, pruned = solve(X, Y), solve(X, Y, prune=0.1)
    dense = full.weights.toarray()
    np.testing.assert_array_equal(pruned.weights.toarray(), np.where(abs(dense) < 0.1, 0, dense))
    assert pruned.weights.nnz < full.weights.nnz


def test_bad_input_is_named() -> None:
    X, Y = random_problem(10)
    with pytest.raises(ValueError, match="positive_weight has shape"):
        solve(X, Y, positive_weight=np.ones(3))
    with pytest.raises(ValueError, match="finite and not negative"):
        solve(X, Y, positive_weight=np.full(Y.shape[1], -1.0))
    with pytest.raises(ValueError, match="rows"):
        solve(X[:10], Y)
    broken = X.copy()
    broken.data[3] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        solve(broken, Y)


def test_visited_counts_the_entries_of_active_rows() -> None:
    X, Y = random_problem(3)
    positives = Y.sum(axis=0).A1
    rare = np.flatnonzero(positives < Y.shape[0] / 2)
    at_start = solve(X, Y, labels=rare, max_rounds=0)
    # From w = 0 and bias -1 just the positives are inside the margin.
    entries = Y.T @ np.diff(X.indptr)
    np.testing.assert_array_equal(at_start.visited, entries[rare])
    one = solve(X, Y, labels=rare, max_rounds=1)
    assert (one.visited >= at_start.visited * (1 + 2 * one.products)).all()


def rare_labels(seed: int) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Labels of which most have few positives, so that candidates are fewer than rows."""
    X, _ = random_problem(seed, n=600, columns=200)
    rng = np.random.default_rng(seed)
    scores = X @ rng.standard_normal((200, 12))
    cut = np.sort(scores, axis=0)[-np.array([2, 3, 4, 6, 9, 14, 20, 30, 60, 120, 250, 400])]
    return X, sparse.csr_matrix((scores >= np.diag(cut)).astype(np.float32))


@pytest.mark.usefixtures("small_layout")
def test_wide_problems_reach_the_optimum_of_narrow_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = rare_labels(21)
    weight = np.random.default_rng(22).uniform(0.5, 8, Y.shape[1])
    for tol in (1e-3, 1e-7):
        wide = solve(X, Y, tol=tol, positive_weight=weight)
        assert (wide.gap <= tol).all()
        reached = objective(X, Y, wide.weights, positive_weight=weight)
        np.testing.assert_allclose(wide.objective, reached, rtol=1e-5)
        monkeypatch.setattr(layout, "WIDE_ROWS", 10_000)
        narrow = solve(X, Y, tol=1e-8, positive_weight=weight)
        monkeypatch.setattr(layout, "WIDE_ROWS", 10)
        assert (reached <= narrow.objective * (1 + max(tol, 1e-6))).all()


@pytest.mark.usefixtures("small_layout")
def test_wide_problems_have_the_same_bits_however_the_work_is_divided() -> None:
    X, Y = rare_labels(23)
    whole = solve(X, Y, threads=1)
    assert same(whole, solve(X, Y, threads=2, memory_mb=0.05))
    part = np.array([7, 0, 11])
    some = solve(X, Y, labels=part)
    np.testing.assert_array_equal(some.weights.toarray(), whole.weights[part].toarray())
    np.testing.assert_array_equal(some.report, whole.report[part])


@pytest.mark.usefixtures("small_layout")
def test_cold_columns_by_column_and_by_row_give_the_same_bits() -> None:
    X, _ = random_problem(24, n=300, columns=90)
    laid = layout.lay_out(X)
    assert laid.is_wide
    assert laid.n_hot == 16
    rng = np.random.default_rng(25)
    steps = rng.standard_normal((3, len(laid.columns))).astype(np.float32)
    steps[:, rng.random(len(laid.columns)) < 0.5] = 0
    out = np.zeros((2, 3, 300), np.float32)
    lanes = np.arange(3)
    block = np.empty((laid.n_hot, 8), np.float32)
    pack_columns(steps, lanes, 0, block)
    for half in out:
        block_product(
            laid.indptr[:-1], laid.hot_stop, laid.indices, laid.data, block, 0, lanes, half
        )
    for lane in lanes:
        cold = steps[lane, laid.n_hot :]
        own = np.flatnonzero(cold)
        add_columns(laid.cold_indptr, laid.cold_rows, laid.cold_data, own, cold, out[0, lane])
    block = np.empty((len(laid.columns) - laid.n_hot, 8), np.float32)
    pack_columns(steps, lanes, laid.n_hot, block)
    block_product(
        laid.hot_stop, laid.indptr[1:], laid.indices, laid.data, block, laid.n_hot, lanes, out[1]
    )
    np.testing.assert_array_equal(out[0].view(np.uint32), out[1].view(np.uint32))
    expected = X.astype(np.float64)[:, laid.columns] @ steps.T.astype(np.float64)
    np.testing.assert_allclose(out[0].T, expected, atol=1e-5)


def test_what_is_dropped_of_a_direction_is_worth_least_and_within_bounds() -> None:
    rng = np.random.default_rng(26)
    step = (rng.standard_normal(500) * 10.0 ** rng.uniform(-4, 0, 500)).astype(np.float32)
    step[::7] = 0
    indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 50, 500))])
    kept = np.empty(500, np.int64)
    for most in (0.0, 1e-3, 0.1, 1e9):
        left = step.copy()
        n, entries = drop_negligible(left, indptr, most, kept)
        np.testing.assert_array_equal(kept[:n], np.flatnonzero(left))
        assert entries == np.diff(indptr)[kept[:n]].sum()
        gone = np.flatnonzero(left != step)
        assert (left[gone] == 0).all()
        assert (step[gone].astype(np.float64) ** 2).sum() <= most
        worth = step.astype(np.float64) ** 2 / np.diff(indptr)
        if len(gone) and n:
            assert worth[gone].max() <= 2 * worth[kept[:n]].min()
    assert len(gone) > 400
