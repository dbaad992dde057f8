"""Names lead to methods, or to an error that says which names do."""

import pytest

from methods import get
from methods.registry import MisfitError, UnknownNameError, base_recipe, variant_recipes


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
    assert method.params() == {"C": 1.0, "tol": 1e-2, "beta": 0.5}
