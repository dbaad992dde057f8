"""The prepared format: what goes in comes out, mapped and not copied."""

import json

import numpy as np
import pytest

from benchmarks.common.atomic import atomic_folder, atomic_path, write_text
from benchmarks.data import load
from benchmarks.data.prepared import Texts, open_prepared, read_meta, write


@pytest.mark.parametrize("name", ["tiny-bow", "tiny-text"])
def test_round_trip(name, tmp_path):
    splits = load(name)
    write(tmp_path / "set", *splits, splits[0].meta)
    for before, after in zip(splits, open_prepared(tmp_path / "set"), strict=True):
        assert (before.labels != after.labels).nnz == 0
        assert (before.complete != after.complete).nnz == 0
        assert before.inputs.kinds == after.inputs.kinds
        if before.inputs.bow is not None:
            assert (before.inputs.bow != after.inputs.bow).nnz == 0
            ones = np.ones(before.inputs.bow.shape[1])
            assert (before.inputs.bow @ ones == after.inputs.bow @ ones).all()
        if before.inputs.texts is not None:
            assert list(before.inputs.texts) == list(after.inputs.texts)
            assert (before.inputs.tokens.ids == after.inputs.tokens.ids).all()
            assert list(before.inputs.tokens.vocabulary) == list(after.inputs.tokens.vocabulary)


def test_opening_maps_and_does_not_copy(tmp_path):
    write(tmp_path / "set", *load("tiny-bow"), {"A": 0.55, "B": 1.5})
    train, _ = open_prepared(tmp_path / "set")
    for array in (train.inputs.bow.data, train.inputs.bow.indices, train.labels.indices):
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable


def test_the_checksum_follows_the_content(tmp_path):
    train, test = load("tiny-bow")
    write(tmp_path / "a", train, test, {})
    write(tmp_path / "b", train, test, {})
    train.inputs.bow.data[0] += 1
    write(tmp_path / "c", train, test, {})
    train.inputs.bow.data[0] -= 1
    a, b, c = (read_meta(tmp_path / name)["checksum"] for name in "abc")
    assert a == b != c


def test_a_folder_of_another_format_is_refused_with_a_remedy(tmp_path):
    write(tmp_path / "set", *load("tiny-bow"), {})
    meta = json.loads((tmp_path / "set/meta.json").read_text())
    (tmp_path / "set/meta.json").write_text(json.dumps({**meta, "format": 99}))
    with pytest.raises(ValueError, match="another version.* Delete .* prepared again"):
        open_prepared(tmp_path / "set")
    with pytest.raises(FileNotFoundError, match="not a prepared dataset"):
        open_prepared(tmp_path / "elsewhere")


def test_texts_keep_every_character():
    texts = ["", "plain", "née \u2603", "line\nbreak"]
    packed = Texts.pack(texts)
    assert list(packed) == texts
    assert packed[-1] == texts[-1]
    assert packed[1:3] == texts[1:3]
    with pytest.raises(IndexError):
        packed[4]


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    target = tmp_path / "file.txt"
    write_text(target, "old")

    def failing_write():
        with atomic_path(target) as temporary:
            temporary.write_text("half of the n")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        failing_write()
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_a_folder_that_fails_leaves_the_old_folder(tmp_path):
    with atomic_folder(tmp_path / "set") as temporary:
        (temporary / "a").write_text("old")

    def failing_write():
        with atomic_folder(tmp_path / "set") as temporary:
            (temporary / "a").write_text("new")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        failing_write()
    assert (tmp_path / "set/a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["set"]
