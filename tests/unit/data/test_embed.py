"""Dense features: against the encoder run by hand, whatever the cores, through a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data import embed, load
from benchmarks.data.cards import Embedding, Encoder, user_card
from benchmarks.data.embed import embedded, encode, encoder_folder
from benchmarks.data.errors import DataError, UnavailableError
from benchmarks.data.prepare import ensure, ensure_or_record
from benchmarks.data.prepared import open_prepared, read_meta
from benchmarks.data.split import Inputs, Split

pytestmark = pytest.mark.slow  # runs an encoder

MINILM = "all-MiniLM-L6-v2"
TEXTS = [
    "The council adopted a regulation on the common market in cereals.",
    "Fishing quotas",
    "A directive on the approximation of laws relating to the labelling of foodstuffs, " * 6,
    "",
    "Imports of bananas from third countries are subject to a licence.",
]


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(embed, "BATCH", 2)


def corpus(**more: Any) -> dict[str, Any]:
    for name, rows in (("train", TEXTS), ("test", TEXTS[:2])):
        documents = [{"text": text, "topics": [f"t{i % 2}"]} for i, text in enumerate(rows)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    options = {"text_fields": ["text"], "label_field": "topics"}
    return {
        "format": "jsonl",
        "train": "train.jsonl",
        "test": "test.jsonl",
        "options": options,
        "propensity": {"A": 0.6, "B": 2.6},
        **more,
    }


def dense_card(of: str = "mine", **more: Any) -> dict[str, Any]:
    return {"embed": {"of": of, "encoder": MINILM, **more}}


def by_hand(texts: list[str], max_tokens: int) -> np.ndarray:
    """MiniLM without sentence-transformers: the mean of the last layer, of unit length."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = encoder_folder(MINILM)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    rows = []
    for text in texts:
        pieces = tokenizer(text, truncation=True, max_length=max_tokens, return_tensors="pt")
        with torch.no_grad():
            states = model(**pieces).last_hidden_state[0]
        mean = states.mean(dim=0).numpy()
        rows.append(mean / np.linalg.norm(mean))
    return np.array(rows)


@pytest.mark.parametrize("max_tokens", [8, 128])
def test_vectors_are_those_of_the_encoder_run_by_hand(max_tokens: int) -> None:
    vectors = encode(TEXTS, encoder_folder(MINILM), max_tokens, jobs=1)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, by_hand(TEXTS, max_tokens), atol=2e-6)


def test_the_number_of_cores_does_not_matter() -> None:
    one, two = (encode(TEXTS, encoder_folder(MINILM), 16, jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_what_is_encoded_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, scratch = encoder_folder(MINILM), tmp_path / "scratch"
    whole = encode(TEXTS, folder, 16, scratch, jobs=1)
    (scratch / "2.npy").unlink()
    seen: list[list[str]] = []
    real = embed._encode_batch

    def watched(texts: list[str], *rest: Any) -> np.ndarray:
        seen.append(texts)
        return real(texts, *rest)

    monkeypatch.setattr(embed, "_encode_batch", watched)
    np.testing.assert_array_equal(encode(TEXTS, folder, 16, scratch, jobs=1), whole)
    assert seen == [TEXTS[2:4]]


def test_words_and_vector_have_unit_length_each(tmp_path: Path) -> None:
    words = sparse.csr_matrix(np.array([[3.0, 4, 0], [0, 0, 0]], np.float32))
    labels = sparse.csr_matrix(np.ones((2, 1), np.float32))
    split = Split(Inputs(bow=words, texts=TEXTS[:2]), labels)
    embedding = Embedding("mine", MINILM, 16)
    bow = embedded({"train": split}, embedding, tmp_path / "s", jobs=1)["train"].inputs.bow
    assert bow is not None
    assert bow.shape == (2, 3 + 384)
    np.testing.assert_allclose(bow[:, :3].toarray(), [[0.6, 0.8, 0], [0, 0, 0]])
    np.testing.assert_allclose(np.linalg.norm(bow[:, 3:].toarray(), axis=1), 1, rtol=1e-6)


def test_a_card_makes_a_dataset_of_anothers_texts() -> None:
    cards = {"mine": corpus(), "mine+MiniLM": dense_card(max_tokens=16)}
    train, test = load("mine+MiniLM", cards=cards)
    plain, _ = load("mine", cards=cards)
    assert plain.inputs.bow is not None
    assert train.inputs.bow is not None
    assert train.inputs.kinds == {"bow"}
    assert train.inputs.bow.shape == (5, plain.inputs.bow.shape[1] + 384)
    assert (train.labels != plain.labels).nnz == 0
    assert len(test) == 2
    meta = read_meta("results/data/mine+MiniLM")
    assert (meta["A"], meta["B"]) == (0.6, 2.6)
    assert meta["source"] == "mine, its texts encoded by all-MiniLM-L6-v2"
    assert not list(Path("results/data").glob(".*encoded*"))


def test_it_is_made_again_only_if_texts_or_settings_change() -> None:
    cards = {"mine": corpus(), "dense": dense_card(max_tokens=16)}
    made = ensure("dense", cards=cards) / "meta.json"
    first = made.stat().st_mtime_ns
    ensure("dense", cards=cards)
    assert made.stat().st_mtime_ns == first
    ensure("dense", cards={**cards, "dense": dense_card(max_tokens=4)})
    second = made.stat().st_mtime_ns
    assert second != first
    Path("test.jsonl").write_text('{"text": "Olive oil", "topics": ["t0"]}\n')
    ensure("dense", cards={**cards, "dense": dense_card(max_tokens=4)})
    assert made.stat().st_mtime_ns != second
    assert len(open_prepared(made.parent)[1]) == 1


def test_counts_are_insisted_on() -> None:
    cards = {"mine": corpus(), "dense": {**dense_card(), "counts": {"n_features": 3}}}
    with pytest.raises(DataError, match="n_features"):
        ensure("dense", cards=cards)


def test_errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bow.txt").write_text("1 2 1\n0 0:1\n")
    no_texts = {"format": "xc", "train": "bow.txt", "test": "bow.txt"}
    cards = {"bow": no_texts, "dense": dense_card("bow")}
    with pytest.raises(DataError, match="dense: bow has no texts"):
        ensure("dense", cards=cards)
    with pytest.raises(InvalidDocumentError, match="dense, which is made of vectors too"):
        ensure("twice", cards={**cards, "twice": dense_card("dense")})
    unknown = {"mine": corpus(), "dense": {"embed": {"of": "mine", "encoder": "no/such"}}}
    with pytest.raises(DataError, match="no encoder 'no/such': give one of .*all-MiniLM-L6-v2"):
        ensure("dense", cards=unknown)
    with pytest.raises(InvalidDocumentError, match="encoder"):
        user_card("dense", {"embed": {"of": "mine"}})
    monkeypatch.setattr(Encoder, "path", lambda encoder: None)  # its package is not installed
    with pytest.raises(UnavailableError, match=r"pip install 'tailtables\[text\]'"):
        ensure("dense", cards={"mine": corpus(), "dense": dense_card()})
    ensure_or_record("dense", cards={"mine": corpus(), "dense": dense_card()})
    assert "not installed" in read_meta("results/data/dense")["unavailable"]


def test_an_encoder_may_be_a_folder(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(encoder_folder(MINILM)), device="cpu").save(str(tmp_path / "own"))
    own = encode(TEXTS[:2], encoder_folder("own"), 16, jobs=1)
    np.testing.assert_array_equal(own, encode(TEXTS[:2], encoder_folder(MINILM), 16, jobs=1))
    card = user_card("dense", {"embed": {"of": "mine", "encoder": "own"}})
    before = card.digest()
    (tmp_path / "own/README.md").write_text("changed")
    assert card.digest() != before
