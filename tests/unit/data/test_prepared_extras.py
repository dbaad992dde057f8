"""The prepared format: what is written is what is opened, without reading it all."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.prepared import open_extra, open_prepared, read_meta, write
from benchmarks.data.split import Inputs, Split
from benchmarks.data.text import tokenise


def make(rows: int, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    bow = sparse.random(rows, 6, 0.5, "csr", np.float32, rng)
    labels = sparse.csr_matrix((rng.random((rows, 4)) < 0.4).astype(np.float32))
    return Split(Inputs(bow=bow), labels)


def with_texts(split: Split, texts: list[str], train_texts: list[str]) -> Split:
    tokens = tokenise([train_texts, texts], jobs=1)[1]
    return Split(Inputs(split.inputs.bow, tokens, texts), split.labels)


def test_round_trip_with_texts_and_a_further_split(tmp_path: Path) -> None:
    texts = ["a cat", "", "zwei Wörter 猫"]
    splits = [with_texts(make(3, seed), texts, texts) for seed in range(3)]
    write(
        tmp_path / "d", *splits[:2], {"name": "d"}, extra={"dev": splits[2]}, files={"x.txt": "y"}
    )
    opened = [*open_prepared(tmp_path / "d"), open_extra(tmp_path / "d", "dev")]
    for before, after in zip(splits, opened, strict=True):
        assert before.inputs.bow is not None
        assert after.inputs.bow is not None
        assert (before.inputs.bow != after.inputs.bow).nnz == 0
        assert (before.labels != after.labels).nnz == 0
        assert list(after.inputs.texts or []) == texts
        assert after.inputs.tokens is not None
        assert before.inputs.tokens is not None
        np.testing.assert_array_equal(after.inputs.tokens.ids, before.inputs.tokens.ids)
        assert list(after.inputs.tokens.vocabulary) == list(before.inputs.tokens.vocabulary)
        assert after.inputs.tokens.vocabulary[2:4] == before.inputs.tokens.vocabulary[2:4]
    assert (tmp_path / "d/x.txt").read_text() == "y"
    assert read_meta(tmp_path / "d")["n_dev"] == 3
    with pytest.raises(KeyError, match="no split 'labels'"):
        open_extra(tmp_path / "d", "labels")


def test_opening_maps_the_arrays_and_reads_no_words(tmp_path: Path) -> None:
    split = with_texts(make(2, 0), ["a", "b"], ["a", "b"])
    write(tmp_path / "d", split, split, {})
    train, _ = open_prepared(tmp_path / "d")
    assert train.inputs.bow is not None
    assert isinstance(train.inputs.bow.data.base, np.memmap)
    assert not train.inputs.bow.data.flags.writeable
    (tmp_path / "d/vocabulary.txt").write_text("<PAD>\n<UNK>\nlate")
    assert train.inputs.tokens is not None
    assert list(train.inputs.tokens.vocabulary) == ["<PAD>", "<UNK>", "late"]
    again = pickle.loads(pickle.dumps(train.inputs.tokens.vocabulary))
    assert again[2] == "late"


def test_checksum_follows_the_content(tmp_path: Path) -> None:
    a, b = make(3, 1), make(3, 2)
    for name, (train, test) in {"ab": (a, b), "again": (a, b), "ba": (b, a)}.items():
        write(tmp_path / name, train, test, {"name": name})
    sums = {name: read_meta(tmp_path / name)["checksum"] for name in ("ab", "again", "ba")}
    assert sums["ab"] == sums["again"] != sums["ba"]


def test_other_formats_and_missing_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a prepared dataset"):
        open_prepared(tmp_path)
    (tmp_path / "meta.json").write_text(json.dumps({"format": 0}))
    with pytest.raises(ValueError, match=r"Delete .* prepared again"):
        open_prepared(tmp_path)
