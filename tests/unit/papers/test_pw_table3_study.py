"""The study of PW Table 3: its feature step, rotated label ids and distances, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.evaluation.topk import TopK
from workflow.studies import pw_table3 as study


def test_the_released_step_rounds_takes_logarithms_and_its_own_frequencies() -> None:
    X = sparse.csr_matrix(np.array([[3.4, 0.4, 1.0], [2.5, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    # Rounded: [3, 0, 1], [3, 0, 0], [0, 0, 2]; each of the two features is in two rows of three.
    idf = np.log(3 / 2)
    first = np.array([(1 + np.log(3)) * idf, 0.0, idf])
    expected = np.array([first / np.linalg.norm(first), [1.0, 0, 0], [0, 0, 1.0]])
    found = study.released_features(X)
    np.testing.assert_allclose(found.toarray(), expected.round(4), atol=1e-6)
    assert found.nnz == 4


def test_the_last_batch_of_classifiers_goes_by_rotated_ids() -> None:
    # Order of first appearance: 4, 0, 2, 1, 3; with batches of 3 the last holds labels 1 and 3.
    labels = np.zeros((3, 6), np.float32)
    labels[0, 4] = labels[1, 0] = labels[1, 2] = labels[2, 1] = labels[2, 3] = 1
    Y = sparse.csr_matrix(labels)
    assert study.first_appearance(Y).tolist() == [4, 0, 2, 1, 3]
    # The first of the batch, number 3 of all, gets the id of 3 mod 2 = 1: label 3.
    assert study.rotated(Y, 3).tolist() == [0, 3, 2, 1, 4, 5]
    assert study.rotated(Y, 5).tolist() == list(range(6))
    top = TopK(np.array([[1, 5, -1]], np.int32), np.array([[2.0, 1.0, -np.inf]], np.float32))
    assert study.renamed(top, study.rotated(Y, 3)).indices.tolist() == [[3, 5, -1]]


def test_distances_are_means_over_the_printed_metrics() -> None:
    printed = study.printed_rows()
    assert {variant: len(row) for variant, row in printed.items()} == dict.fromkeys(study.ROWS, 10)
    assert printed["PW"]["PSP@1"] == 43.05
    off = {name: value + 1.0 for name, value in printed["PW"].items()}
    assert study.distance(off, printed["PW"]) == pytest.approx(1.0)
    frame = study.compared([{"variant": "PW", **off}, {"variant": "plain", **printed["plain"]}])
    assert frame.loc[0, ["vanilla off", "PS off"]].tolist() == pytest.approx([1.0, 1.0])
    assert np.isnan(frame.loc[0, "README off"])
    assert np.isnan(frame["PS change"]).all()  # no plain row says that its label ids are right
    # By hand: |82.40-82.51|, |68.50-69.48|, |57.70-57.94|, |72.50-72.90|, |66.70-67.05|.
    assert frame.loc[1, "README off"] == pytest.approx((0.11 + 0.98 + 0.24 + 0.40 + 0.35) / 5)


def test_changes_are_over_the_plain_row_of_the_same_reading() -> None:
    plain = dict.fromkeys(study.METRICS, 50.0)
    how = {"features": "unit", "ranking": "plain"}
    rows = [
        {"variant": "plain", "labels": "right", **how, **plain},
        {"variant": "PW", "labels": "rotated", **how, **dict.fromkeys(study.METRICS, 51.0)},
        {"variant": "PW", "labels": "right", **how, "ranking": "re-ranked", **plain},
    ]
    frame = study.compared(rows)
    assert frame["PS change"].tolist()[:2] == pytest.approx([0.0, 2.0])
    assert np.isnan(frame.loc[2, "vanilla change"])
