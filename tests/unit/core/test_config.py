"""A wrong configuration is answered with what to change."""

import pytest

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.records.cell import Cell
from workflow.config import check, check_pairs, derive_seed, plan, with_own_definitions

GOOD = {"cells": [{"datasets": ["tiny-bow"], "bases": ["LinearSVC"], "variants": ["plain", "PW"]}]}


def jobs_of(config):
    checked = check(config, "my.yaml")
    jobs = plan(checked, "my.yaml", ["tiny-bow"])
    check_pairs(jobs, "my.yaml", checked["misfits"])
    return jobs


def block(**changes):
    return {"cells": [{**GOOD["cells"][0], **changes}]}


@pytest.mark.parametrize("name", ["auto", "cpu", "mps", "cuda", "cuda:3"])
def test_devices_go_by_their_names(name):
    assert check({**GOOD, "budget": {"device": name}}, "my.yaml")["budget"]["device"] == name


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**GOOD, "bugdet": {}}, "unknown key 'bugdet'; did you mean 'budget'\\? allowed are"),
        ({}, "'cells' is missing"),
        ({**GOOD, "budget": {"wall_s": -5}}, "budget.wall_s: -5 should be more than 0"),
        ({**GOOD, "budget": {"threads": "two"}}, "budget.threads: 'two' should be of type integer"),
        ({**GOOD, "budget": {"device": "gpu"}}, "budget.device: 'gpu' does not match"),
        ({**GOOD, "budget": {"device": "cuda:"}}, "budget.device: 'cuda:' does not match"),
        ({**GOOD, "misfits": "ignore"}, "misfits: 'ignore' is not one of error, cell"),
        (block(bases=["LinearSVM"]), r"cells\[0\].bases: unknown base 'LinearSVM': did you mean"),
        (block(variants=["PWW"]), r"cells\[0\].variants: unknown variant 'PWW'"),
        (
            block(datasets=["none"]),
            r"cells\[0\].datasets: unknown dataset 'none'; known are tiny-bow",
        ),
        (
            block(bases=["random"]),
            "'PW' with base 'random': PW does not fit random: .*take the pair",
        ),
        (block(bases=[]), "cells\\[0\\].bases: "),
        (
            {**GOOD, "define": {"bases": {"x": {"params": {}}}}},
            "define.bases.x: .*'extends' is missing",
        ),
        (
            {
                **block(bases=["x"]),
                "define": {"bases": {"x": {"extends": "LinearSVC", "params": {"toll": 1}}}},
            },
            "no parameter 'toll'; it has C, tol",
        ),
    ],
)
def test_each_fault_names_its_key(config, message):
    with pytest.raises(InvalidDocumentError, match=f"(?s)my.yaml is not valid:.*{message}"):
        jobs_of(config)


def test_all_faults_come_at_once():
    with pytest.raises(InvalidDocumentError) as caught:
        jobs_of(block(bases=["a"], datasets=["b"], variants=["c"]))
    assert len(str(caught.value).splitlines()) == 4


def test_misfits_can_be_cells():
    assert len(jobs_of({**block(bases=["random"]), "misfits": "cell"})) == 2


def test_blocks_are_crossed_and_a_cell_comes_once():
    config = {"cells": [*block(seeds=[0, 1])["cells"], *GOOD["cells"]]}
    cells = [str(job.cell) for job in jobs_of(config)]
    assert len(cells) == len(set(cells)) == 4


def test_two_names_of_a_method_are_one_cell():
    taug = block(bases=["Bonsai"], variants=["Taug", "Taug-ds", "RankNet+Taug-ds", "RankNet+Taug"])
    assert [job.cell.variant for job in jobs_of(taug)] == ["Taug-ds", "RankNet+Taug"]


def test_parameters_reach_their_owner():
    swift = {"extends": "RankNet+Taug", "params": {"RankNet.rate": 0.1, "Bonsai": {"n_trees": 1}}}
    config = {
        **block(bases=["Bonsai", "Parabel"], variants=["swift", "plain"]),
        "define": {"variants": {"swift": swift}},
    }
    params = {
        (job.cell.base, job.cell.variant): [part["params"] for part in job.recipe()["parts"]]
        for job in jobs_of(config)
    }
    assert params["Bonsai", "swift"] == [{"n_trees": 1}, {}, {"rate": 0.1}]
    assert params["Parabel", "swift"] == [{}, {}, {"rate": 0.1}]
    assert params["Bonsai", "plain"] == [{}], "a variant's change to its base is the variant's"


def test_budgets_of_a_block_go_before_the_run_s():
    config = {**block(budget={"wall_s": 7}), "budget": {"wall_s": 5, "memory_mb": 6}}
    budget = jobs_of(config)[0].budget
    assert (budget["wall_s"], budget["memory_mb"], budget["threads"]) == (7, 6, 1)


def test_seeds_come_from_named_axes():
    base = Cell("d", "b", "plain", 0)
    assert derive_seed(base) == derive_seed(Cell("d", "b", "PW", 0)), "variants pair with the base"
    others = [Cell("e", "b", "plain", 0), Cell("d", "c", "plain", 0), Cell("d", "b", "plain", 1)]
    assert len({derive_seed(cell) for cell in [base, *others]}) == 4


def test_a_cell_is_its_path():
    cell = Cell("EURLex-4K", "DiSMEC", "RankNet+Taug", 3)
    assert Cell.from_path(f"results/runs/{cell.path}") == cell


def test_a_definition_of_the_same_name_in_the_default_configuration_adds_nothing():
    own = {"define": {"bases": {"short": {"extends": "DiSMEC", "params": {"tol": 0.1}}}}}
    other = {"extends": "Parabel"}
    merged = {  # as Snakemake merges the two files
        **GOOD,
        "define": {
            "bases": {
                "short": {"extends": "DiSMEC", "params": {"tol": 0.1, "prune": 0.5}},
                "other": other,
            }
        },
    }
    found = with_own_definitions(merged, [own])
    assert found["define"]["bases"] == {**own["define"]["bases"], "other": other}
    assert found["cells"] == GOOD["cells"]


@pytest.mark.parametrize("odd", [None, [], "a", {"define": []}, {"define": {"bases": 1}}])
def test_documents_of_another_shape_are_left_to_the_check(odd):
    for config in (GOOD, {**GOOD, "define": []}, {**GOOD, "define": {"bases": {}}}):
        assert with_own_definitions(config, [odd]) == config
