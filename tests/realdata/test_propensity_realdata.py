"""Propensities and metrics on EURLex-4K's official label matrices."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.evaluation.metrics import label_counts, score
from benchmarks.evaluation.propensity import inverse_propensity
from benchmarks.evaluation.topk import TopK

pytestmark = pytest.mark.realdata

ARCHIVE = "eurlex4k_text_subset"


@pytest.fixture(scope="module")
def official():
    mirror = os.environ["TAILTABLES_MIRROR"]
    wanted = ("trn_X_Y.txt", "tst_X_Y.txt", "inv_prop.txt")
    with tarfile.open(Path(mirror) / f"{ARCHIVE}.tar.xz") as archive:
        files = {
            name: io.TextIOWrapper(archive.extractfile(f"{ARCHIVE}/{name}"), "utf-8").read()
            for name in wanted
        }
    return _labels(files["trn_X_Y.txt"]), _labels(files["tst_X_Y.txt"]), files["inv_prop.txt"]


def _labels(text):
    lines = text.split("\n")
    n, n_labels = map(int, lines[0].split())
    rows = [[int(pair.partition(":")[0]) for pair in line.split()] for line in lines[1 : n + 1]]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.array([label for row in rows for label in row], dtype=np.int32)
    return sparse.csr_matrix(
        (np.ones(len(indices), np.float32), indices, indptr), shape=(n, n_labels)
    )


def test_inverse_propensities_are_the_official_ones(official):
    train, _, text = official
    theirs = np.array(text.split(), dtype=float)
    ours = inverse_propensity(label_counts(train), train.shape[0])
    assert len(theirs) == train.shape[1] == 3993
    assert np.abs(ours - theirs).max() < 1e-3


def test_the_oracle_on_real_labels(official):
    """Six test rows have no label and 170 labels no training document: both must not break it."""
    train, test, _ = official
    rare_first = 2.0 - label_counts(train) / 1e5
    oracle = TopK.from_sparse(test.multiply(rare_first[None, :]).tocsr(), k=5)
    kept = score(oracle, test, train)
    dropped = score(oracle, test, train, convention="dismec-java")
    empty = int((np.diff(test.indptr) == 0).sum())
    assert empty == 6
    assert kept["P@1"] == pytest.approx(100 * (3809 - 6) / 3809)
    assert dropped["P@1"] == pytest.approx(100)
    for values in (kept, dropped):
        assert values["PSP@5"] == pytest.approx(100)
        assert values["PSnDCG@5"] == pytest.approx(100)
