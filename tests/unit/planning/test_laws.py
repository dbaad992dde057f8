"""Laws fitted to made-up runs find what the runs were made with."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.records.cell import Cell
from methods.cost import Cost, Term
from methods.registry import base_recipe, variant_recipes
from workflow.planning import laws
from workflow.planning.actual import planned_seconds
from workflow.planning.laws import Laws, fit, leave_one_dataset_out, spread_of
from workflow.planning.observed import Observed, Work, observed, recipe_text, work_of
from workflow.planning.reference import reference_runs

SIZES = {"small": 1e2, "middle": 1e3, "large": 1e4, "huge": 1e5}


def run_of(dataset, seconds, law="A", variants=(), terms=None, seed=0, megabytes=300.0):
    cost = Cost(terms or {"unit": Term(SIZES[dataset], 1e-2)}, 100.0)
    variant = "+".join(variants) or "plain"
    cell = Cell(dataset, law, variant, seed)
    work = Work(law, tuple(variants), "cpu", cost)
    return Observed(cell, work, f"{law} {variant}", seconds, megabytes, here=False)


def start_of(found: Laws) -> float:
    return laws.START_SECONDS * math.exp(found.factors["start", ""])


def test_without_runs_the_codes_own_figures_count():
    work = run_of("small", 1.0).work
    assert Laws().seconds(work) == pytest.approx(laws.START_SECONDS + 1.0)
    assert fit([]).seconds(work) == Laws().seconds(work)
    assert Laws().megabytes(work) == 100.0


@pytest.mark.parametrize("truth", [0.2, 3.0])
def test_a_constant_is_recovered_and_scales(truth):
    runs = [run_of(d, 2.5 + truth * 1e-2 * SIZES[d], seed=s) for d in SIZES for s in range(3)]
    found = fit(runs[:-3])
    assert found.constant("A", "unit", 1e-2) == pytest.approx(truth * 1e-2, rel=0.1)
    assert found.seconds(runs[-1].work) == pytest.approx(runs[-1].seconds, rel=0.15)


def test_terms_of_a_law_are_told_apart():
    truth = {"label": 4.0, "nonzero": 0.5}
    rng = np.random.default_rng(0)
    runs = []
    for number, dataset in enumerate(SIZES):
        for law_seed in range(40):
            terms = {name: Term(float(rng.uniform(1, 400)), 1.0) for name in truth}
            seconds = 2.5 + sum(truth[name] * term.amount for name, term in terms.items())
            run = run_of(dataset, seconds, terms=terms, seed=100 * number + law_seed)
            runs.append(replace(run, recipe=f"A {law_seed}"))
    found = fit(runs)
    for name, factor in truth.items():
        assert found.constant("A", name, 1.0) == pytest.approx(factor, rel=0.15)


@pytest.mark.parametrize("power", [0.85, 1.0, 1.15])
def test_an_exponent_is_recovered(power):
    runs = [run_of(d, 2.5 + 0.1 * SIZES[d] ** power, seed=s) for d in SIZES for s in range(20)]
    # Seeds of one cell count as one run: several methods of one law are several runs.
    runs = [replace(run, recipe=f"A {run.cell.seed}") for run in runs]
    found = fit(runs)
    assert found.exponent("A") == pytest.approx(power, abs=0.03)


def test_two_datasets_bend_no_law():
    runs = [run_of(d, 0.1 * SIZES[d] ** 1.3) for d in ("small", "large")]
    assert fit(runs).exponent("A") == 1.0


def test_a_variants_factor_carries_over_to_another_base():
    def seconds(dataset, factor):
        return 2.5 + factor * 1e-2 * SIZES[dataset]

    runs = [run_of(d, seconds(d, 1.0), law=law) for d in SIZES for law in "AB"]
    runs += [run_of(d, seconds(d, 4.0), law="A", variants=("V",)) for d in SIZES]
    asked = run_of("huge", 0.0, law="B", variants=("V",)).work
    assert fit(runs).seconds(asked) == pytest.approx(seconds("huge", 4.0), rel=0.3)


def test_an_unseen_base_takes_the_machines_factor():
    runs = [run_of(d, 5.0 * (2.5 + 1e-2 * SIZES[d]), law=law) for d in SIZES for law in "ABCDE"]
    asked = run_of("huge", 0.0, law="Z").work
    assert 3.0 < fit(runs).seconds(asked) / 1e3 < 6.0


def test_memory_is_scaled_by_the_law_of_memory():
    runs = [run_of(d, 10.0, megabytes=300.0) for d in SIZES]
    assert fit(runs).megabytes(run_of("huge", 1.0).work) == pytest.approx(300.0, rel=0.1)


def test_a_term_of_a_family_is_priced_by_runs_of_another_base():
    def run(law, family, seconds):
        made = run_of("huge", seconds, law=law)
        return replace(made, work=replace(made.work, family=family))

    # Ten times the round figure in one family, as the figure says in the other.
    runs = [run(law, "slow", 1e4) for law in "ABC"] + [run(law, "usual", 1e3) for law in "DEF"]
    found = fit(runs)
    slow, usual = (found.seconds(run("Z", family, 0.0).work) for family in ("slow", "usual"))
    assert slow > 4 * usual


def test_what_a_variant_adds_is_not_multiplied_by_fits():
    cost = Cost({"unit": Term(100.0, 1e-2)}, 100.0, 3.0, {"network": Term(50.0, 1.0)})
    work = Work("A", ("V",), "cpu", cost)
    assert cost.seconds == 53.0
    assert Laws().seconds(work) == pytest.approx(laws.START_SECONDS + 53.0)
    runs = [replace(run_of("small", 2.5 + 3.0 + 200.0), work=work, recipe=f"{n}") for n in range(9)]
    assert fit(runs).seconds(work) == pytest.approx(205.5, rel=0.15)


def test_slopes_are_those_of_the_seconds():
    terms = {"unit": Term(300.0, 1e-2), "other": Term(20.0, 0.3), "nothing": Term(0.0, 1.0)}
    cost = Cost(terms, 100.0, 3.0, {"network": Term(50.0, 0.1)})
    work = Work("A", ("V", "W", "V"), "cuda", cost, "trees")
    pivots = {"A": 7.0}
    keys = sorted(laws._seconds(work, {}, pivots)[1])
    rng = np.random.default_rng(0)
    factors = dict(zip(keys, rng.normal(0.0, 0.3, len(keys)).tolist(), strict=True))
    _, slopes = laws._seconds(work, factors, pivots)
    assert {kind for kind, _ in keys} == set(laws.PRIOR)
    for key in keys:
        up, down = (
            math.log(laws._seconds(work, {**factors, key: factors[key] + d}, pivots)[0])
            for d in (1e-5, -1e-5)
        )
        assert slopes[key] == pytest.approx((up - down) / 2e-5, abs=1e-8), key


def test_a_fit_does_not_depend_on_last_bits():
    # Another order of the runs rounds other sums, as do other processors and numbers of threads.
    runs, _ = reference_runs()
    one, other = fit(runs), fit(runs[::-1])
    for run in runs:
        assert one.seconds(run.work) == pytest.approx(other.seconds(run.work), rel=1e-9)
        assert one.megabytes(run.work) == pytest.approx(other.megabytes(run.work), rel=1e-9)


def test_each_dataset_is_judged_by_the_others():
    runs = [run_of(d, 2.5 + 1e-2 * SIZES[d]) for d in SIZES]
    # A term of another name: those of one name are the same code, and share a factor.
    lonely = run_of("small", 40.0, law="B", terms={"other": Term(SIZES["small"], 1e-2)})
    misses = leave_one_dataset_out([*runs, lonely])
    assert [miss.run for miss in misses] == [runs[0], lonely, *runs[1:]]
    assert [miss.known for miss in misses] == [True, False, True, True, True]
    assert all(miss.factor < 1.3 for miss in misses if miss.known)
    assert misses[1].factor > 3


def test_the_spread_of_factors():
    assert spread_of([1.0, 1.0, 2.0, 4.0]) == (1.5, pytest.approx(3.4), 0.75)
    assert all(math.isnan(value) for value in spread_of([]))


META = {"n_train": 1000, "n_test": 200, "n_features": 500, "n_labels": 50}


def test_rows_of_runs_csv_become_work():
    variants = variant_recipes("RankNet-simple")
    recipes = [base_recipe("Bonsai"), *variants]
    row = {"base": "Bonsai", "status": "ok", "peak_mb": 100.0, "device": "cpu"}
    rows = [
        # As written today: the recipe and the data's size are in the row.
        {**row, "variant": "mine", "cpu_s": 9.0, "recipe": recipe_text(recipes), **META},
        # Older: the names must be known.
        {**row, "variant": "RankNet-simple", "cpu_s": 12.0, "warm_up_cpu_s": 2.0},
        # In shards, which are fitted in processes of their own.
        {**row, "variant": "RankNet-simple", "cpu_s": 2.0, "fit_cpu_s": 7.0, "merge_cpu_s": 1.0},
        {**row, "variant": "unheard-of", "cpu_s": 12.0},
        {**row, "variant": "plain", "cpu_s": 12.0, "status": "timeout"},
        {**row, "variant": "ensemble", "cpu_s": 36.0},
    ]
    frame = pd.DataFrame([{"dataset": f"d{n}", "seed": 0, **row} for n, row in enumerate(rows)])
    found, left_out = observed(frame, lambda name: META)
    assert [run.cell.dataset for run in found] == ["d0", "d1", "d2"]
    assert [run.seconds for run in found] == [9.0, 10.0, 9.0]
    assert found[0].work == found[1].work == work_of(recipes, META)
    assert found[0].recipe == found[1].recipe
    assert len(left_out) == 1
    assert "unheard-of" in left_out[0]
    assert observed(frame.iloc[1:2], lambda name: None)[1] == [
        "d1 / Bonsai / RankNet-simple / seed 0: nothing is known of the size of d1"
    ]


GONE = '[{"class": "gone:Gone", "params": {}}]'
OTHER_PARAMETERS = '[{"class": "methods.trees.parabel:Bonsai", "params": {"no_such": 1}}]'


@pytest.mark.parametrize("recipe", [GONE, OTHER_PARAMETERS, "[{", "[]"])
def test_a_run_that_cannot_be_built_any_more_is_left_out(recipe):
    row = {"dataset": "d", "base": "Bonsai", "variant": "plain", "seed": 0, "status": "ok"}
    row |= {"cpu_s": 9.0, "peak_mb": 100.0, "device": "cpu", **META}
    fine = recipe_text([base_recipe("Bonsai")])
    frame = pd.DataFrame([{**row, "recipe": recipe}, {**row, "seed": 1, "recipe": fine}])
    found, left_out = observed(frame, lambda name: None)
    assert [run.cell.seed for run in found] == [1]
    assert len(left_out) == 1
    assert left_out[0].startswith("d / Bonsai / plain / seed 0: cannot be built any more: ")
    cells = {Cell("d", "Bonsai", "plain", seed): recipe for seed, recipe in enumerate([GONE, fine])}
    records = {cell: {"recipe": json.loads(text), "params": {}} for cell, text in cells.items()}
    assert [cell.seed for cell in planned_seconds(records, {"d": META})] == [1]
