"""Parts of metrics by label frequency: they add up, they are bounded, their changes are paired."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from benchmarks.evaluation.bin_statistics import columns_of, resampled_bins
from benchmarks.evaluation.bins import PARTS, frequency_bins
from benchmarks.evaluation.conventions import CONVENTIONS
from benchmarks.evaluation.metrics import Evaluation, evaluate
from benchmarks.evaluation.topk import TopK
from benchmarks.records.bins import bins, read_bins, write_bins
from benchmarks.records.cell import INSTANCE, METRICS, PLAIN, Cell
from benchmarks.records.files import write_evaluation, write_record

N, L = 60, 40


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    often = 1.0 / np.arange(1, L + 1)
    draw = lambda n: sparse.csr_matrix((rng.random((n, L)) < often).astype(np.float32))  # noqa: E731
    train, test = draw(200), draw(N)
    scores = rng.random((N, L)).astype(np.float32) + 0.5 * test.toarray()
    return train, test, scores


def ranked(scores):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    return TopK(order.astype(np.int32), np.take_along_axis(scores, order, axis=1))


def scored(problem, scores=None, convention="xc-matlab"):
    train, test, own = problem
    counts = np.asarray(train.sum(axis=0)).ravel().astype(int)
    top = ranked(own if scores is None else scores)
    return evaluate(top, test, train, bins=frequency_bins(counts), convention=convention)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_points_sum_to_what_one_pass_over_the_rows_counts(problem, convention):
    found = scored(problem, convention=convention)
    sums = np.asarray(found.bin_points.sum(axis=0)).ravel()
    expected = [found.by_bin[metric][name] for metric, name in columns_of(found)]
    np.testing.assert_allclose(sums, expected, atol=1e-9)


def test_no_ranking_of_many_exceeds_the_bound_and_the_bins_own_oracle_reaches_it(problem):
    train, test, _ = problem
    counts = np.asarray(train.sum(axis=0)).ravel().astype(int)
    rng = np.random.default_rng(1)
    for _ in range(20):
        found = scored(problem, rng.random((N, L)).astype(np.float32) + 2 * test.toarray())
        for metric, parts in found.by_bin.items():
            for name, value in parts.items():
                assert value <= found.bin_bounds[metric][name] + 1e-9
    members = frequency_bins(counts)
    rare = 1.0 / (counts + 1.0)
    for name in ("head", "tail"):
        first = np.zeros(L)
        first[members.members(name)] = 10.0
        found = scored(problem, (test.toarray() * (first + rare)).astype(np.float32))
        for metric in found.by_bin:
            assert found.by_bin[metric][name] == pytest.approx(found.bin_bounds[metric][name])


def test_an_evaluation_keeps_its_points(problem, tmp_path):
    found = scored(problem)
    found.save(tmp_path / "instance.npz")
    back = Evaluation.load(tmp_path / "instance.npz")
    assert (back.bin_points != found.bin_points).nnz == 0
    assert back.bin_bounds == found.bin_bounds


def test_a_resample_of_all_parts_is_the_metric(problem):
    found = scored(problem)
    draws = pd.DataFrame(
        resampled_bins(found, 50), columns=pd.MultiIndex.from_tuples(columns_of(found))
    )
    whole = draws["P@5"][list(PARTS)].sum(axis=1)
    rng = np.random.default_rng(0)
    picked = rng.integers(0, N, size=(50, N), dtype=np.int32)
    np.testing.assert_allclose(whole, 100 * found.numerators["P@5"][picked].mean(axis=1))


def test_differences_are_paired_with_the_plain_cell(problem, tmp_path):
    better = problem[2] + 0.3 * problem[1].toarray()
    files = []
    for cell, scores in (
        (Cell("D", "B", PLAIN, 0), problem[2]),
        (Cell("D", "B", "V", 0), better),
        (Cell("D", "B", "same", 0), problem[2]),
    ):
        path = cell.file(INSTANCE, tmp_path)
        path.parent.mkdir(parents=True)
        scored(problem, scores).save(path)
        path.with_name(METRICS).write_text("")
        record = write_record(path.parent, asdict(cell))
        write_evaluation(record, path.with_name(METRICS), path)
        files.append(path)
    write_bins(bins(files), tmp_path / "bins.csv")
    frame = read_bins(tmp_path / "bins.csv").set_index(["variant", "metric", "bin"])
    head = frame.loc[("V", "P@5", "head")]
    assert head["difference"] == pytest.approx(
        head["value"] - frame.loc[(PLAIN, "P@5", "head"), "value"]
    )
    assert head["difference_low"] <= head["difference"] <= head["difference_high"]
    assert (frame.loc["same", ["difference", "difference_low", "difference_high"]] == 0).all(
        axis=None
    )
    assert (frame["value"] <= frame["bound"] + 1e-9).all()
    assert frame.loc[PLAIN, "difference"].isna().all()
