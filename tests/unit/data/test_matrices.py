"""Matrices from users: every index, pointer, shape, type and value is checked before use."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.data import load
from benchmarks.data.content import Content, Parts
from benchmarks.data.errors import DataError
from benchmarks.data.matrices import check_content, load_array, load_sparse, positives

DENSE = np.array([[0, 1, 0, 2, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 4]], dtype=np.float32)


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def save(kind: str = "csr", **changes: Any) -> Path:
    """The arrays that save_npz would write, some of them changed; None leaves one out."""
    matrix = sparse.csr_matrix(DENSE).asformat(kind)
    arrays: dict[str, Any] = {"format": kind.encode(), "shape": matrix.shape, "data": matrix.data}
    if kind == "coo":
        arrays |= {"row": matrix.row, "col": matrix.col}
    else:
        arrays |= {"indices": matrix.indices, "indptr": matrix.indptr}
    np.savez("m.npz", **{k: v for k, v in (arrays | changes).items() if v is not None})
    return Path("m.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_what_scipy_writes_is_read(kind: str, dtype: type) -> None:
    dense = DENSE.astype(dtype)
    sparse.save_npz("m.npz", sparse.csr_matrix(dense).asformat(kind))
    read = load_sparse(Path("m.npz"))
    assert read.dtype == np.float32
    assert read.toarray().tolist() == dense.astype(np.float32).tolist()


def test_stored_zeros_go_and_duplicates_add_up() -> None:
    save(indices=[1, 1, 0, 4], data=[1.0, 2.0, 0.0, 4.0], indptr=[0, 2, 3, 4])
    read = load_sparse(Path("m.npz"))
    assert read.toarray().tolist() == [[0, 3, 0, 0, 0], [0] * 5, [0, 0, 0, 0, 4]]
    assert positives(read, "labels").data.tolist() == [1, 1]


BIG = 2**40


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("csr", {"indices": [1, 3, 0, 99]}, "column index 99 is outside 0..4"),
        ("csr", {"indices": [1, -3, 0, 4]}, "column index -3 is outside 0..4"),
        ("csr", {"indices": [1, 3, 0, -(10**6)]}, "column index -1000000 is outside"),
        ("csr", {"indices": np.array([1, 3, 0, BIG])}, f"column index {BIG} is outside 0..4"),
        ("csr", {"indices": np.array([1, 3, 0, 2**64 - 1], np.uint64)}, "column index -1 is"),
        ("csr", {"indices": [1.0, 3.5, 0.0, 4.0]}, "no lists of integers"),
        ("csr", {"indices": [[1, 3], [0, 4]]}, "no lists of integers"),
        ("csr", {"indices": [1, 3, 0]}, "4 values for 3 indices"),
        ("csr", {"indptr": [0, 2, 3]}, "indptr has 3 entries, not 4"),
        ("csr", {"indptr": [0, 3, 2, 4]}, "indptr does not rise from 0"),
        ("csr", {"indptr": [1, 2, 3, 4]}, "indptr does not rise from 0"),
        ("csr", {"indptr": [0, 2, 3, 3]}, "number of entries, 4"),
        ("csr", {"indptr": np.array([0, 2, 3, BIG])}, "number of entries, 4"),
        ("csr", {"indptr": np.array([0, -BIG, 3, 4])}, "indptr does not rise from 0"),
        ("csr", {"shape": [3, 4]}, "column index 4 is outside 0..3"),
        ("csr", {"shape": [10**12, 5]}, "indptr has 4 entries, not 1000000000001"),
        ("csr", {"shape": [3, -5]}, "its shape .3, -5. is no number of rows and columns"),
        ("csr", {"shape": [3.0, 5.0]}, "is no number of rows and columns"),
        ("csr", {"shape": [3]}, "is no number of rows and columns"),
        ("csr", {"data": np.array(["a", "b", "c", "d"])}, "values are <U1, not numbers"),
        ("csr", {"data": np.array([1, 2, 3, 4j])}, "values are complex128, not numbers"),
        ("csr", {"data": np.array([1, 2, None, 4])}, "no sparse matrix .*Object arrays"),
        ("csr", {"data": [1.0, 2.0, np.nan, 4.0]}, "row 1 holds NaN"),
        ("csr", {"data": [1.0, 2.0, 3.0, -np.inf]}, "row 2 holds NaN, infinity"),
        ("csr", {"data": [1e39, 2.0, 3.0, 4.0]}, "row 0 holds .* too large for float32"),
        ("csc", {"indices": [1, 0, 0, 3]}, "row index 3 is outside 0..2"),
        ("csc", {"indptr": [0, 1, 2, 3, 4]}, "indptr has 5 entries, not 6"),
        ("coo", {"row": [0, 0, 1, 3]}, "row index 3 is outside 0..2"),
        ("coo", {"col": [1, 3, 0, -1]}, "column index -1 is outside 0..4"),
        ("coo", {"col": [1, 3, 0]}, "4 row indices, 3 column indices"),
        ("csr", {"format": b"bsr"}, r"no sparse matrix .*bsr.*from matrix\.tocsr"),
        ("csr", {"format": None}, r"no sparse matrix .*format.*save_npz"),
        ("csr", {"indptr": None}, "no sparse matrix .*indptr"),
        ("csr", {"format": [1, 2]}, "no sparse matrix"),
    ],
)
def test_wrong_arrays_are_named(kind: str, changes: dict[str, Any], message: str) -> None:
    path = save(kind, **changes)
    with pytest.raises(DataError, match=rf"m\.npz: .*{message}"):
        load_sparse(path)


def npz_card(labels: str = "m.npz") -> dict[str, Any]:
    part = {"features": "x.npz", "labels": labels}
    sparse.save_npz("x.npz", sparse.csr_matrix(DENSE))
    return {"mine": {"format": "npz", "train": part, "test": part}}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"text", b"\x93NUMPY"])
def test_files_that_are_no_archives(content: bytes) -> None:
    Path("m.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"m\.npz: no sparse matrix .*scipy\.sparse\.save_npz"):
        load("mine", cards=npz_card())


def test_a_single_array_is_no_sparse_matrix() -> None:
    np.save("m.npy", DENSE)
    Path("m.npy").rename("m.npz")
    with pytest.raises(DataError, match=r"m\.npz: no sparse matrix .*single \.npy"):
        load("mine", cards=npz_card())


@given(st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_cut_or_changed_byte_gives_a_sound_matrix_or_a_sentence(data: st.DataObject) -> None:
    whole = bytearray(save().read_bytes())
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    Path("m.npz").write_bytes(whole)
    with contextlib.suppress(DataError):
        matrix = load_sparse(Path("m.npz"))
        matrix.check_format(full_check=True)  # scipy's own, independent check; a ValueError
        assert np.isfinite(matrix.data).all()


TYPES = st.sampled_from(
    [np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64, bool]
)
NUMBERS = st.lists(
    st.integers(-3, 7) | st.sampled_from([2**31, 2**40, 2**63, -(10**6), 1e39, np.nan, np.inf]),
    max_size=8,
)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    with np.errstate(all="ignore"):
        made = np.array(draw(NUMBERS), dtype=np.float64).astype(draw(TYPES))
    return made.reshape(draw(st.sampled_from([(-1,), (1, -1)]))) if draw(st.booleans()) else made


@given(st.data())
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_arrays_give_a_sound_matrix_or_a_sentence(data: st.DataObject) -> None:
    """Archives that zip finds nothing wrong with: what they hold is of any type, shape and size."""
    kind = data.draw(st.sampled_from(["csr", "csc", "coo"]))
    names = ["row", "col"] if kind == "coo" else ["indices", "indptr"]
    changed = data.draw(st.lists(st.sampled_from([*names, "data", "shape"]), min_size=1))
    path = save(kind, **{name: data.draw(arrays()) for name in changed})
    with contextlib.suppress(DataError):
        matrix = load_sparse(path)
        matrix.check_format(full_check=True)
        assert np.isfinite(matrix.data).all()
        assert matrix.dtype == np.float32
        if matrix.shape == DENSE.shape:
            load("mine", cards=npz_card())


@pytest.mark.parametrize("value", [-1, -0.5])
def test_a_stored_minus_one_is_no_label(value: float) -> None:
    labels = sparse.csr_matrix(np.array([[1, 0], [0, value], [1, 1]]))
    sparse.save_npz("m.npz", labels)
    with pytest.raises(DataError, match=rf"m\.npz: row 1 has a label of value {value:g}\."):
        load("mine", cards=npz_card())
    np.save("X.npy", np.array([[1, 2], [2, 0], [1, 1]]))
    np.save("y.npy", labels.toarray())
    Path("embed.txt").write_text("the 0.1\ncat 0.3\n")
    part = {"tokens": "X.npy", "labels": "y.npy"}
    card = {"format": "token-arrays", "train": part, "test": part}
    with pytest.raises(DataError, match=rf"y\.npy: row 1 has a label of value {value:g}\."):
        load("mine", cards={"mine": card | {"options": {"vocabulary": "embed.txt"}}})


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0], [-1]], "label -1 does not fit"),
        ([[0], [7]], "label 7 does not fit n_labels: 3"),
        ([[0], [10**12]], "label 1000000000000 does not fit"),
        ([[0], [10**30]], "does not fit"),
        ([[], []], "train: no document has a label"),
    ],
)
@pytest.mark.parametrize("n_labels", [3, None])
def test_label_ids_of_json_lines(
    labels: list[list[int]], message: str, n_labels: int | None
) -> None:
    if labels == [[0], [7]] and n_labels is None:
        return
    rows = [f'{{"text": "some words", "labels": {own}}}\n' for own in labels]
    Path("d.jsonl").write_text("".join(rows))
    options = {"label_ids": True} | ({} if n_labels is None else {"n_labels": n_labels})
    card = {"format": "jsonl", "train": "d.jsonl", "test": "d.jsonl", "options": options}
    with pytest.raises(DataError, match=message):
        load("mine", cards={"mine": card})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 5 3000000000\n0 1:1\n1 2:1\n", "train, labels: 3,000,000,000 columns"),
        ("2 1000000000000 3\n0 1:1\n1 2:1\n", "train, features: 1,000,000,000,000 columns"),
        ("2147483646 1:1\n", "train, labels: 2,147,483,647 columns, more than the 50,000,000"),
        ("0 5 3\n", "train: there are no documents"),
        ("2 5 3\n 1:1\n 2:1\n", "train: no document has a label"),
    ],
)
def test_text_files_that_declare_too_much_or_too_little(text: str, message: str) -> None:
    Path("d.txt").write_text(text)
    with pytest.raises(DataError, match=re.escape(message)):
        load("mine", cards={"mine": {"format": "xc", "train": "d.txt", "test": "d.txt"}})


def test_tables_of_numbers() -> None:
    np.save("a.npy", DENSE)
    assert load_array(Path("a.npy")).tolist() == DENSE.tolist()
    whole = Path("a.npy").read_bytes()
    for content in (b"", whole[:-5], whole[:20], b"text"):
        Path("a.npy").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.npy: no readable \.npy array .*numpy\.save"):
            load_array(Path("a.npy"))
    np.savez("a.npz", DENSE)
    with pytest.raises(DataError, match="an archive of arrays"):
        load_array(Path("a.npz"))
    for wrong in (np.arange(3), np.array([["a"]])):
        np.save("a.npy", wrong)
        with pytest.raises(DataError, match="is no table of numbers"):
            load_array(Path("a.npy"))


def content(**changes: Any) -> Content:
    """Sound train and test, but for arrays of train's labels or features put in place."""
    train, test = (
        Parts(sparse.csr_matrix(np.eye(3, dtype=np.float32)), bow=sparse.csr_matrix(DENSE))
        for _ in range(2)
    )
    for name, value in changes.items():
        what, _, array = name.partition("__")
        setattr(getattr(train, what), array, value)
    return Content({"train": train, "test": test})


def test_every_format_ends_in_the_same_check() -> None:
    check_content(content())
    for changes, message in (
        ({"bow__indices": np.array([1, 3, 0, 5], np.int32)}, "train, features: column index 5"),
        ({"labels__indices": np.array([0, -1, 2], np.int32)}, "train, labels: column index -1"),
        ({"bow__indptr": np.array([0, 3, 2, 4], np.int32)}, "train, features: indptr"),
        ({"labels__data": np.array([1, -1, 1], np.float32)}, "train, labels: a value other than 1"),
        ({"bow__data": np.array([1, 2, 3, np.nan], np.float32)}, "train, features: row 2"),
        ({"bow__data": np.ones(4)}, "train, features: no float32 value"),
    ):
        with pytest.raises(DataError, match=message):
            check_content(content(**changes))
    other = Parts(sparse.csr_matrix(np.eye(3, 4, dtype=np.float32)))
    with pytest.raises(DataError, match="row 0 holds NaN"):
        positives(sparse.csr_matrix([[np.nan]]), "labels")
    with pytest.raises(DataError, match="disagree on the number of columns of labels"):
        check_content(Content({"train": content().splits["train"], "test": other}))
