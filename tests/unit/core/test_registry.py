"""Names lead to methods, or to an error that says which names do."""

import pytest

from methods import get
from methods.registry import (
    VARIANTS,
    MisfitError,
    UnknownNameError,
    base_recipe,
    canonical,
    variant_recipes,
)


def test_unknown_names_are_answered_with_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean 'LinearSVC'"):
        get("LinearSVM")
    with pytest.raises(UnknownNameError, match="unknown variant 'PWW'"):
        get("LinearSVC", variant="PWW")
    with pytest.raises(UnknownNameError, match="no parameter 'tool'; it has C, tol"):
        get("LinearSVC", tool=1)


def test_a_misfit_says_why():
    with pytest.raises(MisfitError, match="PW does not fit popularity: .* no loss"):
        get("popularity", variant="PW")


def test_definitions_extend_what_they_name():
    definitions = {
        "tight": {"extends": "LinearSVC", "params": {"tol": 1e-8, "C": 2.0}},
        "tighter": {"extends": "tight", "params": {"tol": 1e-10}},
        "mine": {"class": "my.module:Mine", "params": {"a": 1}},
    }
    assert dict(base_recipe("tighter", definitions).params) == {"tol": 1e-10, "C": 2.0}
    assert base_recipe("mine", definitions).target == "my.module:Mine"


def test_definitions_in_a_circle_are_refused():
    definitions = {"a": {"extends": "b"}, "b": {"extends": "a"}}
    with pytest.raises(UnknownNameError, match="a -> b -> a"):
        base_recipe("a", definitions)


def test_compositions_apply_the_last_name_first():
    assert [r.target.split(":")[1] for r in variant_recipes("PW+cb")] == ["ClassBalanced", "PW"]


def test_variant_parameters_reach_the_variant():
    method = get("LinearSVC", variant="PW-cb", variant_params={"beta": 0.5}, tol=1e-2)
    assert method.params() == {"LinearSVC": {"C": 1.0, "tol": 1e-2}, "PW-cb": {"beta": 0.5}}


def test_equal_names_of_parameters_are_told_apart_by_owner():
    """PW-cb and cb both have beta."""
    nested = get("DiSMEC", "PW-cb+cb", variant_params={"PW-cb": {"beta": 0.5}, "cb": {"beta": 0.7}})
    dotted = get("DiSMEC", "PW-cb+cb", variant_params={"PW-cb.beta": 0.5, "cb.beta": 0.7})
    for method in (nested, dotted):
        owned = method.params()
        assert (owned["PW-cb"], owned["cb"]) == ({"beta": 0.5}, {"beta": 0.7})
        assert owned["DiSMEC"]["prune"] == 0.01
    # Taug and DiSMEC both have memory_mb.
    method = get("DiSMEC", "Taug", variant_params={"memory_mb": 7.0}, memory_mb=5.0)
    owned = method.params()
    assert (owned["DiSMEC"]["memory_mb"], owned["Taug-ds"]["memory_mb"]) == (5.0, 7.0)


@pytest.mark.parametrize(
    ("variant", "params", "message"),
    [
        ("PW-cb+cb", {"beta": 0.5}, "several parts; write one of cb.beta, PW-cb.beta"),
        ("PW-cb+cb", {"PW.beta": 0.5}, "no part 'PW'; its parts are cb, PW-cb"),
        ("PW-cb", {"PW-cb": {"gamma": 1}}, "no parameter 'gamma'; it has beta"),
        ("plain", {"beta": 0.5}, "without a variant"),
    ],
)
def test_parameters_of_nobody_are_refused(variant, params, message):
    with pytest.raises(UnknownNameError, match=message):
        get("DiSMEC", variant, variant_params=params)


def test_definitions_of_compositions_name_the_owner():
    definitions = {
        "swift": {"extends": "RankNet+Taug", "params": {"RankNet.rate": 0.1, "Taug.n_aug": 2}},
        "swifter": {
            "extends": "swift",
            "params": {"RankNet": {"epochs": 1}, "Bonsai": {"n_trees": 1}, "Taug-ds": {"n_aug": 0}},
        },
    }
    taug, ranknet = recipes = variant_recipes("swifter", definitions)
    assert (taug.owner, dict(taug.params)) == ("Taug-ds", {"n_aug": 0})
    assert (ranknet.owner, dict(ranknet.params)) == ("RankNet", {"rate": 0.1, "epochs": 1})
    assert base_recipe("Bonsai").under(recipes).params == {"n_trees": 1}
    assert base_recipe("Parabel").under(recipes).params == {}
    composed = variant_recipes("swift+PW", definitions)
    assert [recipe.owner for recipe in composed] == ["PW", "Taug-ds", "RankNet"]


def test_a_variant_is_applied_once():
    with pytest.raises(MisfitError, match="PW-cb does not fit DiSMEC: it is applied already"):
        get("DiSMEC", "PW-cb+PW-cb")


def test_a_method_has_one_name():
    assert canonical("Taug") == canonical("Taug-ds") == "Taug-ds"
    assert canonical("RankNet+Taug-ds") == canonical("RankNet+Taug") == "RankNet+Taug"
    assert canonical("Taug+PW") == "Taug-ds+PW"
    assert canonical("Taug", {"Taug": {"extends": "Taug-d"}}) == "Taug", "the user's own name"
    assert all(canonical(name) == name for name in [*VARIANTS, "plain"])
    assert variant_recipes("Taug") == variant_recipes("Taug-ds")
