"""The XC reader against a plain one, and its answer to every malformation."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parent))
import plain_xc

from benchmarks.data import xc
from benchmarks.data.errors import FormatError
from benchmarks.data.xc import read_matrix, read_xc, write_xc

GOOD = "3 10 5\n1,3 0:0.5 4:1e-2 9:3\n 2:1\n0 \n"


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "file.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def assert_same(path: Path, content: bytes) -> None:
    n_features, n_labels, labels, features = plain_xc.read(content)
    split = read_xc(path)
    bow = split.inputs.bow
    assert bow is not None
    assert bow.shape == (len(features), n_features)
    assert split.labels.shape == (len(labels), n_labels)
    for i, (own, row) in enumerate(zip(labels, features, strict=True)):
        start, end = split.labels.indptr[i : i + 2]
        assert split.labels.indices[start:end].tolist() == own
        start, end = bow.indptr[i : i + 2]
        ids = sorted(row)
        assert bow.indices[start:end].tolist() == ids
        # Bytes, so that -0.0 and 0.0 differ.
        assert bow.data[start:end].tobytes() == np.array([row[j] for j in ids], "f4").tobytes()


def test_reads_rows_with_and_without_labels(tmp_path: Path) -> None:
    split = read_xc(write(tmp_path, GOOD))
    assert split.labels.toarray().tolist() == [[0, 1, 0, 1, 0], [0] * 5, [1, 0, 0, 0, 0]]
    assert split.inputs.bow is not None
    dense = split.inputs.bow.toarray()
    assert dense.shape == (3, 10)
    assert dense[0, [0, 4, 9]].tolist() == [0.5, np.float32(0.01), 3.0]
    assert dense[1, 2] == 1
    assert dense.sum() == pytest.approx(4.51)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda t: t.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda t: t.rstrip("\n"), id="no final newline"),
        pytest.param(lambda t: t.replace("\n", "\r\n").rstrip("\n"), id="ends in CR"),
        pytest.param(lambda t: t + "\n\n\r\n", id="blank lines at the end"),
        pytest.param(lambda t: "\ufeff" + t, id="byte order mark"),
        pytest.param(lambda t: t.replace("0:0.5 4:1e-2 9:3", "9:3 0:0.5 4:1e-2"), id="unsorted"),
        pytest.param(lambda t: t.replace("1,3", "3,1,3"), id="labels unsorted and repeated"),
        pytest.param(lambda t: t.replace(" 4:", "\t  4:"), id="tabs and runs of spaces"),
        pytest.param(lambda t: t.replace("\n 2:1", "\n2:1"), id="no labels, no space"),
    ],
)
def test_harmless_irregularities_change_nothing(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    plain = read_xc(write(tmp_path, GOOD))
    other = read_xc(write(tmp_path, change(GOOD)))
    for a, b in ((plain.labels, other.labels), (plain.inputs.bow, other.inputs.bow)):
        assert a is not None
        assert b is not None
        assert a.shape == b.shape
        assert (a != b).nnz == 0
        assert b.has_canonical_format


def test_missing_header_sizes_come_from_ids_or_arguments(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.split("\n", 1)[1])
    split = read_xc(path)
    assert split.inputs.bow is not None
    assert (split.inputs.bow.shape, split.labels.shape) == ((3, 10), (3, 4))
    split = read_xc(path, n_features=20, n_labels=5)
    assert split.inputs.bow is not None
    assert (split.inputs.bow.shape, split.labels.shape) == ((3, 20), (3, 5))


def test_ids_may_count_from_one(tmp_path: Path) -> None:
    split = read_xc(write(tmp_path, "1,2 1:5 3:6\n"), first_feature=1, first_label=1)
    assert split.inputs.bow is not None
    assert split.inputs.bow.toarray().tolist() == [[5, 0, 6]]
    assert split.labels.toarray().tolist() == [[1, 1]]
    with pytest.raises(FormatError, match=r"feature id 0 is outside 1\.\."):
        read_xc(write(tmp_path, "1,2 0:5 3:6\n"), first_feature=1)


def test_header_only_with_no_rows(tmp_path: Path) -> None:
    split = read_xc(write(tmp_path, "0 7 2\n"))
    assert split.inputs.bow is not None
    assert (split.inputs.bow.shape, split.labels.shape) == ((0, 7), (0, 2))


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        pytest.param("", None, "the file is empty", id="empty"),
        pytest.param("\n\r\n", None, "the file is empty", id="only newlines"),
        pytest.param("4 10 5\n0 1:1\n", 1, "header says 4 documents and the file has 1", id="rows"),
        pytest.param("1 10 5\n0 1:1\n 2:1\n", 1, "1 documents and the file has 2", id="more rows"),
        pytest.param("2 10 5\n0 1:1\n1 10:1\n", 3, r"feature id 10 is outside 0\.\.9", id="id"),
        pytest.param("2 10 5\n0 1:1\n5 1:1\n", 3, r"label id 5 is outside 0\.\.4", id="label"),
        pytest.param(
            "1 10 5\n0 -1:1\n", 2, "'feature:value' was expected at '-1:1'", id="negative"
        ),
        pytest.param("1 10 5\n-1 1:1\n", 2, "a label id was expected at '-1'", id="negative label"),
        pytest.param("1 10 5\n0 1:nan\n", 2, "'nan' is not a finite number", id="nan"),
        pytest.param("1 10 5\n0 1:-inf\n", 2, "'-inf' is not a finite number", id="inf"),
        pytest.param("1 10 5\n0 1:1e39\n", 2, "'1e39' is not a finite number", id="overflow"),
        pytest.param("1 9 5\n0 1:1e400\n", 2, "'1e400' is not a finite", id="double overflow"),
        pytest.param("1 9 5\n0 1:3.40282357e38\n", 2, "finite", id="just above float32"),
        pytest.param("1 10 5\n0 1:one\n", 2, "'one' is not a finite number", id="text value"),
        pytest.param("1 10 5\n0 1:0x1p3\n", 2, "'0x1p3' is not", id="hexadecimal"),
        pytest.param("1 10 5\n0 1:1_0\n", 2, "'1_0' is not", id="underscore"),
        pytest.param("1 10 5\n0 1:\n", 2, "'' is not a finite number", id="no value"),
        pytest.param("1 10 5\n0 1:2:3\n", 2, "'2:3' is not", id="two colons"),
        pytest.param("1 10 5\n0 word\n", 2, "expected at 'word'", id="text feature"),
        pytest.param("1 10 5\ncat 1:1\n", 2, "label id was expected at 'cat'", id="text label"),
        pytest.param("1 10 5\n1, 1:1\n", 2, "label id was expected", id="trailing comma"),
        pytest.param("1 10 5\n1.5 1:1\n", 2, r"expected at '.5'", id="fractional label"),
        pytest.param("1 10 5\n0 3:1 1:1 3:1\n", 2, "feature id 3 occurs more than", id="repeated"),
        pytest.param("1 10 5\n0 1:1\r 2:1\n", 2, "a carriage return within the line", id="lone CR"),
        pytest.param("0 1:1\n\n1 2:1\n", 2, "the line is empty", id="empty line, no header"),
        pytest.param("5 3\n0 1:1\n", 1, "header is three integers", id="two-number header"),
        pytest.param("0 99999999999999999999:1\n", 1, "outside 0..2147483647", id="huge id"),
        pytest.param(b"1 10 5\n0 1:1\x00\n", 2, "expected at", id="NUL"),
        pytest.param("<!DOCTYPE html>\n<html>", 1, "label id was expected", id="a web page"),
    ],
)
def test_malformed_files_end_in_an_error_with_line_and_remedy(
    tmp_path: Path, content: str | bytes, line: int | None, problem: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(FormatError, match=problem) as caught:
        read_xc(path)
    assert caught.value.line == line
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith((".", ".)"))


def test_header_against_expected_sizes(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="header says 10 features where 11 were expected"):
        read_xc(write(tmp_path, GOOD), n_features=11)


def test_repeated_features_can_be_added(tmp_path: Path) -> None:
    split = read_xc(write(tmp_path, "1 10 5\n0 3:1 1:1 3:2\n"), repeated="sum")
    assert split.inputs.bow is not None
    assert split.inputs.bow.toarray()[0, :4].tolist() == [0, 1, 0, 3]
    with pytest.raises(FormatError, match="feature id 3 add up to more"):
        read_xc(write(tmp_path, "1 10 5\n0 3:3e38 1:1 3:3e38\n"), repeated="sum")


def test_gzip_whole_cut_and_damaged(tmp_path: Path) -> None:
    whole = gzip.compress(GOOD.encode())
    assert read_xc(write(tmp_path, whole)).labels.nnz == 3
    for damaged in (whole[:-12], whole[:14], whole[:15] + b"\xff\xff" + whole[17:]):
        with pytest.raises(FormatError, match="the gzip stream is cut or damaged"):
            read_xc(write(tmp_path, damaged))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.txt does not exist"):
        read_xc(tmp_path / "gone.txt")


def test_label_matrix(tmp_path: Path) -> None:
    matrix = read_matrix(write(tmp_path, "3 4\n0:1 3:1\n\n2:1\n"))
    assert matrix.toarray().tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_result_does_not_depend_on_blocks_or_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(300):
        ids = rng.choice(50, size=rng.integers(0, 20), replace=False)
        values = " ".join(f"{i}:{rng.random():.6g}" for i in ids)
        lines.append(",".join(map(str, rng.integers(0, 9, size=rng.integers(0, 4)))) + " " + values)
    content = "300 50 9\n" + "\n".join(lines) + "\n\n\n"
    path = write(tmp_path, content)
    whole = read_xc(path, threads=1)
    for size, threads in ((7, 1), (64, 3), (1000, 2)):
        monkeypatch.setattr(xc, "BLOCK_BYTES", size)
        assert_same(path, content.encode())
        pieces = read_xc(path, threads=threads)
        assert whole.inputs.bow is not None
        assert pieces.inputs.bow is not None
        assert (whole.inputs.bow != pieces.inputs.bow).nnz == 0
        assert (whole.labels != pieces.labels).nnz == 0
    broken = write(tmp_path, content.replace(lines[200], "0 1:x"))
    with pytest.raises(FormatError) as caught:
        read_xc(broken, threads=3)
    assert caught.value.line == 202


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(min_value=-1e38, max_value=1e38).map(repr),
    st.from_regex(plain_xc.NUMBER, fullmatch=True),
    # Halfway between two float32, and a digit to either side: where rounding is hardest.
    st.integers(2**23, 2**24 - 1).flatmap(
        lambda m: st.sampled_from([f"{m}.5", f"{m}.50000000000000000001", f"{m}.4999999999999999"])
    ),
    st.integers(2**23, 2**24 - 1).map(lambda m: f"{(2 * m + 1) / 2**40:.40f}"),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=30))
@example(["1e-46", "7.1e-46", "1.17549435e-38", "1e-400", "-0", "0e999", "123456789012345678901"])
@example(["0." + "0" * 50 + "1", "1" + "0" * 30, "16777217", "16777217.0000000000000000000001"])
def test_numbers_are_those_of_python(tmp_path_factory: pytest.TempPathFactory, tokens) -> None:  # type: ignore[no-untyped-def]
    good = []
    for token in tokens:
        try:
            plain_xc.number(token)
            good.append(token)
        except plain_xc.BadError:
            pass
    content = "0 " + " ".join(f"{i}:{token}" for i, token in enumerate(good)) + "\n"
    path = write(tmp_path_factory.getbasetemp(), content)
    assert_same(path, content.encode())


def test_many_undecided_numbers(tmp_path: Path) -> None:
    """More numbers than the kernel has room for that only ``float`` can round."""
    tokens = [f"{i}:{8388609 + 2 * i}.5{'0' * 20}{i % 2}" for i in range(500)]
    content = ("0 " + " ".join(tokens) + "\n").encode()
    assert_same(write(tmp_path, content), content)


entry = st.tuples(st.integers(0, 12), numbers).map(lambda t: f"{t[0]}:{t[1]}")
row = st.tuples(
    st.lists(st.integers(0, 6).map(str), max_size=4).map(",".join),
    st.sampled_from([" ", "  ", "\t", ""]),
    st.lists(entry, max_size=6).map(" ".join),
    st.sampled_from(["\n", "\n", "\n", "\r\n", " \n"]),
).map("".join)
header = st.sampled_from(["", "", "3 13 7\n", "2 13 7\n", "3 5 3\n", "3 13 7 \r\n", "3 7\n"])
document = st.tuples(header, st.lists(row, max_size=4).map("".join)).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A document, mostly right, with a few bytes put in or taken out."""
    text = bytearray(draw(document).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        if draw(st.booleans()):
            text[at:at] = draw(st.sampled_from([b" ", b":", b",", b"\n", b"\r", b"-", b"e", b"x"]))
        else:
            del text[at : at + 1]
    return bytes(text)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_fuzz_against_the_plain_reader(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = write(tmp_path_factory.getbasetemp(), content)
    try:
        plain_xc.read(content)
    except plain_xc.BadError:
        with pytest.raises(FormatError):
            read_xc(path)
    else:
        assert_same(path, content)


def test_what_is_written_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    bow = sparse.random(40, 9, 0.15, "csr", np.float32, rng)
    labels = sparse.csr_matrix((rng.random((40, 5)) < 0.3).astype(np.float32))
    lengths = np.diff(bow.indptr), np.diff(labels.indptr)
    assert all((part == 0).any() for part in lengths), "rows without words, and without labels"
    write_xc(tmp_path / "x.txt", bow, labels)
    split = read_xc(tmp_path / "x.txt")
    for read, written in ((split.inputs.bow, bow), (split.labels, labels)):
        assert read.shape == written.shape
        np.testing.assert_array_equal(read.toarray(), written.toarray())


def test_numbers_of_any_length_are_read_whole(tmp_path: Path) -> None:
    """Sixty zeros before the digits that matter, and an exponent after as many digits."""
    path = tmp_path / "long.txt"
    path.write_text(f"1 2 1\n0 0:0.{'0' * 70}1e72 1:{'1' * 70}e-69\n")
    bow = read_xc(path).inputs.bow
    assert bow is not None
    assert bow.data.tolist() == [10.0, np.float32(float("1" * 70 + "e-69"))]
