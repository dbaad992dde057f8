"""The XC repository's text format, read by all cores in one pass.

A file starts with ``points features labels``; each further line is one document,
``l1,l2 f:v f:v ...``, ids from 0; a line that starts with a space has no labels. LIBSVM's
multi-label format is the same without a header and with features from 1.

The file is read in blocks of whole lines, plain or gzipped; each block is parsed by a compiled
kernel in a thread of its own, and the pieces are joined in order, so the result does not depend
on the number of threads. At most a few blocks are held besides the arrays.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, NoReturn

import joblib
import numpy as np
from scipy import sparse

from benchmarks.data import _xc_kernels as kernels
from benchmarks.data import streams
from benchmarks.data.errors import FormatError
from benchmarks.data.split import Inputs, Split
from benchmarks.data.streams import open_bytes

BLOCK_BYTES = 2 << 20
ID_LIMIT = 2**31
_HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+(\d{1,18}))?[ \t]*\r?\n?")
"""Whole numbers; one of more digits counts nothing that there is."""
_NUMBER = re.compile(rb"\S*")
_SHOWN = re.compile(rb"\S{0,60}")
"""As much of a token as an error quotes."""
_BOM = b"\xef\xbb\xbf"

Repeated = Literal["error", "sum"]


@dataclass(frozen=True)
class _Layout:
    """What every block of one file is parsed against."""

    with_labels: bool
    n_rows: int | None
    n_features: int | None
    n_labels: int | None
    first_feature: int
    first_label: int
    repeated: Repeated


@dataclass
class _Piece:
    """The arrays of one block; ends are counted within the block."""

    feature_ends: np.ndarray
    features: np.ndarray
    values: np.ndarray
    label_ends: np.ndarray
    labels: np.ndarray
    blank_tail: int
    """How many lines at the end of the block are blank to the last byte."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory, several times the text's where numbers are short."""
        arrays = (self.feature_ends, self.features, self.values, self.label_ends, self.labels)
        return sum(array.nbytes for array in arrays)


@dataclass
class _BlockError(Exception):
    """A block's first fault: a kernel's code, the row within the block, the token."""

    code: int
    row: int
    token: str


_REPEATED_FEATURE = -1
_SUM_OVERFLOW = -2


def read_xc(
    path: str | Path,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    first_feature: int = 0,
    first_label: int = 0,
    repeated: Repeated = "error",
    threads: int | None = None,
) -> Split:
    """Read a file in XC (or multi-label LIBSVM) format, plain or ``.gz``.

    Without a header the numbers of features and labels are ``n_features`` and ``n_labels``, or
    one more than the largest id seen. Feature ids may be unsorted; a repeated one is an error
    unless ``repeated`` is ``"sum"``. Labels repeated within a document count once. Values are
    those of ``float`` rounded to float32. Raises :class:`FormatError` on anything else.
    """
    path = Path(path)
    bow, labels, header = _read(
        path, True, n_features, n_labels, first_feature, first_label, repeated, threads
    )
    assert labels is not None
    meta = {
        "source": str(path),
        "header": header,
        "n_features": bow.shape[1],
        "n_labels": labels.shape[1],
    }
    return Split(Inputs(bow=bow), labels, meta)


def read_matrix(
    path: str | Path, *, n_columns: int | None = None, threads: int | None = None
) -> sparse.csr_matrix:
    """Read a sparse matrix in the XC repository's ``trn_X_Y.txt`` form: ``rows columns``, then
    ``column:value ...`` on each line."""
    matrix, _, _ = _read(Path(path), False, n_columns, None, 0, 0, "error", threads)
    return matrix


def write_xc(
    path: str | Path, bow: sparse.csr_matrix, labels: sparse.csr_matrix, value: str = ".9g"
) -> None:
    """Write a file in XC format; nine digits are enough to read every float32 back as it was."""
    with Path(path).open("w", encoding="ascii") as file:
        file.write(f"{bow.shape[0]} {bow.shape[1]} {labels.shape[1]}\n")
        for row in range(bow.shape[0]):
            own = labels.indices[labels.indptr[row] : labels.indptr[row + 1]]
            span = slice(bow.indptr[row], bow.indptr[row + 1])
            pairs = zip(bow.indices[span].tolist(), bow.data[span].tolist(), strict=True)
            file.write(",".join(map(str, own)) + "".join(f" {j}:{v:{value}}" for j, v in pairs))
            file.write("\n")


def _read(
    path: Path,
    with_labels: bool,
    n_features: int | None,
    n_labels: int | None,
    first_feature: int,
    first_label: int,
    repeated: Repeated,
    threads: int | None,
) -> tuple[sparse.csr_matrix, sparse.csr_matrix | None, bool]:
    if repeated not in ("error", "sum"):
        raise ValueError(f"repeated is {repeated!r}; it can be 'error' or 'sum'")
    workers = threads or joblib.cpu_count()
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; check the path in the dataset's card")
    with open_bytes(path) as stream, ThreadPoolExecutor(workers) as pool:
        blocks = _blocks(stream, path)
        first = next(blocks, b"")
        if not first.removeprefix(_BOM).strip(b"\r\n"):
            raise FormatError(path, None, "the file is empty", "Fetch or write it again.")
        header, first = _header(first, with_labels)
        n_rows = None
        if header is not None:
            n_rows = header[0]
            n_features = _agree(path, "features", header[1], n_features)
            n_labels = _agree(path, "labels", header[2], n_labels) if with_labels else None
        layout = _Layout(
            with_labels, n_rows, n_features, n_labels, first_feature, first_label, repeated
        )
        pieces: deque[_Piece] = deque()
        pending: deque[Future[_Piece]] = deque()
        lines_before = 0 if header is None else 1
        room = streams.text_limit()

        def collect() -> None:
            nonlocal lines_before, room
            try:
                piece = pending.popleft().result()
            except _BlockError as fault:
                _explain(path, lines_before + fault.row + 1, fault, layout)
            lines_before += len(piece.feature_ends)
            pieces.append(piece)
            room -= piece.nbytes
            if room < 0:
                raise streams.too_much(path, lines_before)

        block: bytes | None = first
        while block is not None:
            if block:
                pending.append(pool.submit(_parse, block, layout))
            if len(pending) > workers:
                collect()
            block = next(blocks, None)
        while pending:
            collect()
    return *_join(path, pieces, layout), header is not None


def _blocks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """The file in blocks that end at line ends (one is added where the file has none)."""
    parts: list[bytes] = []
    lines = 0
    while read := stream.read(BLOCK_BYTES):
        lines += read.count(b"\n")
        cut = read.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, read[:cut]])
            parts = [read[cut:]] if cut < len(read) else []
        else:
            parts.append(read)
            if sum(map(len, parts)) > streams.LINE_LIMIT:
                raise streams.too_long(path, lines + 1)
    if parts:
        yield b"".join([*parts, b"\n"])


def _header(first: bytes, with_labels: bool) -> tuple[tuple[int, int, int] | None, bytes]:
    """The header's numbers, if the first line is one, and the block without it.

    Three bare integers cannot be a document, as features have colons and labels commas.
    """
    first = first.removeprefix(_BOM)
    line, newline, rest = first.partition(b"\n")
    match = _HEADER.fullmatch(line + newline)
    if match is None or (match[3] is not None) != with_labels:
        return None, first
    return (int(match[1]), int(match[2]), int(match[3] or 0)), rest


def _agree(path: Path, what: str, header: int, wanted: int | None) -> int:
    if wanted is not None and wanted != header:
        raise FormatError(
            path,
            1,
            f"the header says {header} {what} where {wanted} were expected",
            "Train and test must share one numbering; see that both files are of one dataset.",
        )
    return header


def _parse(block: bytes, layout: _Layout) -> _Piece:
    buffer = np.frombuffer(block, dtype=np.uint8)
    lines, colons, commas = kernels.count(buffer)
    feature_ends = np.empty(lines, np.int64)
    label_ends = np.empty(lines, np.int64)
    features = np.empty(colons, np.int32)
    values = np.empty(colons, np.float32)
    labels = np.empty(commas + lines, np.int32)
    undecided = np.empty((64, 2), np.int64)
    while True:
        code, at, rows, n_values, n_labels, n_undecided, disorder = kernels.fill(
            buffer,
            layout.with_labels,
            layout.first_feature,
            ID_LIMIT if layout.n_features is None else min(layout.n_features, ID_LIMIT),
            layout.first_label,
            ID_LIMIT if layout.n_labels is None else min(layout.n_labels, ID_LIMIT),
            layout.n_rows is not None,
            feature_ends,
            features,
            values,
            label_ends,
            labels,
            undecided,
        )
        if code == kernels.OK and n_undecided > len(undecided):
            undecided = np.empty((n_undecided, 2), np.int64)
            continue
        break
    for slot, start in undecided[: min(n_undecided, len(undecided))].tolist():
        token = _token(block, start, _NUMBER)
        with np.errstate(over="ignore"):
            values[slot] = np.float32(float(token))
        if not np.isfinite(values[slot]):
            row = int(np.searchsorted(feature_ends[:rows], slot, side="right"))
            raise _BlockError(kernels.BAD_VALUE, row, token[:60])
    if code != kernels.OK:
        raise _BlockError(code, rows, _token(block, at))
    feature_ends, label_ends = feature_ends[:rows], label_ends[:rows]
    if disorder:
        add = layout.repeated == "sum"
        n_values, row, feature = kernels.order(feature_ends, features, values, add)
        if row >= 0:
            raise _BlockError(_REPEATED_FEATURE, row, str(feature + layout.first_feature))
        if add and not np.isfinite(values[:n_values]).all():
            slot = int(np.argmin(np.isfinite(values[:n_values])))
            row = int(np.searchsorted(feature_ends, slot, side="right"))
            raise _BlockError(_SUM_OVERFLOW, row, str(features[slot] + layout.first_feature))
    return _Piece(
        feature_ends,
        features[:n_values],
        values[:n_values],
        label_ends,
        labels[:n_labels],
        _blank_tail(block),
    )


def _token(block: bytes, start: int, pattern: re.Pattern[bytes] = _SHOWN) -> str:
    found = pattern.match(block, start)
    assert found is not None
    return found[0].decode("utf-8", "replace")


def _blank_tail(block: bytes) -> int:
    content = len(block)
    while content and block[content - 1] in b"\r\n":
        content -= 1
    ends = block.count(b"\n", content)
    return ends - 1 if content and ends else ends


def _join(
    path: Path, pieces: deque[_Piece], layout: _Layout
) -> tuple[sparse.csr_matrix, sparse.csr_matrix | None]:
    rows = sum(len(piece.feature_ends) for piece in pieces)
    if layout.n_rows is not None and rows > layout.n_rows:
        rows = max(layout.n_rows, rows - _blank_lines_at_the_end(pieces))
    if layout.n_rows is not None and rows != layout.n_rows:
        raise FormatError(
            path,
            1,
            f"the header says {layout.n_rows} documents and the file has {rows}",
            "The file is cut short or the header is wrong: fetch it again, or correct line 1.",
        )
    n_values = sum(len(piece.features) for piece in pieces)
    n_found = sum(len(piece.labels) for piece in pieces)
    features = _Rows(rows, n_values, np.float32)
    labels = _Rows(rows, n_found, None)
    while pieces:
        # Each piece is let go as soon as it is copied, so that two copies never exist.
        piece = pieces.popleft()
        features.add(piece.feature_ends, piece.features, piece.values)
        labels.add(piece.label_ends, piece.labels, None)
    bow = features.csr(layout.n_features)
    return bow, labels.csr(layout.n_labels) if layout.with_labels else None


def _blank_lines_at_the_end(pieces: deque[_Piece]) -> int:
    blank = 0
    for piece in reversed(pieces):
        blank += piece.blank_tail
        if piece.blank_tail < len(piece.feature_ends):
            break
    return blank


class _Rows:
    """CSR arrays of a known size, filled from the front."""

    def __init__(self, rows: int, entries: int, dtype: type[np.float32] | None) -> None:
        # scipy wants both index arrays of one width.
        index = np.int32 if entries < ID_LIMIT else np.int64
        self.indptr = np.zeros(rows + 1, index)
        self.indices = np.empty(entries, index)
        self.data = None if dtype is None else np.empty(entries, dtype)
        self.row = 0
        self.entry = 0

    def add(self, ends: np.ndarray, indices: np.ndarray, data: np.ndarray | None) -> None:
        ends = ends[: len(self.indptr) - 1 - self.row]  # blank lines at the end are no rows
        self.indptr[self.row + 1 : self.row + 1 + len(ends)] = ends + self.entry
        self.indices[self.entry : self.entry + len(indices)] = indices
        if self.data is not None:
            self.data[self.entry : self.entry + len(indices)] = data
        self.row += len(ends)
        self.entry += len(indices)

    def csr(self, columns: int | None) -> sparse.csr_matrix:
        if columns is None:
            columns = int(self.indices.max()) + 1 if len(self.indices) else 0
        data = np.ones(len(self.indices), np.float32) if self.data is None else self.data
        matrix = sparse.csr_matrix((len(self.indptr) - 1, columns), dtype=np.float32)
        matrix.indptr, matrix.indices, matrix.data = self.indptr, self.indices, data
        matrix.has_sorted_indices = True
        matrix.has_canonical_format = True
        return matrix


def _explain(path: Path, line: int, fault: _BlockError, layout: _Layout) -> NoReturn:
    token = fault.token
    word = token.split(":")[0]
    last_feature = (layout.n_features or ID_LIMIT) - 1 + layout.first_feature
    last_label = (layout.n_labels or ID_LIMIT) - 1 + layout.first_label
    source = "" if layout.n_rows is None else " by the header"
    match fault.code:
        case kernels.BAD_LABEL:
            problem = f"a label id was expected at {token!r}"
            remedy = (
                "Labels are integers joined by commas, and a line without labels starts with "
                "a space."
            )
        case kernels.LABEL_RANGE:
            problem = (
                f"label id {token.split(',')[0]} is outside "
                f"{layout.first_label}..{last_label}{source}"
            )
            remedy = (
                "Correct the number of labels in the header, or set first_label: 1 if labels "
                "count from 1."
            )
        case kernels.BAD_FEATURE:
            problem = f"'feature:value' was expected at {token!r}"
            remedy = "Each feature is an integer id, a colon and a number; nothing else may follow."
            if line == 1:
                remedy += " (A header is three integers: documents, features, labels.)"
        case kernels.FEATURE_RANGE:
            problem = f"feature id {word} is outside {layout.first_feature}..{last_feature}{source}"
            remedy = (
                "Correct the number of features in the header, or set first_feature (0 or 1) "
                "to the id that counting starts from."
            )
        case kernels.BAD_VALUE:
            problem = f"{token!r} is not a finite number that fits a float32"
            remedy = "Replace NaN, infinities and text by numbers, or drop the feature."
        case kernels.BAD_END:
            problem = "a carriage return within the line"
            remedy = "Lines end with LF or CR LF; convert the file (dos2unix, mac2unix)."
        case kernels.EMPTY_LINE:
            problem = "the line is empty, and the file has no header to say whether it is a row"
            remedy = (
                "Delete the line, or write a single space for a document without labels and "
                "features, or add a header."
            )
        case code if code == _REPEATED_FEATURE:
            problem = f"feature id {token} occurs more than once"
            remedy = "Merge its values, or set repeated: sum to have them added."
        case code if code == _SUM_OVERFLOW:
            problem = f"the values of feature id {token} add up to more than a float32 holds"
            remedy = "Scale the values down."
        case code:
            raise AssertionError(f"unknown fault {code}")
    raise FormatError(path, line, problem, remedy) from None
