"""The corpora of ``benchmarks.speed scale``, its table that a second start continues, its laws."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.data.xc import read_xc
from benchmarks.speed import _corpus, scale
from benchmarks.speed._corpus import Corpus, Shape
from benchmarks.speed._scale_stages import STAGES, Place, run_stage

TINY = Shape("tiny", 300, 1500, 60, words=30.0, labels=2.0, n_test=70)


def test_a_written_file_holds_the_documents_of_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(_corpus, "CHUNK", 128)
    Corpus(TINY, seed=4).write("train", tmp_path / "train.txt")
    read = read_xc(tmp_path / "train.txt")
    bows, labels = zip(*Corpus(TINY, seed=4).chunks("train"), strict=True)
    assert [bow.shape[0] for bow in bows] == [128, 128, 44]
    first = 0
    for bow, carried in zip(bows, labels, strict=True):
        rows = slice(first, first + bow.shape[0])
        first += bow.shape[0]
        np.testing.assert_allclose(read.inputs.bow[rows].toarray(), bow.toarray(), atol=6e-5)
        assert (read.labels[rows] != carried).nnz == 0
    other = next(Corpus(TINY, seed=5).chunks("train"))[0]
    assert (other != bows[0]).nnz > 0


def test_the_means_asked_for_come_out():
    shape = Shape("means", 20_000, 5_000, 2_000, words=40.0, labels=4.0)
    bow, labels = next(Corpus(shape).chunks("train"))
    assert bow.nnz / bow.shape[0] == pytest.approx(40, rel=0.1)
    assert labels.nnz / labels.shape[0] == pytest.approx(4, rel=0.05)
    assert bow.data.min() > 0
    counts = np.sort(np.bincount(labels.indices))[::-1]
    assert counts[0] > 10 * counts[1000], "frequencies fall"


def test_grouped_labels_share_documents_and_words_and_keep_their_frequencies():
    alone = Shape("groups", 20_000, 5_000, 2_000, words=40.0, labels=4.0)
    grouped = replace(alone, groups=(20, 200))
    found = {}
    for shape in (alone, grouped):
        corpus = Corpus(shape)
        _, labels = next(corpus.chunks("train"))
        assert labels.nnz / labels.shape[0] == pytest.approx(4, rel=0.07)
        rank = np.argsort(corpus._label_ids)[labels.indices]  # by frequency, as groups are cut
        of_first = np.repeat(rank[labels.indptr[:-1]] // 20, np.diff(labels.indptr))
        words = [set(corpus._topics[label]) for label in (40, 41, 59, 60)]
        together = (rank // 20 == of_first).mean()
        common = [len(words[0] & other) for other in words[1:]]
        found[shape] = together, common, np.bincount(rank // 200)
    (apart, few, law), (together, common, same_law) = found[alone], found[grouped]
    assert together > apart + 0.1
    assert min(common[:2]) > max(few)
    assert common[2] < min(common[:2])
    np.testing.assert_allclose(same_law, law, rtol=0.1)


def test_each_stage_runs_and_finds_what_the_earlier_ones_left(tmp_path):
    place = Place(TINY, tmp_path, threads=1, shard_s=0.5)
    found = {stage: json.loads(run_stage(stage, place)) for stage in STAGES}
    assert all(row["peak_mb"] > 10 for row in found.values())
    assert found["open"]["documents"] == TINY.n_train
    assert 1 <= found["DiSMEC shard"]["amount"] <= TINY.n_labels
    assert found["DiSMEC shard"]["times by bytes"] > 0
    assert found["Parabel predict"]["documents"] == TINY.n_test
    assert found["evaluate"]["P@1"] > 15, "labels can be told from the words of their topics"


def options(tmp_path, **changes):
    given = {
        "stage": None,
        "again": False,
        "keep": True,
        "threads": 1,
        "folder": str(tmp_path / "files"),
    }
    return argparse.Namespace(**{**given, **changes})


@pytest.fixture
def measured(monkeypatch):
    """Stages are not run; which ones were asked for is noted."""
    asked = []

    def measure(point, stage, options):
        asked.append(stage)
        scale.folder_of(point, options).mkdir(parents=True, exist_ok=True)
        return {"status": "ok", "seconds": 1.0, "cpu_s": 1.0, "peak_mb": 100.0}

    monkeypatch.setattr(scale, "measure", measure)
    return asked


def test_a_second_start_measures_only_what_has_no_row(tmp_path, measured):
    path = tmp_path / "scale.csv"
    scale.run_point(scale.Rows(path), TINY, options(tmp_path, stage=["write", "parse"]))
    assert measured == ["write", "parse"]
    measured.clear()
    scale.run_point(scale.Rows(path), TINY, options(tmp_path, stage=["write", "parse", "prepare"]))
    assert measured == ["prepare"], "its files are still there"
    measured.clear()
    scale.run_point(scale.Rows(path), TINY, options(tmp_path, stage=["write", "parse"]))
    assert measured == []
    scale.run_point(scale.Rows(path), TINY, options(tmp_path, stage=["write"], again=True))
    assert measured == ["write"]


def test_files_that_are_gone_are_made_again_without_a_new_row(tmp_path, measured):
    rows = scale.Rows(tmp_path / "scale.csv")
    scale.run_point(rows, TINY, options(tmp_path, stage=["write", "prepare"], keep=False))
    measured.clear()
    scale.run_point(rows, TINY, options(tmp_path, stage=["Bonsai predict"]))
    assert measured == ["write", "prepare", "Bonsai fit", "Bonsai predict"]
    assert not rows.has(TINY, "Bonsai fit"), "it was not asked for"


def test_a_stage_that_failed_has_no_row_that_counts(tmp_path):
    rows = scale.Rows(tmp_path / "scale.csv")
    rows.add(TINY, "parse", {"status": "over 16 GB"})
    assert not scale.Rows(tmp_path / "scale.csv").has(TINY, "parse")
    assert len(rows.of("tiny", "parse")) == 0


def test_a_law_finds_the_exponents_and_the_price(tmp_path):
    rows = scale.Rows(tmp_path / "scale.csv")
    shape = Shape("made", 10_000, 5_000, 2_000, 40.0, 4.0)
    for point in scale.points(shape, [0.1, 0.2, 0.4], []):
        n, d, n_labels = point.n_train, point.n_features, point.n_labels
        seconds = 1e-6 * n**1.2 * d**0.5 * n_labels
        megabytes = 200 + 0.01 * n + 0.002 * d
        rows.add(point, "parse", {"status": "ok", "cpu_s": seconds, "peak_mb": megabytes})
    law = scale.law_of(rows, "made", "parse", below=shape)
    assert list(law.exponents.values()) == pytest.approx([1.2, 0.5, 1.0], abs=0.01)
    seconds, megabytes = law.price(shape)
    assert seconds == pytest.approx(1e-6 * 10_000**1.2 * 5_000**0.5 * 2_000, rel=0.02)
    assert megabytes == pytest.approx(200 + 100 + 10, rel=0.02)


def test_a_stage_over_its_memory_is_a_row_that_says_so(tmp_path):
    # The words of the topics of all labels take more than that alone.
    point = scale.SHAPES["Amazon-670K"].scaled(0.001, 1.0, 1.0)
    facts = scale.measure(point, "write", options(tmp_path, memory_gb=0.5, wall_s=600))
    assert facts == {"status": "over 0.5 GB"}


def test_no_exponent_is_negative(tmp_path):
    rows = scale.Rows(tmp_path / "scale.csv")
    shape = Shape("made", 10_000, 5_000, 2_000, 40.0, 4.0)
    for point, seconds in zip(scale.points(shape, [0.1, 0.2], []), (4, 3, 9, 3, 3), strict=True):
        rows.add(point, "parse", {"status": "ok", "cpu_s": seconds, "peak_mb": 300})
    law = scale.law_of(rows, "made", "parse")
    assert min(law.exponents.values()) >= 0
    assert law.price(shape)[0] >= law.price(shape.scaled(0.1, 0.1, 0.1))[0]
