"""Texts into tokens by AttentionXML's rules: NLTK's words, lower case, none without a letter.

``nltk.word_tokenize`` cuts a text into sentences with a trained Punkt model and each sentence
into words. The model is a download of its own, so Punkt runs untrained here: it takes the
period of an abbreviation ("Art.", "No.") for the end of a sentence, and the token loses it.
Nothing else differs, and every machine gets the same tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from joblib import Parallel, cpu_count, delayed
from nltk.tokenize import NLTKWordTokenizer, PunktSentenceTokenizer

from benchmarks.data.split import Tokens

PADDING, UNKNOWN = "<PAD>", "<UNK>"
SEPARATOR = "/SEP/"
"""Stands between title and description in the Amazon texts, and keeps its case."""
VOCABULARY_LIMIT = 500_000
_DOCUMENTS_PER_JOB = 1000


class _Sentences(PunktSentenceTokenizer):
    """Punkt that remembers its decisions: untrained, they depend on nothing but the words around
    a stop, and legal texts repeat those."""

    def __init__(self) -> None:
        super().__init__()
        self.text_contains_sentbreak = lru_cache(maxsize=500_000)(super().text_contains_sentbreak)


_sentences = _Sentences()
_words = NLTKWordTokenizer()
_WORD_CHARACTER = re.compile(r"\w")
_ONLY_CLOSERS = re.compile(r"""[\])}>"'»”’]+""")
_CHUNK = re.compile(r"\S+")
_SENTINEL = "x"


def words(text: str) -> list[str]:
    """The tokens of a text."""
    found: list[str] = []
    for sentence in _sentences.tokenize(text):
        chunks = sentence.split()
        # NLTK takes off a sentence's last period even if closing brackets and quotes follow.
        tail = len(chunks) - 1
        while tail > 0 and _ONLY_CLOSERS.fullmatch(chunks[tail]):
            tail -= 1
        for chunk in chunks[:tail]:
            found.extend(_inner(chunk))
        end = " ".join(chunks[tail:])
        if tail < len(chunks) - 1:  # what stands between them matters: a line end is no space
            end = sentence[list(_CHUNK.finditer(sentence))[tail].start() :].rstrip()
        found.extend(_last(end))
    return found


# NLTK's rules do not look across white space but at the end of a sentence, so each chunk between
# spaces can be tokenised once and remembered: texts repeat their words. Most chunks are a plain
# word or number with brackets and stops around it, which the rules only take off.
_CORE = r"[(\[{]*([A-Za-z0-9]+(?:(?:[/.-]|[,:](?=[0-9]))[A-Za-z0-9]+)*)[)\]}]*"
_PLAIN = re.compile(_CORE + r"[,;:?!]?")
_PLAIN_LAST = re.compile(_CORE + r"(?:[,;:?!]|\.[)\]}]*)?")
_PLAIN_PIECE = re.compile(r"[A-Za-z0-9]+")
_CONTRACTIONS = frozenset({"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"})


@lru_cache(maxsize=1_000_000)
def _inner(chunk: str) -> tuple[str, ...]:
    plain = _plain(_PLAIN.fullmatch(chunk))
    if plain is not None:
        return (plain,)
    return _clean(_words.tokenize(f"{_SENTINEL} {chunk} {_SENTINEL}")[1:-1])


@lru_cache(maxsize=300_000)
def _last(chunk: str) -> tuple[str, ...]:
    plain = _plain(_PLAIN_LAST.fullmatch(chunk))
    if plain is not None:
        return (plain,)
    return _clean(_words.tokenize(f"{_SENTINEL} {chunk}")[1:])


def _plain(match: re.Match[str] | None) -> str | None:
    """The one token of a chunk that NLTK would leave whole, or None if it might not."""
    if match is None:
        return None
    token = match[1].lower()
    if _CONTRACTIONS.intersection(_PLAIN_PIECE.findall(token)):
        return None
    return token


def _clean(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        token if token == SEPARATOR else token.lower()
        for token in tokens
        if _WORD_CHARACTER.search(token)
    )


def tokenise(
    splits: Sequence[Sequence[str]], *, already: bool = False, jobs: int | None = None
) -> list[Tokens]:
    """Token ids of each split's texts under one vocabulary, that of the first (train).

    The vocabulary is ``<PAD>``, ``<UNK>``, then words by document frequency, ties by alphabet,
    500,000 at most; the result does not depend on ``jobs``. ``already`` says that texts are
    tokens joined by spaces. An empty document becomes one ``<UNK>``.
    """
    jobs = jobs or cpu_count()
    batches = [
        (number, texts[start : start + _DOCUMENTS_PER_JOB])
        for number, texts in enumerate(splits)
        for start in range(0, len(texts), _DOCUMENTS_PER_JOB)
    ]
    # One process for little work: starting more takes longer than a batch.
    work = Parallel(n_jobs=1 if len(batches) < 4 else jobs, return_as="generator")(
        delayed(_batch)(texts, already) for _, texts in batches
    )
    counted: list[tuple[int, list[str], np.ndarray, np.ndarray]] = []
    frequency: Counter[str] = Counter()
    for (number, _), (local, lengths, ids, documents) in zip(batches, work, strict=True):
        counted.append((number, local, lengths, ids))
        if number == 0:
            frequency.update(dict(zip(local, documents.tolist(), strict=True)))
    for reserved in (PADDING, UNKNOWN):
        frequency.pop(reserved, None)
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))
    vocabulary = [PADDING, UNKNOWN, *ranked[: VOCABULARY_LIMIT - 2]]
    index = {word: i for i, word in enumerate(vocabulary)}
    result = []
    for number in range(len(splits)):
        parts = [part for part in counted if part[0] == number]
        lengths = np.concatenate([part[2] for part in parts] or [np.zeros(0, np.int64)])
        ids = [
            np.array([index.get(word, 1) for word in local], np.int32)[codes]
            for _, local, _, codes in parts
        ]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        joined = np.concatenate(ids or [np.zeros(0, np.int32)])
        result.append(Tokens(indptr, joined, vocabulary))
    return result


def _batch(
    texts: Sequence[str], already: bool
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Local vocabulary, document lengths, local ids and local document frequencies."""
    local: dict[str, int] = {}
    ids: list[int] = []
    lengths = np.empty(len(texts), np.int64)
    documents: Counter[int] = Counter()
    for i, text in enumerate(texts):
        own = [
            local.setdefault(word, len(local))
            for word in (text.split() if already else words(text)) or [UNKNOWN]
        ]
        documents.update(set(own))
        ids.extend(own)
        lengths[i] = len(own)
    frequencies = np.array([documents[i] for i in range(len(local))], np.int64)
    return list(local), lengths, np.array(ids, np.int32), frequencies
