"""A part of a dataset by its card: the right documents, the whole's columns, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data.errors import DataError
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import open_prepared, read_meta
from benchmarks.records.labels import label_names


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def corpus() -> dict[str, Any]:
    for name, n in (("train", 40), ("test", 20)):
        documents = [{"text": f"word{i} {name}", "topics": [f"t{i % 30:02}"]} for i in range(n)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    options = {"text_fields": ["text"], "label_field": "topics"}
    propensity = {"A": 0.6, "B": 2.6}
    own = {"format": "jsonl", "train": "train.jsonl", "test": "test.jsonl", "options": options}
    return {**own, "propensity": propensity}


def part(train: int = 12, test: int = 5, of: str = "whole", **more: Any) -> dict[str, Any]:
    return {"take": {"of": of, "train": train, "test": test, **more}}


def made(card: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    folder = ensure("part", cards={"whole": corpus(), "part": card})
    return (*open_prepared(folder), read_meta(folder))


def test_documents_are_drawn_whole_and_columns_stay() -> None:
    train, test, meta = made(part())
    whole = open_prepared(Path("results/data/whole"))
    assert (len(train), len(test)) == (12, 5)
    assert (meta["A"], meta["B"], meta["subset_of"]) == (0.6, 2.6, "whole")
    assert label_names(Path("results/data/part"), 30)[3] == "t03"
    for drawn, full in zip((train, test), whole, strict=True):
        assert drawn.n_labels == full.n_labels == 30
        assert drawn.inputs.bow.shape[1] == full.inputs.bow.shape[1]
        texts = list(full.inputs.texts)
        rows = [texts.index(text) for text in drawn.inputs.texts]
        assert rows == sorted(set(rows)), "different documents, in their old order"
        assert (drawn.labels != full.labels[rows]).nnz == 0
        assert (drawn.inputs.bow != full.inputs.bow[rows]).nnz == 0
        taken = full.inputs.tokens.take(np.array(rows))
        assert (drawn.inputs.tokens.ids == taken.ids).all()


def test_the_seed_and_the_sizes_say_which() -> None:
    first, test, _ = made(part())
    larger, same, _ = made(part(train=20))
    assert set(first.inputs.texts) < set(larger.inputs.texts)
    assert list(test.inputs.texts) == list(same.inputs.texts)
    other, *_ = made(part(seed=1))
    assert set(other.inputs.texts) != set(first.inputs.texts)


def test_it_is_made_again_when_the_whole_changes() -> None:
    folder = Path("results/data/part")
    made(part())
    before = (folder / "meta.json").stat().st_mtime_ns
    made(part())
    assert (folder / "meta.json").stat().st_mtime_ns == before
    cards = {"whole": corpus(), "part": part()}
    Path("test.jsonl").write_text('{"text": "Olive oil", "topics": ["t00"]}\n' * 6)
    ensure("part", cards=cards)
    assert set(open_prepared(folder)[1].inputs.texts) == {"Olive oil"}


def test_too_many_documents_and_parts_of_parts_are_refused() -> None:
    with pytest.raises(DataError, match="part: whole has 20 test documents, not 21"):
        made(part(test=21))
    with pytest.raises(InvalidDocumentError, match="part, which is made of another"):
        ensure("twice", cards={"whole": corpus(), "part": part(), "twice": part(of="part")})
    with pytest.raises(InvalidDocumentError, match=r"part\.take\.of: itself"):
        ensure("part", cards={"part": part(of="part")})
    with pytest.raises(InvalidDocumentError, match="train"):
        made({"take": {"of": "whole", "test": 3}})
    with pytest.raises(DataError, match="n_labels"):
        made({**part(), "counts": {"n_labels": 7}})
