"""What a run left, read back: norms beside label counts, and how often labels are predicted."""

from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.data.prepare import ensure
from benchmarks.records.cell import Cell
from benchmarks.records.files import write_record
from benchmarks.records.results import Results


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ensure("tiny-bow")
    n_labels = load("tiny-bow")[0].n_labels
    cells = [Cell("tiny-bow", base, "plain", 0) for base in ("one", "two")]
    for cell, norms in zip(cells, (np.arange(n_labels), np.full(n_labels, np.nan)), strict=True):
        folder = cell.file("norms.npz").parent
        folder.mkdir(parents=True)
        np.savez(folder / "norms.npz", norms=norms.astype(np.float32))
        np.savez(folder / "predictions.npz", indices=np.array([[3, 1, 2, 0, 4, 5], [3] + 5 * [-1]]))
        write_record(folder, asdict(cell))
    return Results("results", [*cells, Cell("not-prepared", "one", "plain", 0)])


def test_norms_stand_beside_the_counts_and_ranks_of_their_labels(results):
    norms = results.norms
    assert set(norms["base"]) == {"one"}, "a method without norms has no rows"
    counts = np.asarray(load("tiny-bow")[0].labels.sum(axis=0)).ravel()
    assert norms["count"].tolist() == counts.tolist()
    assert norms["norm"].tolist() == list(range(len(counts)))
    by_rank = norms.sort_values("rank")
    assert by_rank["rank"].tolist() == list(range(1, len(counts) + 1))
    assert by_rank["count"].tolist() == sorted(counts, reverse=True)


def test_only_the_first_five_labels_of_a_document_count_as_predicted(results):
    times = results.predicted.set_index("label")["times"]
    assert times[times > 0].to_dict() == {0: 1, 1: 1, 2: 1, 3: 2, 4: 1}
    assert len(times) == len(results.norms)
