"""Prepared arrays are those that were prepared, or an error that names the file and the remedy."""

import json
import os
import shutil

import numpy as np
import pytest

from benchmarks.common.digests import DamagedError
from benchmarks.data import verify
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import forget_unavailable, open_prepared, read_meta
from benchmarks.data.vectors import open_vectors, write_vectors


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return ensure("tiny-bow", tmp_path_factory.mktemp("data"))


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    """A copy of a prepared folder, as the first process of a run finds it."""
    monkeypatch.setenv(verify.RUN_VARIABLE, "this run")
    monkeypatch.setattr(verify, "_verified", {})
    return shutil.copytree(prepared, tmp_path / "tiny-bow")


@pytest.fixture
def digested(monkeypatch):
    """The names of the files that are read through, as they are."""
    names = []

    def counted(path):
        names.append(path.name)
        return true_digest(path)

    true_digest = verify.file_digest
    monkeypatch.setattr(verify, "file_digest", counted)
    return names


def flip(path, position=-1):
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def test_meta_holds_size_and_digest_of_every_array(folder):
    arrays = read_meta(folder)["arrays"]
    names = {path.name for path in folder.iterdir()} - {"meta.json"}
    assert set(arrays) == names
    assert {"train.bow.data.npy", "test.labels.indices.npy"} <= names
    for name, facts in arrays.items():
        assert facts["size"] == (folder / name).stat().st_size


@pytest.mark.parametrize(
    "name", ["train.bow.data.npy", "train.labels.indptr.npy", "test.labels.indices.npy"]
)
def test_a_flipped_byte_is_found_at_the_first_open_of_a_run(folder, name):
    status = (folder / name).stat()
    flip(folder / name)
    os.utime(folder / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DamagedError) as caught:
        open_prepared(folder)
    assert str(caught.value).startswith(f"{folder / name}: its content is not what was prepared")
    assert f"Delete {folder} and run the same command" in str(caught.value)


def test_an_index_that_would_crash_compiled_code_never_reaches_it(folder):
    path = folder / "test.labels.indices.npy"
    indices = np.load(path)
    indices[0] = 10**7
    np.save(path, indices)
    with pytest.raises(DamagedError, match="test.labels.indices.npy: its content"):
        open_prepared(folder)


def test_sizes_are_compared_at_every_open_and_contents_once_per_run(folder, digested, monkeypatch):
    open_prepared(folder)
    assert sorted(digested) == sorted(read_meta(folder)["arrays"])
    digested.clear()
    open_prepared(folder)
    assert digested == []
    cut = folder / "train.bow.indices.npy"
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-4])
    with pytest.raises(DamagedError, match=r"train.bow.indices.npy: .* bytes instead of the"):
        open_prepared(folder)
    assert digested == []
    cut.write_bytes(whole)
    monkeypatch.setenv(verify.RUN_VARIABLE, "the next run")
    open_prepared(folder)
    assert sorted(digested) == sorted(read_meta(folder)["arrays"])


def test_a_file_that_changes_within_a_run_is_read_again(folder, digested):
    open_prepared(folder)
    digested.clear()
    flip(folder / "train.bow.data.npy")
    with pytest.raises(DamagedError, match="train.bow.data.npy"):
        open_prepared(folder)


def test_verify_full_reads_all_at_every_open(folder, digested, monkeypatch):
    monkeypatch.setenv(verify.MODE_VARIABLE, verify.FULL)
    for _ in range(2):
        digested.clear()
        open_prepared(folder)
        assert sorted(digested) == sorted(read_meta(folder)["arrays"])


def test_outside_of_a_run_a_mark_holds(folder, digested, monkeypatch):
    monkeypatch.delenv(verify.RUN_VARIABLE)
    open_prepared(folder)
    digested.clear()
    open_prepared(folder)
    assert digested == []
    (folder.parent / ".tiny-bow.verified.json").write_bytes(b"\xff{")
    open_prepared(folder)
    assert digested, "a damaged mark is none"


def test_a_folder_that_cannot_be_written_to_is_read_through_once_per_process(
    folder, digested, monkeypatch
):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(verify, "write_json", refuse)
    monkeypatch.setattr(verify, "exclusive", refuse)
    open_prepared(folder)
    digested.clear()
    open_prepared(folder)
    assert digested == []


@pytest.mark.parametrize(("old", "new"), [('"A": 0.55', '"A": 0.65'), ('"n_test"', '"n_tent"')])
def test_a_changed_fact_is_found_and_the_dataset_prepared_again(folder, old, new):
    path = folder / "meta.json"
    checksum = read_meta(folder)["checksum"]
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DamagedError, match="meta.json: its content is not what was written"):
        open_prepared(folder)
    forget_unavailable(folder.parent)
    assert not path.exists()
    assert read_meta(ensure("tiny-bow", folder.parent))["checksum"] == checksum


def test_a_missing_or_cut_array_is_prepared_again_on_request(folder):
    (folder / "train.bow.data.npy").unlink()
    with pytest.raises(DamagedError, match="train.bow.data.npy: the prepared file cannot be read"):
        open_prepared(folder)
    open_prepared(ensure("tiny-bow", folder.parent))


def test_word_vectors_too(tmp_path):
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    write_vectors(tmp_path / "v", ["a", "b", "c"], vectors, {"name": "v"})
    words, read = open_vectors(tmp_path / "v")
    assert (words, read.tolist()) == (["a", "b", "c"], vectors.tolist())
    flip(tmp_path / "v/vectors.npy")
    with pytest.raises(DamagedError, match="vectors.npy: its content is not what was prepared"):
        open_vectors(tmp_path / "v")


def test_a_cell_on_damaged_data_is_an_error_that_says_so(run, files):
    flip(files / "data/mine/test.labels.indices.npy")
    record = run("Odd", how="wide-types")
    assert record["status"] == "error"
    assert "test.labels.indices.npy: its content is not what was prepared" in record["reason"]
    assert json.loads((files / "data/mine/meta.json").read_text())["n_train"] == 4
