"""Data without documents, labels or features are an error that names the split or the file."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.errors import DataError
from benchmarks.data.prepare import ensure

SPLITS = ("train", "test")
XC = "3 2 2\n0 0:1\n1 1:1\n0,1 0:1 1:1\n"
JSONL = '{"text": "red fox", "labels": ["a"]}\n{"text": "blue sky", "labels": ["b"]}\n'


def refused(card):
    with pytest.raises(DataError) as caught:
        ensure("mine", "data", cards={"mine": card})
    return str(caught.value)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "{split}.txt: the file is empty"),
        ("\n\n\n", "{split}.txt: the file is empty"),
        ("   ", "{split}: no document has a label"),
        (" \n  \n \n", "{split}: no document has a label"),
        ("0 2 2\n", "{split}: there are no documents"),
        ("2 2 2\n 0:1\n 1:1\n", "{split}: no document has a label"),
    ],
)
def test_xc(files, split, content, said):
    for name in SPLITS:
        (files / f"{name}.txt").write_text(content if name == split else XC)
    card = {"format": "xc", "train": "train.txt", "test": "test.txt"}
    assert said.format(split=split) in refused(card)


def test_xc_without_features(files):
    for name in SPLITS:
        (files / f"{name}.txt").write_text("2 2 2\n0\n1\n")
    said = refused({"format": "xc", "train": "train.txt", "test": "test.txt"})
    assert "train: no document has a feature" in said


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("  \n ", "{split}.jsonl: the file is empty"),
        ('{"text": "red", "labels": []}\n', "{split}: no document has a label"),
    ],
)
def test_jsonl(files, split, content, said):
    for name in SPLITS:
        (files / f"{name}.jsonl").write_text(content if name == split else JSONL)
    card = {"format": "jsonl", "train": "train.jsonl", "test": "test.jsonl"}
    assert said.format(split=split) in refused(card)


@pytest.mark.parametrize("options", [{"labels_in_both": True}, {"where": {"train": {"year": 1}}}])
def test_options_that_leave_nothing(files, options):
    (files / "train.jsonl").write_text(JSONL)
    (files / "test.jsonl").write_text(JSONL.replace('"a"', '"c"').replace('"b"', '"d"'))
    card = {"format": "jsonl", "train": "train.jsonl", "test": "test.jsonl", "options": options}
    assert "train: there are no documents" in refused(card)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("content", "said"), [("", "there are no documents"), (" \n \n", "no document has a label")]
)
def test_texts_and_labels_of_spaces(files, split, content, said):
    for name in SPLITS:
        bad = name == split
        (files / f"{name}.text").write_text(content if bad else "red fox\nblue sky\n")
        (files / f"{name}.labels").write_text(content if bad else "a\nb\n")
    parts = {name: {"texts": f"{name}.text", "labels": f"{name}.labels"} for name in SPLITS}
    assert f"{split}: {said}" in refused({"format": "lines", **parts})


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("rows", "labels", "said"),
    [(0, 2, "there are no documents"), (3, 0, "no document has a label")],
)
def test_npz(files, split, rows, labels, said):
    shapes = dict.fromkeys(SPLITS, (3, 2)) | {split: (rows, 2)}
    for name, (n, width) in shapes.items():
        filled = np.full((n, width), 0 if name == split and labels == 0 else 1, np.float32)
        sparse.save_npz(files / f"{name}.f.npz", sparse.csr_matrix(np.ones((n, 4), np.float32)))
        sparse.save_npz(files / f"{name}.l.npz", sparse.csr_matrix(filled))
    parts = {name: {"features": f"{name}.f.npz", "labels": f"{name}.l.npz"} for name in SPLITS}
    assert f"{split}: {said}" in refused({"format": "npz", **parts})


def test_too_few_documents_for_the_metrics_are_a_skipped_cell(files, request):
    rows = {"train": "3 2 2\n0 0:1\n1 1:1\n 0:1\n", "test": XC}
    for name, content in rows.items():
        (files / f"{name}.txt").write_text(content)
    record = request.getfixturevalue("run")("Odd", how="wide-types")
    said = "train has 2 documents with labels; metrics need 3 or more"
    assert (record["status"], record["reason"]) == ("skipped", said)
