"""LinearSVC minimises what it says (PW eq. 22, with the one half of liblinear)."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from benchmarks.data.split import Inputs, Split
from methods import LabelWeights, get
from methods.linear.model import as_unit_rows


def objective(w, X, y, C):
    margins = 1 - y * (X @ w[:-1] + w[-1])
    return 0.5 * w @ w + (C * np.maximum(margins, 0) ** 2).sum()


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = sparse.random(60, 12, 0.4, "csr", np.float32, random_state=3)
    dense = (rng.random((60, 4)) < [0.5, 0.2, 0.1, 0.03]).astype(np.float32)
    dense[7] = 1.0  # every label has a positive
    Y = sparse.csr_matrix(dense)
    return Split(Inputs(bow=X), Y)


@pytest.mark.parametrize("weight", [1.0, 3.5])
def test_objective_is_minimal(problem, weight):
    weights = LabelWeights(np.full(4, weight), np.ones(4))
    model = get("LinearSVC", tol=1e-8).fit(problem, hooks=[weights])
    X = as_unit_rows(problem.inputs.bow).toarray().astype(np.float64)
    for label in range(4):
        y = np.where(problem.labels[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        C = np.where(y > 0, weight, 1.0)
        best = minimize(objective, np.zeros(13), (X, y, C), method="BFGS", options={"gtol": 1e-9})
        found = objective(model.label_weights()[[label]].toarray()[0].astype(np.float64), X, y, C)
        assert found <= best.fun * (1 + 1e-6)


def test_weight_two_equals_the_positives_twice(problem):
    positives = problem.labels[:, [1]].toarray().ravel() > 0
    rows = np.concatenate([np.arange(60), np.flatnonzero(positives)])
    doubled = get("LinearSVC", tol=1e-8).fit(problem.take(rows)).label_weights()[[1]]
    weighted = get("LinearSVC", tol=1e-8).fit(
        problem, hooks=[LabelWeights(np.full(4, 2.0), np.ones(4))]
    )
    assert abs(weighted.label_weights()[[1]] - doubled).max() < 1e-4


def test_labels_without_positives_are_never_predicted(problem):
    empty = Split(
        problem.inputs, sparse.hstack([problem.labels, sparse.csr_matrix((60, 1))]).tocsr()
    )
    model = get("LinearSVC").fit(empty)
    top = model.predict(problem.inputs, 5)
    assert (top.indices != 4).all()
    assert (top.indices[:, 4] == -1).all()
    assert np.isnan(model.label_norms()[4])


def test_a_label_of_every_row_comes_first(problem):
    full = Split(
        problem.inputs, sparse.hstack([sparse.csr_matrix(np.ones((60, 1))), problem.labels]).tocsr()
    )
    assert (get("LinearSVC").fit(full).predict(problem.inputs, 5).scores[:, 0] >= 1).all()


def test_threads_change_nothing(problem):
    one, two = (get("LinearSVC").fit(problem, threads=t).label_weights() for t in (1, 2))
    assert (one != two).nnz == 0
