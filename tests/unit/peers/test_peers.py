"""Peers behave as methods: shape, order and storage of their predictions, and that they learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from methods.interface import Method
from methods.linear.dismec import DiSMEC
from methods.linear.solver import objective


def make_train(empty_row: bool = True) -> Split:
    """Each label has words of its own, so that a working learner finds nearly all."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 8, 200)
    X = rng.random((200, 40)) * (rng.random((200, 40)) < 0.1)
    for i, label in enumerate(truth):
        X[i, 5 * label : 5 * label + 5] += 1
    if empty_row:
        X[3] = 0
    Y = sparse.csr_matrix((np.ones(200, np.float32), (np.arange(200), truth)), shape=(200, 9))
    return Split(Inputs(bow=sparse.csr_matrix(X, dtype=np.float32)), Y)


def check(method: Method, tmp_path: Path) -> None:
    train = make_train()
    model = method.fit(train, threads=1)
    top = model.predict(train.inputs, 5)
    assert top.indices.shape == (200, 5)
    true = train.labels.indices
    assert (np.delete(top.indices[:, 0] == true, 3)).mean() > 0.95
    scores = np.where(np.isneginf(top.scores), -1e30, top.scores)
    assert (np.diff(scores, axis=1) <= 0).all()
    model.save(tmp_path)
    back = type(model).load(tmp_path).predict(train.inputs, 5)
    np.testing.assert_array_equal(top.indices, back.indices)


def test_omikuji(tmp_path: Path) -> None:
    pytest.importorskip("omikuji")
    from methods.peers.omikuji import Omikuji

    check(Omikuji(), tmp_path)
    notes = Omikuji().fit(make_train(), threads=1).notes
    assert any("1 training documents without a feature" in note for note in notes)
    assert any("seed has no effect" in note for note in notes)


def test_napkinxc(tmp_path: Path) -> None:
    pytest.importorskip("napkinxc")
    from methods.peers.napkinxc import NapkinXC

    check(NapkinXC(), tmp_path)


def test_weights_are_refused_by_name() -> None:
    from methods.hooks.loss_weights import LabelWeights
    from methods.peers.napkinxc import NapkinXC

    with pytest.raises(ValueError, match="napkinXC-BR does not take loss weights"):
        NapkinXC().fit(make_train(), hooks=[LabelWeights(np.ones(9), np.ones(9))])


@pytest.mark.slow
def test_pecos_solves_the_same_problem(tmp_path: Path) -> None:
    from methods.peers import pecos

    if not (pecos.environment_folder() / "ready").exists():
        pytest.skip("no PECOS environment; make it with python -m methods.peers.pecos")
    train = make_train()
    check(pecos.Pecos(), tmp_path)
    theirs = pecos.Pecos(eps=1e-6, prune=0.0).fit(train)
    ours = DiSMEC(tol=1e-7, prune=0.0).fit(train)
    X = pecos.as_unit_rows(train.inputs.bow)
    Y = train.labels[:, :8]
    np.testing.assert_allclose(
        objective(X, Y, theirs.weights[:8]), objective(X, Y, ours.weights[:8]), rtol=1e-4
    )


@pytest.mark.slow
def test_pecos_trees_predict_the_labels_of_training(tmp_path: Path) -> None:
    from methods.peers import pecos
    from methods.peers.pecos_tree import PecosTree

    if not (pecos.environment_folder() / "ready").exists():
        pytest.skip("no PECOS environment; make it with python -m methods.peers.pecos")
    train = make_train()
    check(PecosTree(max_leaf=3), tmp_path)
    model = PecosTree(max_leaf=3).fit(train)
    seen = set(np.flatnonzero(train.label_counts() > 0))
    assert set(np.unique(model.predict(train.inputs, 3).indices)) - {-1} <= seen
    assert model.seconds.keys() == {"fit", "predict"}
