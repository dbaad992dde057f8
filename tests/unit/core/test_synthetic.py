"""The demo corpora have the traits of this field's data."""

import hashlib

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.data.english import COMMON, NEGATORS, themes
from benchmarks.data.synthetic import (
    CORPORA,
    NAMES,
    SHARE_NEGATED,
    _documents,
    english_words,
    generate,
)
from benchmarks.evaluation.propensity import inverse_propensity


@pytest.fixture(scope="module")
def demo():
    return load("demo-bow")


def test_the_sizes_are_those_that_were_promised(demo):
    train, test = demo
    assert (len(train), len(test), train.n_labels) == (3000, 800, 400)
    tiny_train, tiny_test = load("tiny-text")
    assert (len(tiny_train), len(tiny_test), tiny_train.n_labels) == (300, 80, 60)
    assert 4.5 < train.labels.nnz / len(train) < 5.5


def test_label_frequencies_have_a_long_tail(demo):
    counts = np.sort(demo[0].label_counts())[::-1]
    assert counts[0] > 50 * np.median(counts)
    assert (counts <= 10).mean() > 0.4
    # A power law: the log-log slope over the body is straight and steep.
    rank = np.arange(10, 300)
    fit = np.polyfit(np.log(rank), np.log(counts[rank] + 1.0), 1, cov=True)
    assert -1.8 < fit[0][0] < -0.6
    assert np.sqrt(fit[1][0, 0]) < 0.05


def test_labels_of_one_topic_occur_together(demo):
    labels = demo[0].complete.toarray()
    together = labels.T @ labels
    share = labels.mean(axis=0)
    frequent = np.argsort(-share)[:50]
    expected = len(labels) * np.outer(share, share)
    lift = (together / expected)[np.ix_(frequent, frequent)][~np.eye(50, dtype=bool)]
    assert np.quantile(lift, 0.98) > 2.5, "no pair of frequent labels is drawn together"


def test_observed_labels_are_a_part_of_the_complete_ones(demo):
    for split in demo:
        assert (split.complete - split.labels).min() >= 0
        assert split.labels.nnz < split.complete.nnz


def test_labels_go_missing_by_the_propensity_model(demo):
    """PW eq. 3: the share kept in each frequency band is the model's p, from observed counts."""
    train, _ = demo
    complete = np.bincount(train.complete.indices, minlength=train.n_labels)
    observed = train.label_counts()
    propensity = 1.0 / inverse_propensity(observed, len(train))
    for low, high in [(2, 5), (6, 15), (16, 60), (61, 3000)]:
        band = (observed >= low) & (observed <= high)
        kept = observed[band].sum() / complete[band].sum()
        expected = (propensity[band] * complete[band]).sum() / complete[band].sum()
        spread = np.sqrt(expected * (1 - expected) / complete[band].sum())
        # Binning by the observed count selects upwards in the rarest band, hence the slack.
        assert abs(kept - expected) < 4 * spread + 0.03


@pytest.mark.parametrize("corpus", CORPORA)
def test_bow_and_text_have_the_same_labels(corpus):
    for bow, text in zip(generate(f"{corpus}-bow"), generate(f"{corpus}-text"), strict=True):
        assert (bow.labels != text.labels).nnz == 0
        assert (bow.complete != text.complete).nnz == 0
        words = [set(row.tolist()) for row in text.inputs.tokens]
        stored = [set(text.inputs.bow[i].indices.tolist()) for i in range(len(text))]
        assert words == stored, "the bag of words of a text corpus is that of its texts"
        assert text.inputs.texts[0].split() == [
            text.inputs.tokens.vocabulary[i] for i in next(iter(text.inputs.tokens))
        ]


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_text_negates_words_of_labels_it_does_not_carry(corpus):
    """Behind every negator is a word of a label that the document does not carry; every other word
    of a label is of one that it carries."""
    drawn = _documents(corpus)
    words = english_words(CORPORA[corpus], drawn.topic_of_label)
    label_of = {word: label for label, own in enumerate(words.of_labels) for word in own}
    assert len(label_of) == words.of_labels.size, "no word is of two labels"
    train, test = generate(f"{corpus}-text")
    rows = [*train.inputs.tokens, *test.inputs.tokens]
    spelt = train.inputs.tokens.vocabulary
    negated_words = 0
    for i, row in enumerate(rows):
        carried = set(drawn.complete[i].indices.tolist())
        behind = {at + 1 for at, word in enumerate(row) if spelt[word] in NEGATORS}
        assert all(label_of[row[at]] not in carried for at in behind)
        others = {label_of.get(word) for at, word in enumerate(row) if at not in behind}
        assert others - {None} <= carried
        negated_words += len(behind)
    assert 0.1 < negated_words / sum(map(len, rows)) < SHARE_NEGATED


@pytest.mark.parametrize("corpus", CORPORA)
def test_labels_of_a_topic_have_words_of_its_theme(corpus):
    """At least nine in ten: a theme has no more groups of words than labels on average."""
    shape, topic_of_label = CORPORA[corpus], _documents(corpus).topic_of_label
    words = english_words(shape, topic_of_label)
    of_theme = [{word for group in theme.groups for word in group} for theme in themes()]
    inside = [
        {words.vocabulary[word] for word in own} <= of_theme[topic]
        for own, topic in zip(words.of_labels, topic_of_label, strict=True)
    ]
    assert np.mean(inside) > 0.9


def test_the_english_words_are_all_different():
    words = [*NEGATORS, *COMMON]
    for theme in themes():
        words += [*theme.general, *(word for group in theme.groups for word in group)]
    assert len(set(words)) == len(words)
    assert all(word.isalpha() and word.islower() for word in words)
    assert len({len(theme.general) for theme in themes()}) == 1
    assert len({len(theme.groups) for theme in themes()}) == 1
    assert len(themes()) >= max(shape.n_topics for shape in CORPORA.values())


@pytest.mark.parametrize(
    ("name", "digest"), [("demo-bow", "8518e4ba33a199b7"), ("tiny-bow", "33e7132c4c1f68f2")]
)
def test_the_bags_of_words_keep_their_bits(name, digest):
    """Committed results stand on them."""
    found = hashlib.sha256()
    for split in generate(name):
        for matrix in (split.inputs.bow, split.labels, split.complete):
            for part in (matrix.data, matrix.indices, matrix.indptr):
                found.update(part.tobytes())
    assert found.hexdigest()[:16] == digest


def test_words_are_zipfian():
    train, _ = load("demo-text")
    counts = np.sort(np.bincount(train.inputs.tokens.ids))[::-1]
    counts = counts[counts > 0]
    assert counts[0] > 100 * np.median(counts)
    assert len(set(train.inputs.tokens.vocabulary)) == len(train.inputs.tokens.vocabulary)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_corpus_every_time(name):
    first = generate(name)
    _documents.cache_clear()
    second = generate(name)
    for a, b in zip(first, second, strict=True):
        assert (a.labels != b.labels).nnz == 0
        if a.inputs.bow is not None:
            assert (a.inputs.bow.data == b.inputs.bow.data).all()
        else:
            assert (a.inputs.tokens.ids == b.inputs.tokens.ids).all()
