"""Bad predictions are a cell with a reason, and cut-offs beyond what is kept are refused."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data.prepared import open_prepared
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cell import INSTANCE, METRICS
from benchmarks.records.cells import collect
from workflow.config import check
from workflow.runtime.evaluate import evaluate_cell

BAD = {
    "float": "float64 labels and float32 scores, not signed integers",
    "object": "int32 labels and object scores, not signed integers",
    "narrow": "2 labels per document instead of 5; pad with label -1, score -inf",
    "pair": "a tuple, not a TopK",
    "nothing": "a NoneType, not a TopK",
}


@pytest.mark.parametrize("how", BAD)
def test_bad_predictions_are_an_error_cell_that_can_be_evaluated(run, files, cell, how):
    record = run("Odd", how=how)
    assert record["status"] == "error"
    assert record["reason"].startswith(f"the predictions are not valid: {BAD[how]}")
    with np.load(cell / "predictions.npz") as stored:
        assert stored["indices"].dtype == np.int32
        assert (stored["indices"] == -1).all()
    evaluate_cell(cell, files / "data/mine", [1, 5], files / "m.csv", files / "i.npz")
    assert len(pd.read_csv(files / "m.csv")) == 0


def test_other_widths_of_numbers_are_stored_as_the_format_says(run, files, cell):
    assert run("Odd", how="wide-types")["status"] == "ok"
    with np.load(cell / "predictions.npz") as stored:
        assert (stored["indices"].dtype, stored["scores"].dtype) == (np.int32, np.float32)
        # The labels have 2, 2 and 1 training documents; two columns are padding.
        assert stored["indices"].tolist() == [[0, 1, 2, -1, -1]] * 3
    evaluate_cell(cell, files / "data/mine", [1, 5], files / "m.csv", files / "i.npz")
    metrics = pd.read_csv(files / "m.csv").query("metric == 'P' and k == 1 and bin == 'all'")
    _, test = open_prepared(files / "data/mine")
    assert metrics["value"].iloc[0] == pytest.approx(100 * test.labels[:, [0]].sum() / 3)


@pytest.mark.parametrize("kind", [np.uint8, bool, complex])
def test_labels_of_another_kind_of_number_are_a_fault(kind):
    assert TopK(np.array([[1, 0]]), np.array([[2, 1]])).fault(1, 2, 2) is None
    found = TopK(np.array([[1, 0]], kind), np.array([[2.0, 1.0]])).fault(1, 2)
    assert found.startswith(f"{np.dtype(kind)} labels and float64 scores, not signed")


@pytest.mark.parametrize("ks", [[1, 3, 6], [6]])
def test_cut_offs_beyond_what_is_kept_are_refused(configuration, ks):
    with pytest.raises(InvalidDocumentError, match="top_k: 5 .* metrics at 6; raise it to 6"):
        check(configuration(ks=ks), "my.yaml")
    assert check(configuration(ks=[5]), "my.yaml")["top_k"] == 5


def test_an_evaluation_that_fails_is_an_error_cell_with_its_reason(run, files, cell, monkeypatch):
    assert run("Odd", how="wide-types")["status"] == "ok"

    def broken(*args, **kwargs):
        raise ZeroDivisionError("no document has a label")

    monkeypatch.setattr("workflow.runtime.evaluate.evaluate", broken)
    evaluate_cell(cell, files / "data/mine", [1, 5], cell / METRICS, cell / INSTANCE)
    cells, runs = collect([cell])
    assert list(cells["status"]) == list(runs["status"]) == ["error"]
    reason = "ZeroDivisionError in evaluation: no document has a label"
    assert list(cells["reason"]) == [reason]
