"""DiSMEC as a method: shards, interruption, storage and prediction."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import normalize

import methods.linear.dismec as dismec
from benchmarks.data.split import Inputs, Split
from benchmarks.evaluation.topk import TopK
from methods.hooks.loss_weights import LabelWeights
from methods.linear.dismec import DiSMEC
from methods.linear.model import SparseLinearModel, as_unit_rows
from methods.linear.topk import make_strips, top_labels


def make_split(seed: int = 0, n: int = 90, columns: int = 40, n_labels: int = 23) -> Split:
    rng = np.random.default_rng(seed)
    X = sparse.random(n, columns, density=0.2, random_state=rng, dtype=np.float32, format="csr")
    Y = sparse.random(n, n_labels, density=0.1, random_state=rng, format="csr")
    Y.data[:] = 1
    Y = Y.tolil()
    Y[:, 7] = 0  # a label without a document
    return Split(Inputs(bow=X), sparse.csr_matrix(Y, dtype=np.float32))


def assert_same(a: SparseLinearModel, b: SparseLinearModel) -> None:
    assert a.weights.shape == b.weights.shape
    np.testing.assert_array_equal(a.trained, b.trained)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(a.weights, part), getattr(b.weights, part))


def test_one_thread_two_threads_three_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_split()
    rng = np.random.default_rng(1)
    weights = LabelWeights(rng.uniform(1, 9, 23), np.ones(23))
    one = DiSMEC().fit(train, threads=1, hooks=[weights])
    assert_same(one, DiSMEC().fit(train, threads=2, hooks=[weights]))
    shards = [DiSMEC().fit(train, shard=(i, 3), hooks=[weights]) for i in range(3)]
    assert sum(int(s.trained.sum()) for s in shards) == 22
    assert_same(one, SparseLinearModel.merge(shards))
    monkeypatch.setattr(dismec, "LABELS_AT_ONCE", 4)
    assert_same(one, DiSMEC().fit(train, threads=2, hooks=[weights]))


def test_weights_below_the_threshold_are_dropped_and_rows_scaled() -> None:
    train = make_split()
    scaled = Split(Inputs(bow=train.inputs.bow * 3), train.labels)
    model = DiSMEC(prune=0.05).fit(train)
    assert np.abs(model.label_weights().data).min() >= 0.05
    np.testing.assert_allclose(
        model.weights.toarray(), DiSMEC(prune=0.05).fit(scaled).weights.toarray(), atol=2e-2
    )
    assert np.abs(DiSMEC(prune=0.0).fit(train).weights.data).min() < 0.05


def test_label_without_a_document_is_never_predicted() -> None:
    train = make_split()
    model = DiSMEC().fit(train)
    top = model.predict(train.inputs, 23)
    assert not (top.indices == 7).any()
    assert (top.indices[:, -1] == -1).all()
    assert np.isneginf(top.scores[:, -1]).all()
    assert np.isnan(model.label_norms()[7])
    assert np.isfinite(np.delete(model.label_norms(), 7)).all()


def test_save_and_load(tmp_path: Path) -> None:
    train = make_split()
    model = DiSMEC().fit(train)
    model.save(tmp_path)
    back = SparseLinearModel.load(tmp_path)
    assert_same(model, back)
    np.testing.assert_array_equal(
        model.predict(train.inputs, 5).indices, back.predict(train.inputs, 5).indices
    )


def test_merge_refuses_the_same_label_twice() -> None:
    model = DiSMEC().fit(make_split())
    with pytest.raises(ValueError, match="in 2 shards"):
        SparseLinearModel.merge([model, model])


def test_checkpoint_of_another_problem_is_not_used(tmp_path: Path) -> None:
    train = make_split()
    DiSMEC().fit(train, checkpoint=tmp_path)
    heavier = DiSMEC(C=5.0).fit(train, checkpoint=tmp_path)
    assert_same(heavier, DiSMEC(C=5.0).fit(train))


def test_finished_labels_are_read_and_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = make_split()
    monkeypatch.setattr(dismec, "LABELS_AT_ONCE", 5)
    whole = DiSMEC().fit(train, checkpoint=tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5
    files[2].unlink()
    trained: list[int] = []
    solve = dismec.OneVsRest.solve

    def counting(self: dismec.OneVsRest, labels: np.ndarray) -> dismec.Solution:
        trained.extend(labels)
        return solve(self, labels)

    monkeypatch.setattr(dismec.OneVsRest, "solve", counting)
    assert_same(whole, DiSMEC().fit(train, checkpoint=tmp_path))
    assert 4 <= len(trained) <= 5


@pytest.mark.slow
def test_killed_fit_resumes_to_the_same_bits(tmp_path: Path) -> None:
    """SIGKILL after the second piece of labels; the next fit keeps both and ends the same."""
    script = textwrap.dedent(
        """
        import os, signal, sys
        sys.path[:0] = [sys.argv[2], sys.argv[3]]
        import methods.linear.dismec as dismec
        from test_dismec import make_split
        dismec.LABELS_AT_ONCE = 5
        def progress(done, total, what):
            if done >= 9:
                os.kill(os.getpid(), signal.SIGKILL)
        dismec.DiSMEC().fit(make_split(), checkpoint=sys.argv[1], progress=progress)
        """
    )
    root = Path(dismec.__file__).parents[2]
    folder = tmp_path / "checkpoint"
    child = subprocess.run(
        [sys.executable, "-c", script, str(folder), str(root), str(Path(__file__).parent)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    kept = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(kept) == 2
    train = make_split()
    before = dismec.LABELS_AT_ONCE
    dismec.LABELS_AT_ONCE = 5
    try:
        resumed = DiSMEC().fit(train, checkpoint=folder)
    finally:
        dismec.LABELS_AT_ONCE = before
    assert {n: (folder / n).stat().st_mtime_ns for n in kept} == kept
    assert_same(resumed, DiSMEC().fit(train))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_labels=st.integers(1, 40),
    k=st.integers(1, 50),
    strip=st.integers(1, 50),
    threads=st.integers(1, 3),
)
def test_top_labels_equal_a_dense_sort(
    seed: int, n_labels: int, k: int, strip: int, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    # Small whole numbers make ties common and every sum exact.
    X = sparse.csr_matrix(rng.integers(0, 3, (30, 12)) * (rng.random((30, 12)) < 0.4), dtype="f4")
    W = sparse.csr_matrix(
        rng.integers(-2, 3, (n_labels, 13)) * (rng.random((n_labels, 13)) < 0.5), dtype="f4"
    )
    trained = rng.random(n_labels) < 0.8
    scores = np.asarray((X @ W[:, :-1].T).todense()) + W[:, [12]].toarray().T
    scores[:, ~trained] = -np.inf
    expected = TopK.from_dense(scores, k)
    found = top_labels(X, make_strips(W, trained, strip), k, threads)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_documents_of_another_vocabulary_are_refused() -> None:
    model = DiSMEC().fit(make_split())
    with pytest.raises(ValueError, match="40 features, the documents have 3"):
        model.predict(Inputs(bow=sparse.csr_matrix((2, 3), dtype=np.float32)), 1)


def test_unit_rows_are_those_of_scikit_learn_and_share_their_positions() -> None:
    bow = make_split().inputs.bow
    bow.data[bow.indptr[4] : bow.indptr[5]] = 0.0
    ours, theirs = as_unit_rows(bow), normalize(bow)
    np.testing.assert_array_equal(ours.data, theirs.data)
    assert np.shares_memory(ours.indices, bow.indices)
    assert not np.shares_memory(ours.data, bow.data)
