"""The protocol: hooks, the validation split and resources reach the method that asks for them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import read_meta
from methods.controls import Popularity
from methods.holdout import hold_out
from methods.hooks import Hooks
from methods.hooks.batch_mixer import EmbeddingMixer, Flow
from methods.hooks.loss_weights import LabelWeights
from methods.hooks.regulariser import Regulariser
from methods.interface import Resources, Variant
from methods.registry import get


class Asking(Popularity):
    """Keeps the context it was fitted in, and what it was fitted on."""

    name = "asking"
    resources = frozenset({"vectors"})
    accepts = frozenset({"embedding_mixer"})

    def dev_size(self, meta):
        return 20

    def fit_in(self, train, context):
        self.train, self.context = train, context
        return super().fit_in(train, context)


class Shift(EmbeddingMixer):
    def __init__(self, by):
        self.by = by

    def mix(self, flow, rng):
        return replace(flow, values=flow.values * 2 + self.by)


class Mixing(Variant):
    name = "mixing"
    sets = frozenset({"embedding_mixer", "loss_weights"})

    def apply(self, base):
        return base


def test_held_out_documents_are_a_seeded_part_in_the_old_order():
    train, _ = load("tiny-bow")
    rest, dev = hold_out(train, 30, seed=4)
    assert (len(rest), len(dev)) == (len(train) - 30, 30)
    rows = {row.tobytes(): i for i, row in enumerate(train.inputs.bow.toarray())}
    assert len(rows) == len(train), "the rows tell documents apart"
    places = [[rows[r.tobytes()] for r in part.inputs.bow.toarray()] for part in (rest, dev)]
    assert sorted(places[0] + places[1]) == list(range(len(train)))
    assert all(place == sorted(place) for place in places)
    again, other = hold_out(train, 30, seed=4)[1], hold_out(train, 30, seed=5)[1]
    assert (again.inputs.bow != dev.inputs.bow).nnz == 0
    assert (other.inputs.bow != dev.inputs.bow).nnz > 0
    with pytest.raises(ValueError, match="cannot hold out"):
        hold_out(train, len(train), seed=0)


def test_a_method_is_given_the_context_it_asks_for(tmp_path):
    train, test = load("tiny-bow")
    method = Asking()
    method.fit(train, seed=3, resources={"vectors": tmp_path}, hooks=[Shift(1)])
    rest, dev = hold_out(train, 20, 3)
    assert (method.train.inputs.bow != rest.inputs.bow).nnz == 0
    assert (method.context.dev.labels != dev.labels).nnz == 0
    assert method.context.dev.complete is None
    assert method.context.resources == {"vectors": tmp_path}
    assert method.context.hooks.find(EmbeddingMixer).by == 1
    assert method.context.hooks.find(Regulariser) is None
    method.fit(train, resources={"vectors": tmp_path}, dev=test)
    assert method.context.dev is test
    assert len(method.train) == len(train), "nothing is held out where a dev split is given"


def test_what_is_missing_or_not_taken_is_named():
    train, _ = load("tiny-bow")
    with pytest.raises(ValueError, match="asking needs the resources vectors"):
        Asking().fit(train)
    ones = np.ones(train.n_labels)
    with pytest.raises(ValueError, match="popularity does not take embedding mixer, loss weights"):
        get("popularity").fit(train, hooks=[LabelWeights(ones, ones), Shift(1)])


def test_a_variant_fits_where_its_hooks_are_taken():
    assert Mixing().misfit(Asking()) == "asking takes no loss weights in its training"
    assert "embedding mixer, loss weights" in Mixing().misfit(get("popularity"))
    assert get("DiSMEC").accepts == {"loss_weights"}


def test_hooks_of_one_kind_are_joined_in_order():
    weights = LabelWeights(np.array([2.0, 3.0]), np.array([1.0, 5.0]))
    hooks = Hooks(weights, Shift(1), weights, Shift(10))
    assert set(hooks) == {"loss_weights", "embedding_mixer"}
    both = hooks.find(LabelWeights)
    assert (both.positive.tolist(), both.negative.tolist()) == ([4.0, 9.0], [1.0, 25.0])
    flow = Flow(np.array([3]), None, None, None, loss_of=lambda flow: flow.values)
    mixed = hooks.find(EmbeddingMixer).mix(flow, np.random.default_rng(0))
    assert mixed.values.tolist() == [24]  # (3 * 2 + 1) * 2 + 10
    second = hooks.of_labels(np.array([1])).find(LabelWeights)
    assert second.positive.tolist() == [9.0]


@pytest.mark.parametrize(
    ("extra", "advice"), [("text", "'tailtables[text]'"), ("", "no_such_package")]
)
def test_a_missing_package_is_answered_with_the_extra_that_has_it(extra, advice):
    class Deep(Popularity):
        name = "deep"
        package = "no_such_package"

    Deep.extra = extra
    expected = f"deep needs the package no_such_package: pip install {advice}"
    assert Deep().skip({"inputs": ["bow"]}, Resources()) == expected


def test_methods_read_facts_that_prepared_datasets_have(root, tmp_path):
    """A key that nothing writes would silently leave a law with its default."""
    written = read_meta(ensure("tiny-text", tmp_path))  # has a bag of words, too
    sources = [path.read_text() for path in (root / "methods").rglob("*.py")]
    read = {key for text in sources for key in re.findall(r'meta(?:\.get\(|\[)"(\w+)"', text)}
    assert "features_per_train_document" in read
    assert read <= written.keys()
    dismec = get("DiSMEC")
    costs = [dismec.cost({**written, "features_per_train_document": n}) for n in (10.0, 1000.0)]
    assert costs[0].seconds < costs[1].seconds
    assert costs[0].megabytes < costs[1].megabytes


def test_regularisers_add_up():
    class Norm(Regulariser):
        def penalty(self, label_embeddings, targets, document_embeddings=None, rng=None):
            return float(np.abs(label_embeddings).sum())

    joined = Hooks(Norm(), Norm(), Norm()).find(Regulariser)
    assert joined.penalty(np.array([1.0, -2.0]), None) == 9.0
