"""Tokens against NLTK itself, and the vocabulary against a hand-made one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer, PunktSentenceTokenizer

from benchmarks.data.text import tokenise, words


def by_nltk(text: str) -> list[str]:
    """AttentionXML's rules, written out: no cache, no short cut."""
    tokens = [
        token
        for sentence in PunktSentenceTokenizer().tokenize(text)
        for token in NLTKWordTokenizer().tokenize(sentence)
    ]
    return [t if t == "/SEP/" else t.lower() for t in tokens if re.search(r"\w", t)]


SPECIMENS = """
the cannot gonna Art. No. (EEC) 1,000 12:30 a.m. state's don't 'tis U.S. end. "quoted" x; y: z? w!
e.g. 123/70 semi-final -- ... (see) [a.] {b,} ) ' '' " ` `` » ” /SEP/ $5 50% 'Tis d'ye more'n
O'Neil x.) y.' z." §1 é naïve a_b 3.14. it's.
"""

chunk = st.one_of(
    st.sampled_from(sorted(set(re.split(r"\s+", SPECIMENS.strip())))),
    st.from_regex(r"[A-Za-z0-9.,;:()'\"/-]{1,8}", fullmatch=True),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(chunk, st.sampled_from([" ", "  ", "\n"])), max_size=25))
@example([("valves", " "), ("etc.", " "), ("The", " "), ("end.", " "), (")", "\n")])
def test_words_are_those_of_nltk(pieces: list[tuple[str, str]]) -> None:
    text = "".join(word + space for word, space in pieces)
    assert words(text) == by_nltk(text)


def test_rules_of_attentionxml() -> None:
    assert words("Council Regulation (EEC) No 1408/71 -- it isn't new.") == (
        ["council", "regulation", "eec", "no", "1408/71", "it", "is", "n't", "new"]
    )
    assert words("Title /SEP/ Text") == ["title", "/SEP/", "text"]


def test_vocabulary_is_train_by_document_frequency() -> None:
    train, test = tokenise([["b a a", "a b", "c", ""], ["a new", ""]], jobs=1)
    assert list(train.vocabulary) == ["<PAD>", "<UNK>", "a", "b", "c"]
    assert [row.tolist() for row in train] == [[3, 2, 2], [2, 3], [4], [1]]
    assert [row.tolist() for row in test] == [[2, 1], [1]]


def test_ready_tokens_are_taken_as_they_are() -> None:
    (tokens,) = tokenise([["Don't (Lower)"]], already=True, jobs=1)
    assert list(tokens.vocabulary)[2:] == ["(Lower)", "Don't"]


@pytest.mark.slow
def test_tokens_do_not_depend_on_the_number_of_jobs() -> None:
    rng = np.random.default_rng(0)
    lexicon = [f"w{i}" for i in range(300)]
    texts = [" ".join(rng.choice(lexicon, size=5)) for _ in range(2500)]
    one, two = tokenise([texts, texts[:10]], jobs=1), tokenise([texts, texts[:10]], jobs=2)
    for a, b in zip(one, two, strict=True):
        assert list(a.vocabulary) == list(b.vocabulary)
        np.testing.assert_array_equal(a.ids, b.ids)
        np.testing.assert_array_equal(a.indptr, b.indptr)
