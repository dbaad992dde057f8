"""A sentence that names the file, the line and the remedy, where an exception would stand."""

import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data import read_xc, streams
from benchmarks.data.cards import Source, user_card
from benchmarks.data.errors import DataError, FormatError
from benchmarks.data.formats import read
from benchmarks.data.prepare import ensure
from benchmarks.data.vectors import read_glove
from benchmarks.render.table import Table, to_latex, to_markdown
from workflow.config import check, plan

XC = "3 2 2\n0 0:1\n1 1:1\n0,1 0:1 1:1\n"
JSONL = '{"text": "red fox", "labels": ["a"]}\n{"text": "blue sky", "labels": ["b"]}\n'


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(train, name="train.txt", **card):
    """What is said of a training file with the given content."""
    kind = "jsonl" if name.endswith("jsonl") or "jsonl" in name else "xc"
    good = f"test.{kind}"
    with open(good, "w") as file:
        file.write(JSONL if kind == "jsonl" else XC)
    if train is not None:
        with open(name, "wb") as file:
            file.write(train if isinstance(train, bytes) else train.encode())
    card = {"format": kind, "train": name, "test": good, **card}
    with pytest.raises(DataError) as caught:
        ensure("mine", "data", cards={"mine": card})
    str(caught.value).encode("utf-8")
    return str(caught.value)


def flipped(content, position):
    packed = bytearray(gzip.compress(content.encode(), mtime=0))
    packed[position] ^= 0xFF
    return bytes(packed)


@pytest.mark.parametrize("name", ["train.txt.gz", "train.jsonl.gz"])
@pytest.mark.parametrize("position", [12, 20, -5])
def test_a_damaged_gzip(name, position):
    content = JSONL if "jsonl" in name else XC
    assert f"{name}: the gzip stream is cut or damaged" in refused(flipped(content, position), name)
    whole = gzip.compress(content.encode())
    assert "the gzip stream is cut or damaged" in refused(whole[:-9], name)


@pytest.mark.parametrize(
    "header", ["9" * 5000 + " 2 2", "3 2 " + "9" * 5000, "3 " + "9" * 19 + " 2", "3 2 2147483648"]
)
def test_headers_that_declare_more_than_there_can_be(header):
    said = refused(header + XC.removeprefix("3 2 2"))
    assert "train" in said
    assert "columns, more than" in said or "train.txt, line 1: " in said or "disagree" in said


@pytest.mark.parametrize(
    ("label", "wanted"),
    [("9" * 5000, "train.jsonl, line 3: not JSON"), (2**31, "label 2147483648 does not fit")],
)
def test_label_ids_that_are_no_columns(label, wanted):
    numbered = JSONL.replace('"a"', "0").replace('"b"', "1")
    numbered += f'{{"text": "red", "labels": [{label}]}}\n'
    more = {"test": "train.jsonl", "options": {"label_ids": True}}
    assert wanted in refused(numbered, "train.jsonl", **more)


@pytest.mark.parametrize("name", ["train.txt", "train.jsonl"])
def test_devices_folders_and_links_in_a_circle(name):
    os.symlink("/dev/zero", name)
    assert f"{name} is a device or a pipe; copy its content to a file" in refused(None, name)
    os.unlink(name)
    os.mkdir(name)
    said = refused(None, name)
    assert f"{name} is a folder; name a file" in said or f"{name} holds no .json files" in said
    os.rmdir(name)
    os.mkfifo(name)
    assert "is a device or a pipe" in refused(None, name)


def test_a_file_that_may_not_be_read(monkeypatch):
    monkeypatch.setattr(streams.os, "access", lambda *_: False)
    assert "train.txt may not be read by this user; change its permissions" in refused(XC)


@pytest.mark.parametrize("name", ["train.txt.gz", "train.jsonl.gz"])
def test_a_gzip_of_more_rows_than_memory(name, monkeypatch):
    rows = 5000
    content = JSONL * rows if "jsonl" in name else f"{rows} 2 2\n" + "0 0:1 1:1\n" * rows
    packed = gzip.compress(content.encode())
    monkeypatch.setattr(streams, "EXPANSION_FREE", 100)
    monkeypatch.setattr(streams, "EXPANSION_LIMIT", 3)
    assert f"{name}: more than {3 * len(packed):,} bytes of text" in refused(packed, name)
    monkeypatch.undo()


@pytest.mark.parametrize("name", ["train.txt", "train.jsonl"])
def test_limits_of_text_and_of_lines(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    content = JSONL if "jsonl" in name else XC
    monkeypatch.setattr(streams, "text_limit", lambda: len(content) - 1)
    assert f"{name}: more than {len(content) - 1} bytes of text" in refused(content, name)
    monkeypatch.setattr(streams, "text_limit", lambda: 10**6)
    monkeypatch.setattr(streams, "LINE_LIMIT", 1000)
    monkeypatch.setattr("benchmarks.data.xc.BLOCK_BYTES", 300)
    long = content + "\0" * 2000
    lines = content.count("\n")
    assert f"{name}, line {lines + 1}: the line is longer than 1,000 bytes" in refused(long, name)


@pytest.mark.parametrize("name", ["train.txt", "train.jsonl"])
def test_a_file_that_takes_more_memory_than_text(name, monkeypatch):
    """Rows of a few characters become arrays and objects of several times their size."""
    content = JSONL * 500 if "jsonl" in name else "1000 2 2\n" + "0 0:1\n" * 1000
    limit = 2 * len(content)
    monkeypatch.setattr(streams, "text_limit", lambda: limit)
    monkeypatch.setattr("benchmarks.data.text_formats.text_limit", lambda: limit)
    monkeypatch.setattr("benchmarks.data.xc.BLOCK_BYTES", 300)
    said = refused(content, name)
    assert f"{name}, line " in said
    assert f"takes more than {limit:,} bytes, all the memory there is. Use a machine" in said
    limit = 50 * len(content)
    card = {"format": name.partition(".")[2].replace("txt", "xc"), "train": name, "test": name}
    ensure("mine", "data", cards={"mine": card})


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff", "a\\udc00b"])
@pytest.mark.parametrize("field", ["red fox", '["a"]', "text"])
def test_half_a_surrogate_pair(half, field):
    changed = JSONL.replace(field, f'["{half}"]' if "[" in field else half)
    said = refused(JSONL + changed, "train.jsonl")
    wanted = "half of a surrogate pair" if field != "text" else "the key 'text' is missing"
    assert f"train.jsonl, line 3: {wanted}" in said


def test_deep_nesting_and_long_integers():
    for depth in (600, 990, 5000, 200_000):
        nested = JSONL.splitlines()[0].replace('"red fox"', "[" * depth + '"x"' + "]" * depth)
        try:
            said = refused(JSONL + nested, "train.jsonl")
        except BaseException as error:  # pytest's own, where nothing was refused
            assert depth == 600, error  # noqa: PT017 - deep, but not too deep to be read
            continue
        assert "train.jsonl, line 3: not JSON" in said or "line 3: no text or labels" in said
    many = '{"text": %s, "labels": ["a"]}\n' % ("9" * 5000)
    assert "train.jsonl, line 3: not JSON" in refused(JSONL + many, "train.jsonl")


@pytest.mark.parametrize("line", [1, 3, 700])
def test_the_line_that_is_not_utf8_is_the_one_named(line):
    """The decoder reads blocks ahead: its position is not the line's."""
    documents = [JSONL.splitlines(keepends=True)[0].encode()] * 1000
    documents[line - 1] = b'{"text": "caf\xe9", "labels": ["a"]}\n'
    said = refused(b"".join(documents), "train.jsonl")
    assert f"train.jsonl, line {line}: not UTF-8 (byte 0xe9 at column 14)" in said
    assert "Convert the file" in said


def test_word_vectors_and_names_that_are_not_text(tmp_path):
    (tmp_path / "glove.txt").write_bytes(b"the 0.1 0.2\n\xff 0.3 0.4\n")
    with pytest.raises(FormatError, match="glove.txt, line 2: not UTF-8"):
        read_glove({"vectors": "glove.txt"}, tmp_path)
    (tmp_path / "glove.txt").write_bytes(b"the 0.1 0.2\ncat 0.3 x\n")
    with pytest.raises(FormatError, match="glove.txt, line 2: no 2 numbers"):
        read_glove({"vectors": "glove.txt"}, tmp_path)
    for content in ("[" * 100_000, "[]", "{"):
        (tmp_path / "names.json").write_text(content)
        said = refused(XC, options={"label_names": "names.json"})
        assert "names.json: not JSON" in said or "names.json: no JSON object of names" in said


def test_aligned_texts_with_names_for_labels():
    for split in ("train", "test"):
        with open(f"{split}.jsonl", "w") as file:
            file.write(JSONL + JSONL[: JSONL.index("\n") + 1])
    aligned = {"train": "train.jsonl", "test": "test.jsonl"}
    said = refused(XC, options={"aligned_texts": aligned})
    assert "train.jsonl, line 1: labels [a] are not those of row 0 of the features" in said


def test_a_number_of_more_than_60_characters_is_read_whole(tmp_path):
    value = "0." + "0" * 70 + "1e70"
    (tmp_path / "long.txt").write_text(f"1 1 1\n0 0:{value}\n")
    assert read_xc(tmp_path / "long.txt").inputs.bow[0, 0] == np.float32(float(value)) == 0.1


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(?P<x", "*"])
def test_a_token_pattern_that_is_no_pattern(pattern):
    card = {"format": "jsonl", "train": "a", "test": "b"}
    with pytest.raises(InvalidDocumentError, match="token_pattern: .* is no regular expression"):
        user_card("mine", {**card, "options": {"tfidf": {"token_pattern": pattern}}})
    with pytest.raises(InvalidDocumentError, match="token_pattern: .* has 2 groups"):
        user_card("mine", {**card, "options": {"tfidf": {"token_pattern": "(a)(b)"}}})


GOOD = {"cells": [{"datasets": ["tiny-bow"], "bases": ["random"]}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"define": {"datasets": {"x": None}}}, "define.datasets.x: None should be of type object"),
        ({"seeds": [1.0]}, "seeds[0]: 1.0 should be of type integer"),
        ({"seeds": [True]}, "seeds[0]: True should be of type integer"),
        ({"cells": [{**GOOD["cells"][0], "shards": 2.0}]}, "shards: 2.0 should be of type integer"),
        ({"budget": {"wall_s": float("inf")}}, "wall_s: inf should be of type number and finite"),
        ({"budget": {"memory_mb": float("nan")}}, "memory_mb: nan should be of type number and"),
        ({"budget": {"wall_s": 1e18}}, "wall_s: 1e+18 should be at most 100000000"),
        ({"threshold": float("nan")}, "nan should be of type number and finite"),
        ({"ks": [1, 1, 3]}, "ks: [1, 1, 3] has non-unique elements"),
        ({"top_k": 10**30}, "should be at most"),
        ({"top_k": 10**5000}, "a whole number of more than 1,000 digits"),
        ({"seeds": [-(10**5000)]}, "a whole number of more than 1,000 digits"),
        ({"cells": [{"datasets": ["tiny-bow\n"], "bases": ["random"]}]}, r"'tiny-bow\n' does not"),
        ({"cells": [{"datasets": ["tiny-bow"], "bases": ["x" * 10**6 + "!"]}]}, "xxx ..."),
        (
            {"define": {"bases": {"x\n": {"extends": "DiSMEC"}}}},
            r"define.bases: 'x\n' does not match",
        ),
        ({"define": {"variants": {"x/y": {"extends": "PW"}}}}, "define.variants: 'x/y' does not"),
        ({"define": {"datasets": {"x\n": {}}}}, r"define.datasets: 'x\n' does not match"),
        ({"verify": "never"}, "verify: 'never' is not one of first, full"),
    ],
)
def test_configurations(change, said):
    with pytest.raises(InvalidDocumentError) as caught:
        check({**GOOD, **change}, "my.yaml")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_names_of_own_datasets():
    card = {"format": "xc", "train": "a", "test": "b"}
    for name in ("x\n", "x/y", "", ".x", "x y"):
        with pytest.raises(InvalidDocumentError, match="does not match|is too short"):
            user_card(name, card)


def test_vectors_of_itself():
    texts = {"format": "jsonl", "train": "a", "test": "b"}
    own = {"x": {"embed": {"of": "x", "encoder": "e"}}}
    several = {
        "t": texts,
        "y": {"embed": {"of": "t", "encoder": "e"}},
        "z": {"embed": {"of": "y", "encoder": "e"}},
    }
    from benchmarks.data.cards import all_cards

    with pytest.raises(InvalidDocumentError, match="define.datasets.x.embed.of: itself; name a"):
        all_cards(own)
    with pytest.raises(InvalidDocumentError, match="z.embed.of: y, which is made of vectors too"):
        all_cards(several)


def test_an_alias_bomb_and_a_loop():
    bomb = ["x"]
    for _ in range(40):
        bomb = [bomb] * 9
    named = {"x": 1}
    for _ in range(40):
        named = {f"k{number}": named for number in range(9)}
    loop = []
    loop.append(loop)
    for cells in (bomb, named, loop):
        with pytest.raises(InvalidDocumentError, match="more than 1,000,000 entries, or holds"):
            check({"cells": cells}, "my.yaml")
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidDocumentError, match="nested too deeply"):
        check({"cells": deep}, "my.yaml")
    shared = ["random"]
    many = {"cells": [{"datasets": ["tiny-bow"], "bases": shared, "seeds": [s]} for s in range(99)]}
    assert len(plan(check(many, "my.yaml"), "my.yaml", ["tiny-bow"])) == 99


def test_a_method_that_leaves_the_folder_and_has_arrays_for_parameters(request):
    record = request.getfixturevalue("run")("Wanders")
    assert (record["status"], record["reason"]) == ("ok", "")
    params = record["params"]["wanders"]
    assert (params["short"], params["number"]) == ([1, 2], 0.5)
    assert params["long"].startswith("float64[1000, 5], sha256 ")
    assert params["about"] == "<class 'object'>"


def test_a_reason_with_line_ends_stays_one_row(request):
    record = request.getfixturevalue("run")("Says")
    assert record["reason"].startswith("ValueError in fit: first\nsecond")
    frame = pd.DataFrame([{"cell": "a", "reason": record["reason"]}])
    shown = to_markdown(Table("t", frame, ["cell"]))
    row = [line for line in shown.splitlines() if line.startswith("| a ")]
    assert row == [r"| a | ValueError in fit: first second third fourth \| fifth |"]
    assert len([line for line in to_latex(Table("t", frame, ["cell"])).splitlines()
                if line.startswith("a &")]) == 1  # fmt: skip


def test_an_error_without_a_text(request):
    record = request.getfixturevalue("run")("Mute")
    assert record["reason"] == "SilentError in fit: (its text could not be had: RuntimeError)"


FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(st.data())
@FUZZ
def test_any_change_of_json_lines_gives_documents_or_a_sentence(tmp_path, data):
    lines = [{"text": f"{w} é", "labels": [w, i]} for i, w in enumerate(["red", "blue", "fox"])]
    whole = bytearray("".join(json.dumps(line) + "\n" for line in lines).encode())
    position = data.draw(st.integers(0, len(whole) - 1))
    kind = data.draw(st.sampled_from(["cut", "byte", "insert"]))
    if kind == "cut":
        whole = whole[:position]
    elif kind == "byte":
        whole[position] = data.draw(st.integers(0, 255))
    else:
        token = st.sampled_from(
            ['"\\ud800"', "[" * 2000, "9" * 5000, "NaN", "{}", "\r", "\0", "\xff"]
        )
        whole[position:position] = data.draw(token).encode("latin-1")
    (tmp_path / "train.jsonl").write_bytes(whole)
    source = Source("local", (), "jsonl", "train.jsonl", "train.jsonl")
    said = ""
    try:
        content = read(source, tmp_path)
    except DataError as error:
        said = str(error)
    if said:
        assert "train" in said
        return
    for part in content.splits.values():
        part.labels.check_format(full_check=True)
        assert part.labels.shape == (len(part.texts), len(content.label_names))
        "".join([*part.texts, *content.label_names]).encode("utf-8")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**18, 2**31, -1, 1e308])
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    st.lists(st.fixed_dictionaries({"text": VALUES, "labels": VALUES}) | VALUES, max_size=4),
    st.sampled_from([{}, {"label_ids": True}, {"label_ids": True, "n_labels": 3}]),
)
@FUZZ
def test_any_json_values_give_documents_or_a_sentence(tmp_path, documents, options):
    """Well-formed lines whose values are of any kind; half surrogates as JSON may hold them."""
    good = {"text": "red fox", "labels": [0, 1]}
    lines = "".join(json.dumps(document) + "\n" for document in [good, *documents])
    (tmp_path / "train.jsonl").write_text(lines, encoding="ascii")
    source = Source("local", (), "jsonl", "train.jsonl", "train.jsonl", options=options)
    try:
        content = read(source, tmp_path)
    except DataError as error:
        str(error).encode("utf-8")
        return
    for part in content.splits.values():
        part.labels.check_format(full_check=True)
        assert part.labels.shape[0] == len(part.texts) == 1 + len(documents)
