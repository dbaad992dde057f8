"""Seeded synthetic corpora, shaped like this field's data, whose complete labels are known.

Each document first gets its *complete* labels, from topics that make labels co-occur and a
Zipf-Mandelbrot prior that makes most of them rare; its words come from those labels, from the
topics and from a Zipfian background. Then labels go missing by the propensity model (PW eq. 3).
Both label matrices are kept, so that what propensity-scored metrics estimate can be looked up.

The text corpora have the labels of their bags of words and texts of their own, which reward
reading. Word order: words of labels that a document does *not* carry stand in it, too, each right
behind a word that negates it. A model that sees the order of words can leave them out; a bag of
words, which the text corpora come with for comparison, cannot. Meaning: the words are English, and
those of a label or a topic are close in meaning, so that a pretrained encoder can tell a label by
a word that no training document of the label has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.english import COMMON, NEGATORS, themes
from benchmarks.data.split import Inputs, Split, Tokens
from benchmarks.evaluation.propensity import DEFAULT_A, DEFAULT_B, inverse_propensity

PADDING, UNKNOWN = 0, 1
OF_BACKGROUND, OF_TOPIC = -1, -2
"""What a word comes from if not from a label."""


@dataclass(frozen=True)
class Corpus:
    """The shape of a synthetic corpus."""

    n_train: int
    n_test: int
    n_labels: int
    n_words: int
    n_topics: int
    complete_labels_per_document: float
    mean_length: int


CORPORA = {
    "demo": Corpus(3000, 800, 400, 3000, 20, 10.7, 90),
    "tiny": Corpus(300, 80, 60, 400, 5, 11.5, 40),
}
NAMES = tuple(f"{corpus}-{kind}" for corpus in CORPORA for kind in ("bow", "text"))

ZIPF_EXPONENT, ZIPF_OFFSET = 1.15, 4.0
TOPIC_LOG_BOOST = 3.0
WORDS_PER_LABEL, WORDS_PER_TOPIC = 6, 25
SHARE_LABEL_WORDS, SHARE_TOPIC_WORDS = 0.30, 0.20  # the rest is background
TEXT_LENGTH = 60  # words of a text on average; mean_length is of the bags of words
SHARE_NEGATED = 0.18  # of a text's words; as many negators stand before them


@dataclass(frozen=True)
class Words:
    """Ids of the words that documents are made of.

    ``background`` int[n] are drawn with ``chances`` float[n]; ``of_labels`` is int[L, w] and
    ``of_topics`` int[T, v], each drawn evenly. ``vocabulary`` spells the ids of texts.
    """

    background: np.ndarray
    chances: np.ndarray
    of_labels: np.ndarray
    of_topics: np.ndarray
    vocabulary: Sequence[str] = ()


def generate(name: str) -> tuple[Split, Split]:
    """Train and test of ``demo-bow``, ``demo-text``, ``tiny-bow`` or ``tiny-text``.

    The ``bow`` and ``text`` versions have the same labels.
    """
    if name not in NAMES:
        raise ValueError(f"no synthetic corpus {name!r}; there are {', '.join(NAMES)}")
    corpus, _, kind = name.partition("-")
    shape = CORPORA[corpus]
    drawn = _documents(corpus)
    complete, labels = drawn.complete, drawn.labels
    tokens = drawn.tokens if kind == "bow" else _texts_of(corpus)
    n_words = shape.n_words if kind == "bow" else len(tokens.vocabulary)
    bow = _tfidf(tokens, shape.n_train, n_words)
    rows = np.arange(shape.n_train), np.arange(shape.n_train, shape.n_train + shape.n_test)
    if kind == "bow":
        train_inputs, test_inputs = (Inputs(bow=bow[some]) for some in rows)
    else:
        parts = [tokens.take(some) for some in rows]
        train_inputs, test_inputs = (
            Inputs(bow=bow[some], tokens=part, texts=_texts(part))
            for some, part in zip(rows, parts, strict=True)
        )
    train_rows, test_rows = rows
    meta: dict[str, Any] = {
        "name": name,
        "A": DEFAULT_A,
        "B": DEFAULT_B,
        "source": f"synthetic corpus {corpus!r}, generated from a fixed seed",
        "licence": "none needed: generated",
        "n_train": shape.n_train,
        "n_test": shape.n_test,
        "n_features": n_words,
        "n_labels": shape.n_labels,
        "inputs": sorted(train_inputs.kinds),
    }
    return (
        Split(train_inputs, labels[train_rows], meta, complete[train_rows]),
        Split(test_inputs, labels[test_rows], meta, complete[test_rows]),
    )


def _stream(name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"tailtables {name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


@dataclass(frozen=True)
class Documents:
    """Complete and observed labels, csr[n, L], topics int[n, 2] and the words of the ``bow``."""

    topic_of_label: np.ndarray
    complete: sparse.csr_matrix
    labels: sparse.csr_matrix
    topics: np.ndarray
    tokens: Tokens


@lru_cache(maxsize=len(CORPORA))
def _documents(corpus: str) -> Documents:
    shape = CORPORA[corpus]
    rng = _stream(corpus)
    topic_of_label = rng.integers(shape.n_topics, size=shape.n_labels)
    complete, topics = _complete_labels(shape, topic_of_label, rng)
    labels = _hide(complete, shape.n_train, rng)
    words = _drawn_words(shape, rng)
    tokens, _ = _tokens(words, shape.mean_length, complete, topics, rng)
    return Documents(topic_of_label, complete, labels, topics, tokens)


def _texts_of(corpus: str) -> Tokens:
    """The words of a text corpus, in their order."""
    shape, drawn = CORPORA[corpus], _documents(corpus)
    words = english_words(shape, drawn.topic_of_label)
    rng = _stream(f"{corpus} text")
    tokens, origin = _tokens(words, TEXT_LENGTH, drawn.complete, drawn.topics, rng)
    return _with_negated(tokens, origin, drawn.complete, drawn.topics, rng)


def _complete_labels(
    shape: Corpus, topic_of_label: np.ndarray, rng: np.random.Generator
) -> tuple[sparse.csr_matrix, np.ndarray]:
    n = shape.n_train + shape.n_test
    ranks = rng.permutation(shape.n_labels) + 1
    log_prior = -ZIPF_EXPONENT * np.log(ranks + ZIPF_OFFSET)
    # One or two topics per document; the second may repeat the first.
    topics = rng.integers(shape.n_topics, size=(n, 2))
    in_topic = (topics[:, :, None] == topic_of_label).any(axis=1)
    weight = log_prior + TOPIC_LOG_BOOST * in_topic + rng.gumbel(size=in_topic.shape)
    sizes = 1 + rng.poisson(shape.complete_labels_per_document - 1, size=n)
    # The m largest Gumbel-perturbed log-weights are a draw of m labels without replacement.
    order = np.argsort(-weight, axis=1)
    mask = np.arange(shape.n_labels) < sizes[:, None]
    return _ones(np.nonzero(mask)[0], order[mask], weight.shape), topics


def _hide(complete: sparse.csr_matrix, n_train: int, rng: np.random.Generator) -> sparse.csr_matrix:
    """Keep each label of a document with its propensity.

    PW eq. 3 takes the *observed* count n, and n = p(n) n* ties it to the complete count n*; the
    fixed point is what makes the propensities that metrics derive from observed counts the true
    ones in expectation.
    """
    full = np.bincount(complete[:n_train].indices, minlength=complete.shape[1])
    observed = full.astype(np.float64)
    for _ in range(200):
        observed = full / inverse_propensity(observed, n_train)
    keep_probability = 1.0 / inverse_propensity(observed, n_train)
    kept = rng.random(complete.nnz) < keep_probability[complete.indices]
    rows = np.repeat(np.arange(complete.shape[0]), np.diff(complete.indptr))
    return _ones(rows[kept], complete.indices[kept], complete.shape)


def _drawn_words(shape: Corpus, rng: np.random.Generator) -> Words:
    """Words without a spelling, for the bags of words."""
    words = np.arange(2, shape.n_words)  # 0 is padding, 1 the unknown word
    # The commonest words belong to no label, as stop words do.
    content = words[len(words) // 20 :]
    of_labels = rng.choice(content, size=(shape.n_labels, WORDS_PER_LABEL))
    of_topics = rng.choice(content, size=(shape.n_topics, WORDS_PER_TOPIC))
    return Words(words, _zipf(len(words)), of_labels, of_topics)


def english_words(shape: Corpus, topic_of_label: np.ndarray) -> Words:
    """English words for the texts: a theme per topic, a group of its words per label.

    Themes have as many groups as a topic has labels on average: where a topic has more, the rest
    get groups that other topics left.
    """
    known = themes()[: shape.n_topics]
    names = ["<pad>", "<unk>", *NEGATORS, *COMMON]
    names += [word for theme in known for part in (theme.general, *theme.groups) for word in part]
    ids = {word: i for i, word in enumerate(names)}
    free = [list(theme.groups) for theme in known]
    found = [free[topic].pop(0) if free[topic] else None for topic in topic_of_label]
    left = iter([group for groups in free for group in groups])
    of_labels = [[ids[word] for word in group or next(left)] for group in found]
    of_topics = [[ids[word] for word in theme.general] for theme in known]
    common = np.array([ids[word] for word in COMMON])
    return Words(common, _zipf(len(common)), np.array(of_labels), np.array(of_topics), names)


def _zipf(n: int) -> np.ndarray:
    weights = 1.0 / (np.arange(n) + 2.7)
    return np.asarray(weights / weights.sum())


def _tokens(
    words: Words,
    mean_length: int,
    complete: sparse.csr_matrix,
    topics: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Tokens, np.ndarray]:
    """Documents of such words, and the label that each word is from."""
    n = len(topics)
    lengths = np.maximum(8, rng.lognormal(np.log(mean_length), 0.35, n)).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    row = np.repeat(np.arange(n), lengths)
    total = int(indptr[-1])
    ids = rng.choice(words.background, size=total, p=words.chances)
    source = rng.random(total)
    by_label = source < SHARE_LABEL_WORDS
    by_topic = ~by_label & (source < SHARE_LABEL_WORDS + SHARE_TOPIC_WORDS)

    label_rows = row[by_label]
    counts = np.diff(complete.indptr)[label_rows]
    pick = (rng.random(len(label_rows)) * counts).astype(np.int64)
    label = complete.indices[complete.indptr[label_rows] + pick]
    ids[by_label] = _one_of(words.of_labels, label, rng)
    topic = topics[row[by_topic], rng.integers(2, size=int(by_topic.sum()))]
    ids[by_topic] = _one_of(words.of_topics, topic, rng)
    origin = np.full(total, OF_BACKGROUND)
    origin[by_label], origin[by_topic] = label, OF_TOPIC
    tokens = Tokens(indptr.astype(np.int64), ids.astype(np.int32), words.vocabulary)
    return tokens, origin


def _one_of(words: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A word of each of the rows, drawn evenly."""
    return np.asarray(words[rows, rng.integers(words.shape[1], size=len(rows))])


def _with_negated(
    tokens: Tokens,
    origin: np.ndarray,
    complete: sparse.csr_matrix,
    topics: np.ndarray,
    rng: np.random.Generator,
) -> Tokens:
    """The documents with negated words of labels they do not carry, in place of background.

    The words are those of another document of the same first topic, so that they are likely ones.
    """
    negators = [tokens.vocabulary.index(word) for word in NEGATORS]
    same_topic = [np.flatnonzero(topics[:, 0] == t) for t in range(topics.max() + 1)]
    rows = []
    for i, words in enumerate(tokens):
        own = slice(tokens.indptr[i], tokens.indptr[i + 1])
        other = rng.choice(same_topic[topics[i, 0]])
        there = slice(tokens.indptr[other], tokens.indptr[other + 1])
        carried = complete.indices[complete.indptr[i] : complete.indptr[i + 1]]
        foreign = (origin[there] >= 0) & ~np.isin(origin[there], carried)
        wanted = min(int(SHARE_NEGATED * len(words)), int(foreign.sum()))
        negated = rng.choice(tokens.ids[there][foreign], wanted, replace=False)
        background = rng.permutation(np.flatnonzero(origin[own] == OF_BACKGROUND))
        kept = np.delete(words, background[: 2 * wanted])
        pairs = np.stack([rng.choice(negators, wanted), negated], axis=1)
        gaps = np.sort(rng.integers(len(kept) + 1, size=wanted))
        rows.append(np.insert(kept, np.repeat(gaps, 2), pairs.ravel()))
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return Tokens(indptr, np.concatenate(rows).astype(np.int32), tokens.vocabulary)


def _texts(tokens: Tokens) -> list[str]:
    return [" ".join(tokens.vocabulary[i] for i in row) for row in tokens]


def _tfidf(tokens: Tokens, n_train: int, n_words: int) -> sparse.csr_matrix:
    # Imported here: the list of corpora is read by every job, scikit-learn takes a second.
    from sklearn.feature_extraction.text import TfidfTransformer

    rows = np.repeat(np.arange(len(tokens)), np.diff(tokens.indptr))
    counts = sparse.csr_matrix(
        (np.ones(len(rows), np.float32), (rows, tokens.ids)), shape=(len(tokens), n_words)
    )
    counts.sum_duplicates()
    transformer = TfidfTransformer(sublinear_tf=True).fit(counts[:n_train])
    return sparse.csr_matrix(transformer.transform(counts), dtype=np.float32)


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.sort_indices()
    return matrix
