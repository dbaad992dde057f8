"""What a dataset was read from counts in its card's digest, and a name has one meaning."""

import json
import os

import pytest

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data import cards
from benchmarks.data.cards import all_cards, local_files, user_card
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import open_prepared
from workflow.config import check, plan

JSONL = {"format": "jsonl", "train": "train.jsonl", "test": "test.jsonl"}


def replace(path, old, new):
    """Other content of equal size and time of change, as ``rsync -t`` may put there."""
    before = path.stat()
    content = path.read_text()
    assert old in content
    assert len(old) == len(new)
    temporary = path.with_name("incoming")
    temporary.write_text(content.replace(old, new))
    os.utime(temporary, ns=(before.st_atime_ns, before.st_mtime_ns))
    temporary.replace(path)
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.fixture
def texts(files):
    """Documents of the three labels in JSON lines, in a folder of JSON files, and their names."""
    rows = {"train": ["red fox", "blue sky", "green tree"], "test": ["red sky", "fox tree", "sky"]}
    for split, own in rows.items():
        (files / split).mkdir()
        documents = [json.dumps({"text": t, "labels": [i]}) + "\n" for i, t in enumerate(own)]
        (files / f"{split}.jsonl").write_text("".join(documents))
        for number, document in enumerate(documents):
            (files / split / f"{number}.json").write_text(document)
    (files / "names.txt").write_text("animals\nweather\nplants\n")
    return files


@pytest.mark.parametrize(
    ("card", "edited", "old", "new"),
    [
        ({"format": "xc", "train": "train.txt", "test": "test.txt"}, "train.txt", "0.5", "0.7"),
        ({"format": "xc", "train": "tr*.txt", "test": "te*.txt"}, "test.txt", "2:1", "0:1"),
        ({"format": "jsonl", "train": "train", "test": "test"}, "train/1.json", "blue", "grey"),
        (JSONL | {"train": ["train.jsonl"]}, "train.jsonl", "blue", "grey"),
        (JSONL | {"options": {"label_names": "names.txt"}}, "names.txt", "weather", "climate"),
    ],
    ids=["file", "pattern", "folder", "list", "label_names"],
)
def test_a_file_of_equal_size_and_time_is_noticed(texts, card, edited, old, new):
    before = user_card("mine", card).digest()
    (texts / "bystander.json").write_text("{}")
    assert user_card("mine", card).digest() == before
    first = json.loads((ensure("mine", "data", cards={"mine": card}) / "meta.json").read_text())
    replace(texts / edited, old, new)
    assert user_card("mine", card).digest() != before
    again = json.loads((ensure("mine", "data", cards={"mine": card}) / "meta.json").read_text())
    assert again["prepared_from"] != first["prepared_from"]


def test_aligned_texts_count(texts):
    rows = ["0 0:1\n", "1 1:1\n", "2 2:1\n"]
    for split in ("train", "test"):
        (texts / f"{split}.txt").write_text("".join(["3 3 3\n", *rows]))
    aligned = {"train": "train.jsonl", "test": "test.jsonl"}
    files = {"format": "xc", "train": "train.txt", "test": "test.txt"}
    card = {**files, "options": {"aligned_texts": aligned}}
    read = [str(path) for path in local_files(user_card("mine", card).sources[0])]
    assert read == ["test.jsonl", "test.txt", "train.jsonl", "train.txt"]
    ensure("mine", "data", cards={"mine": card})
    replace(texts / "test.jsonl", "red", "low")
    _, test = open_prepared(ensure("mine", "data", cards={"mine": card}))
    assert test.inputs.texts[0] == "low sky"


def test_a_large_file_counts_by_the_state_of_its_inode(files, monkeypatch):
    monkeypatch.setattr(cards, "DIGEST_BYTES", 1)
    card = user_card("mine", {"format": "xc", "train": "train.txt", "test": "test.txt"})
    before = card.digest()
    assert card.digest() == before
    replace(files / "train.txt", "0.5", "0.7")  # another inode
    assert card.digest() != before


def test_a_file_that_appears_counts(files):
    card = user_card("mine", {"format": "xc", "train": "later*.txt", "test": "test.txt"})
    before = card.digest()
    (files / "later1.txt").write_bytes((files / "train.txt").read_bytes())
    assert card.digest() != before


def test_members_of_a_download_are_not_looked_for_here(files):
    archive = {"name": "a.zip", "sha256": "0" * 64}
    source = {"files": [archive], "format": "xc", "train": "train.txt", "test": "test.txt"}
    absolute = {**source, "options": {"label_names": str(files / "names.txt")}}
    assert local_files(user_card("mine", {"sources": [source]}).sources[0]) == []
    found = local_files(user_card("mine", {"sources": [absolute]}).sources[0])
    assert found == [files / "names.txt"]


@pytest.mark.parametrize("name", ["tiny-bow", "EURLex-4K", "GloVe-6B-100d"])
def test_a_built_in_dataset_is_not_redefined(files, name):
    mine = {name: {"format": "xc", "train": "train.txt", "test": "test.txt"}}
    with pytest.raises(InvalidDocumentError, match=f"define.datasets.{name}: .* choose another"):
        all_cards(mine)
    with pytest.raises(InvalidDocumentError, match="choose another"):
        ensure(name, "data", cards=mine)
    assert not (files / "data" / name).exists()


@pytest.mark.parametrize(
    ("kind", "name", "extends"),
    [
        ("bases", "DiSMEC", "LinearSVC"),
        ("variants", "PW", "cb"),
        ("variants", "plain", "PW"),
        ("variants", "Taug", "PW"),
        ("variants", "PW+Taug-ds", "PW"),
        ("variants", "mine+PW", "PW"),
    ],
)
def test_a_method_is_not_redefined(kind, name, extends):
    define = {"variants": {"mine": {"extends": "cb"}}}
    define = {**define, kind: {**define.get(kind, {}), name: {"extends": extends}}}
    config = {"cells": [{"datasets": ["tiny-bow"], "bases": ["random"]}], "define": define}
    with pytest.raises(InvalidDocumentError) as caught:
        plan(check(config, "my.yaml"), "my.yaml", ["tiny-bow"])
    said = str(caught.value).splitlines()[1:]
    assert said == [f"  define.{kind}.{name}: this name has a meaning; choose another"]


def test_own_names_beside_the_built_in_ones_are_fine():
    own = {"DiSMEC-tight": {"extends": "DiSMEC"}, "tighter": {"extends": "DiSMEC-tight"}}
    config = {
        "cells": [{"datasets": ["tiny-bow"], "bases": ["tighter"], "variants": ["mine"]}],
        "define": {"bases": own, "variants": {"mine": {"extends": "RankNet+Taug"}}},
    }
    assert len(plan(check(config, "my.yaml"), "my.yaml", ["tiny-bow"])) == 1
