"""What every registered method, variant and dataset must do: new ones are tested when added."""

import importlib
import pkgutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tiny_encoders

import methods.hooks
from benchmarks.data import load
from benchmarks.data.synthetic import NAMES
from benchmarks.evaluation.metrics import score
from methods.controls import Oracle
from methods.cost import Cost
from methods.interface import DivergedError, Method, Resources, Variant
from methods.registry import (
    ALIASES,
    BASES,
    PLAIN,
    VARIANTS,
    MisfitError,
    assemble,
    base_recipe,
    canonical,
    get,
    variant_recipes,
)

K = 10
ENCODERS = {
    "RoBERTa-base": tiny_encoders.roberta,
    "XLNet-base-cased": tiny_encoders.xlnet,
    "all-MiniLM-L6-v2": tiny_encoders.bert,
}
SHORT = {"max_length": 40, "epochs": 25, "batch_size": 20, "evaluate_every": 40}
SHORT |= {"layers": 1, "trainable": True}
SMALL = {
    "LaRoBERTa": {"recipe": "converging", "learning_rate": 1e-2, "encoder_rate": 1.0, **SHORT},
    "LaMiniLM": {"learning_rate": 1e-2, "encoder_rate": 1.0, **SHORT}
    | {"epochs": 10, "evaluate_every": 100},
    "APLC-XLNet": {"learning_rate": 1e-2, "encoder_rate": 1.0, "summary_rate": 1.0, **SHORT},
    "APLC-MiniLM": {"learning_rate": 1e-2, "encoder_rate": 1.0, **SHORT},
}
"""Parameters for tests of a contract: a model of a few thousand weights learns from nothing."""


@cache
def encoder(name):
    """A tiny encoder, drawn at random, in place of one that may not be here."""
    folder = Path(tempfile.mkdtemp(prefix="tiny-encoder-"))
    # As many pieces as words and bytes together: most words are one piece.
    ENCODERS[name](folder, load("tiny-text")[0].inputs.texts, 1000, 1)
    return folder


def small(base):
    return replace(base_recipe(base), params=SMALL.get(base, {}))


def dataset_for(method):
    return load("tiny-bow" if method.needs <= {"bow"} else "tiny-text")


# Every variant and every composition with a name, alone on one base; not all pairs, which say
# little more and take hours once there are deep bases.
CHANGES = list(dict.fromkeys(canonical(name) for name in [*VARIANTS, *ALIASES]))


def fits(base, variant):
    try:
        assemble(base_recipe(base), variant_recipes(variant))
    except MisfitError as misfit:
        assert_is_a_reason(str(misfit), base)
        return False
    return True


def assert_is_a_reason(text, base):
    assert base in text
    assert len(text) > len(base) + 15


PAIRS = [(base, PLAIN) for base in BASES]
PAIRS += [(next(base for base in BASES if fits(base, change)), change) for change in CHANGES]


@cache
def fitted(base, variant, **context):
    """A method that can run here, fitted, with its data; one that cannot must say why."""
    method = assemble(small(base), variant_recipes(variant))
    train, test = dataset_for(method)
    reason = method.skip(train.meta, Resources())
    if reason is not None:
        assert_is_a_reason(reason, base)
        return None
    if isinstance(method, Oracle):
        method = method.given(test.labels)
    resources = {name: encoder(name) for name in method.resources}
    if variant == "unbiased":  # has no minimum here, and must say so
        with pytest.raises(DivergedError, match="no minimum"):
            method.fit(train, seed=1, resources=resources, **context)
        return None
    return method.fit(train, seed=1, resources=resources, **context), train, test


@pytest.mark.parametrize(("base", "variant"), PAIRS)
def test_predictions_are_valid_deterministic_and_survive_saving(base, variant, tmp_path):
    result = fitted(base, variant)
    if result is None:
        return
    model, train, test = result
    top = model.predict(test.inputs, K)
    assert top.k == K
    assert top.fault(len(test), test.n_labels) is None
    assert (top.indices[:, 0] >= 0).mean() > 0.9

    if get(base).seedable:
        again = fitted(base, variant, threads=2)[0].predict(test.inputs, K)
        assert (again.indices == top.indices).all(), "seeded, whatever the cores"
        assert (again.scores == top.scores).all()
    else:
        assert any("seed" in note for note in model.notes), "says that a seed has no effect"

    model.save(tmp_path)
    loaded = type(model).load(tmp_path).predict(test.inputs, K)
    # Other people's programs may store rounded weights.
    rounding = 0.0 if get(base).seedable else 1e-4
    np.testing.assert_allclose(loaded.scores, top.scores, rtol=rounding)
    if not rounding:
        assert (loaded.indices == top.indices).all()

    norms = model.label_norms()
    if norms is not None:
        assert norms.shape == (train.n_labels,)
        assert (norms[np.isfinite(norms)] >= 0).all()


@pytest.mark.parametrize("base", BASES)
def test_every_variant_fits_or_says_why(base):
    assert [change for change in CHANGES if fits(base, change)] or not get(base).needs


def test_every_name_is_tried():
    assert {base for base, _ in PAIRS} == set(BASES)
    assert {change for _, change in PAIRS} == {PLAIN, *VARIANTS, "RankNet+Taug"}
    assert not set(BASES) & set(VARIANTS), "owners of parameters are told apart by name"


@pytest.mark.parametrize(("base", "variant"), PAIRS)
def test_parameters_and_hooks_have_owners(base, variant):
    modules = pkgutil.iter_modules(methods.hooks.__path__, "methods.hooks.")
    hooks = [vars(importlib.import_module(module.name)) for module in modules]
    kinds = {value.kind for names in hooks for value in names.values() if hasattr(value, "kind")}
    recipes = [base_recipe(base), *variant_recipes(variant)]
    method = assemble(recipes[0], recipes[1:])
    assert list(method.params()) == [recipe.owner for recipe in recipes]
    assert canonical(method.variant) == variant
    assert method.accepts <= kinds
    for recipe in recipes[1:]:
        assert recipe.build(Variant).sets <= kinds
    assert not method.package or method.extra, "says which extra has its package"


@pytest.mark.parametrize("base", BASES)
def test_a_base_says_what_it_is(base):
    method = get(base)
    assert isinstance(method, Method)
    assert method.name == base
    assert method.variant == PLAIN
    train, _ = dataset_for(method)
    cost = method.cost(train.meta)
    if base in ("oracle", "popularity", "random"):
        return  # they look at no document
    assert isinstance(cost, Cost)
    assert cost.seconds > 0
    assert cost.megabytes > 0
    large = {name: 10 * train.meta[name] for name in ("n_train", "n_test", "n_labels")}
    more = method.cost({**train.meta, **large, "labels_in_train": large["n_labels"]})
    assert more.terms.keys() == cost.terms.keys()
    assert more.seconds > 5 * cost.seconds


@pytest.mark.parametrize("base", [b for b in BASES if b not in ("oracle", "popularity", "random")])
def test_a_base_learns_something(base):
    result = fitted(base, PLAIN)
    if result is None:
        return
    model, train, test = result
    popular = get("popularity").fit(train).predict(test.inputs, K)
    ours = score(model.predict(test.inputs, K), test.labels, train.labels)
    assert ours["PSP@5"] > score(popular, test.labels, train.labels)["PSP@5"]


@pytest.mark.parametrize("base", [b for b in BASES if b != "oracle"])
def test_predictions_do_not_depend_on_the_other_documents(base):
    result = fitted(base, PLAIN)
    if result is None or base == "random":
        return
    model, _, test = result
    whole = model.predict(test.inputs, K)
    part = model.predict(test.inputs.take(np.arange(5, 12)), K)
    assert (whole.indices[5:12] == part.indices).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_what_it_says(name):
    train, test = load(name)
    for split in (train, test):
        assert split.labels.shape[1] == train.meta["n_labels"]
        assert split.inputs.kinds == set(train.meta["inputs"])
        assert set(np.unique(split.labels.data)) == {1.0}
        assert split.labels.has_canonical_format
    assert (len(train), len(test)) == (train.meta["n_train"], train.meta["n_test"])
    assert train.meta["name"] == name
    assert train.meta["A"] > 0


def test_methods_are_never_shown_the_complete_labels():
    seen = []

    class Spy(type(get("popularity"))):
        def fit_in(self, train, context):
            seen.append(train.complete)
            return super().fit_in(train, context)

    train, _ = load("tiny-bow")
    assert train.complete is not None
    Spy().fit(train)
    assert seen == [None]
