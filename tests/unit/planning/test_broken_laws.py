"""A law of cost is a user's code: whatever it does, runs and plans go on."""

import math
import warnings

import pytest

from methods.cost import Cost, Term, law
from methods.registry import base_recipe, variant_recipes
from methods.text.base import TextMethod
from methods.text.laroberta import LaMiniLM
from methods.text.transformers import TransformerMethod
from methods.text.xml_cnn import XMLCNN
from methods.trees.parabel import Bonsai
from workflow.planning.laws import fit
from workflow.planning.observed import DOCUMENT_SECONDS, work_of
from workflow.remaining import planned_seconds

META = {"n_train": 1000, "n_test": 200, "n_features": 500, "n_labels": 50}
UNIT = {"unit": Term(1.0, 1.0)}


def raising(self, meta):
    return Cost({"nothing": Term(meta["no such count"], 1.0)}, 100.0)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (raising, "KeyError: 'no such count'"),
        (lambda self, meta: 12.5, "AttributeError"),
        (lambda self, meta: Cost({"unit": Term(math.nan, 1.0)}, 100.0), "no number"),
        (lambda self, meta: Cost({"unit": Term(-1.0, 1.0), "more": Term(2.0, 1.0)}, 1.0), "negat"),
        (lambda self, meta: Cost({}, 100.0), "nothing at all"),
        (lambda self, meta: Cost(UNIT, 0.0), "nothing at all"),
    ],
)
def test_a_broken_law_is_a_warning_and_counts_as_none(broken, why, monkeypatch):
    monkeypatch.setattr(Bonsai, "cost", broken)
    recipes = [base_recipe("Bonsai"), *variant_recipes("RankNet")]
    with pytest.warns(UserWarning, match=f"the law of cost of Bonsai is left out: .*{why}"):
        assert planned_seconds(recipes[0], (), META) is None
    # Also below a variant, which asks its base.
    with pytest.warns(UserWarning, match="the law of cost of Bonsai is left out"):
        work = work_of(recipes, META)
    assert work.cost.terms == {"document": Term(1200, DOCUMENT_SECONDS)}
    assert fit([]).seconds(work) > 0


def test_a_broken_law_is_said_once(monkeypatch):
    monkeypatch.setattr(Bonsai, "cost", raising)
    with warnings.catch_warnings(record=True) as said:
        warnings.resetwarnings()
        for _ in range(3):
            planned_seconds(base_recipe("Bonsai"), (), META)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("cls", "part", "unsaid"),
    [(XMLCNN, "work", TextMethod.work), (LaMiniLM, "head_work", TransformerMethod.head_work)],
)
def test_a_text_method_that_does_not_say_its_work_has_no_law(cls, part, unsaid):
    silent = type("Silent", (cls,), {part: unsaid})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert law(silent().cost, META) is None
        assert law(cls().cost, META).seconds > 0
