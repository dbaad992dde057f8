"""The mean over members: by hand, by identity, and against a plain loop over documents."""

from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.data.prepared import write_meta
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cell import Cell
from benchmarks.records.files import write_record
from methods import get
from methods.variants.ensemble import average
from workflow.runtime.ensemble import ensemble_cell


def top(*rows):
    """A ranking from {label: score} a document, padded to three labels."""
    made = TopK.empty(len(rows), 3)
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row.items()):
            made.indices[i, j], made.scores[i, j] = label, score
    return made


def rows_of(ranking):
    return [
        {int(a): float(b) for a, b in zip(i, s, strict=True) if a >= 0}
        for i, s in zip(ranking.indices, ranking.scores, strict=True)
    ]


def test_two_members_by_hand():
    one = top({7: 4.0, 2: 2.0, 5: 1.0}, {1: 0.5}, {})
    two = top({2: 6.0, 9: 3.0}, {}, {})
    # Document 0: 7 and 5 count with 3.0 (the lowest of two), 9 with 1.0 (the lowest of one).
    # Document 1: the second member has no label, so the first alone counts.
    found = average([one, two], 4)
    assert [list(row.items()) for row in rows_of(found)] == [
        [(2, 4.0), (7, 3.5), (5, 2.0), (9, 2.0)],  # 5 and 9 tie: the lower label first
        [(1, 0.5)],
        [],
    ]
    assert found.fault(3, 10) is None
    assert rows_of(average([one, two], 2))[0] == {2: 4.0, 7: 3.5}


def by_loop(members, k):
    """Document by document in plain Python."""
    made = []
    for rows in zip(*(rows_of(member) for member in members), strict=True):
        rows = [row for row in rows if row]
        mean = {
            label: np.float32(sum(row.get(label, min(row.values())) for row in rows) / len(rows))
            for row in rows
            for label in row
        }
        best = sorted(mean, key=lambda label: (-mean[label], label))[:k]
        made.append({label: float(mean[label]) for label in best})
    return made


@pytest.mark.parametrize("n_members", [1, 2, 5])
def test_average_is_that_of_a_plain_loop(n_members, monkeypatch):
    monkeypatch.setattr("methods.variants.ensemble.ROWS_AT_ONCE", 16)
    rng = np.random.default_rng(0)
    members = []
    for _ in range(n_members):
        scores = rng.integers(-6, 6, (50, 12)).astype(np.float32)  # many ties, negative ones too
        scores[rng.random(scores.shape) < 0.5] = -np.inf
        scores[rng.random(50) < 0.1] = -np.inf
        members.append(TopK.from_dense(scores, 4))
    found = average(members, 6)
    expected = by_loop(members, 6)
    for row, wanted in zip(rows_of(found), expected, strict=True):
        assert list(row) == list(wanted)
        np.testing.assert_allclose(list(row.values()), list(wanted.values()), rtol=1e-6)


def test_identical_members_give_the_member():
    rng = np.random.default_rng(1)
    member = TopK.from_dense(rng.normal(size=(30, 20)).astype(np.float32), 5)
    for n in (1, 3, 7):
        found = average([member] * n, 5)
        np.testing.assert_array_equal(found.indices, member.indices)
        np.testing.assert_array_equal(found.scores, member.scores)


def test_the_library_fits_members_of_seeds_that_follow_one_another(tmp_path):
    train, test = load("tiny-bow")
    method = get("FastXML", variant="ensemble", variant_params={"members": 2}, n_trees=1)
    assert method.variant == "ensemble"
    model = method.fit(train, seed=3)
    members = [get("FastXML", n_trees=1).fit(train, seed=seed) for seed in (6, 7)]
    tops = [member.predict(test.inputs, 5) for member in members]
    assert (tops[0].indices != tops[1].indices).any()
    found, wanted = model.predict(test.inputs, 5), average(tops, 5)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    model.save(tmp_path)
    again = type(model).load(tmp_path).predict(test.inputs, 5)
    np.testing.assert_array_equal(again.scores, found.scores)
    with pytest.raises(ValueError, match="at least one member"):
        get("FastXML", variant="ensemble", variant_params={"members": 0})


def member_of(folder, seed, status="ok", reason=""):
    ranking = top({seed: 2.0, 2: 1.0})
    folder.mkdir(parents=True)
    np.savez(folder / "predictions.npz", indices=ranking.indices, scores=ranking.scores)
    np.savez(folder / "norms.npz", norms=np.array([seed, np.nan], np.float32))
    record = {
        **asdict(Cell.from_path(folder)),
        "status": status,
        "reason": reason,
        "params": {"trees": 1},
        "phases": {"fit": {"wall_s": 2.0, "cpu_s": 1.0}},
        "wall_s": 3.0,
        "cpu_s": 2.0,
        "peak_mb": 100.0 + seed,
        "peak_gpu_mb": None,
        "device": "cpu",
        "threads": 1,
        "shards": 1,
        "budget": {"wall_s": 9.0},
        "notes": ["a"],
    }
    write_record(folder, record)
    return folder


def cell_of(tmp_path, members):
    (tmp_path / "data").mkdir()
    write_meta(tmp_path / "data", {"checksum": "x", "n_test": 1, "n_labels": 2})
    return ensemble_cell(
        tmp_path / "cell",
        cell={"dataset": "d", "base": "b", "variant": "ensemble", "seed": 0},
        recipe={"parts": [], "seed": 5},
        data=tmp_path / "data",
        members=members,
        top_k=3,
        code="c",
        log=tmp_path / "log",
    )


def test_the_cell_is_made_from_the_files_of_its_members(tmp_path):
    record = cell_of(
        tmp_path, [member_of(tmp_path / f"d/b/plain/seed{seed}", seed) for seed in (0, 1)]
    )
    assert (record["status"], record["reason"], record["notes"]) == ("ok", "", ["a"])
    assert record["phases"] == {"fit": {"wall_s": 4.0, "cpu_s": 2.0}}
    assert (record["wall_s"], record["peak_mb"], record["budget"]) == (6.0, 101.0, {"wall_s": 9.0})
    assert record["params"] == {"trees": 1, "ensemble": {"members": 2, "seeds": [0, 1]}}
    with np.load(tmp_path / "cell/predictions.npz") as stored:
        assert stored["indices"].tolist() == [[0, 1, 2]]
        assert stored["scores"].tolist() == [[1.5, 1.5, 1.0]]
    with np.load(tmp_path / "cell/norms.npz") as stored:
        np.testing.assert_array_equal(stored["norms"], np.array([0.5, np.nan], np.float32))


@pytest.mark.parametrize(
    ("status", "reason", "outcome"),
    [
        ("timeout", "over 8 s", ("error", "member seed 1: timeout: over 8 s")),
        ("skipped", "not applicable: why", ("skipped", "not applicable: why")),
    ],
)
def test_a_failed_member_is_the_reason(tmp_path, status, reason, outcome):
    folder = tmp_path / "d/b/plain"
    members = [member_of(folder / "seed0", 0), member_of(folder / "seed1", 1, status, reason)]
    record = cell_of(tmp_path, members)
    assert (record["status"], record["reason"]) == outcome
    with np.load(tmp_path / "cell/predictions.npz") as stored:
        assert stored["indices"].tolist() == [[-1, -1, -1]]
