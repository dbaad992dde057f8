"""Prices: what they are based on, what they add up to, what a budget leaves out."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from benchmarks.data.cards import all_cards
from benchmarks.records.cell import Cell
from methods.registry import base_recipe
from workflow import reference
from workflow.config import check, plan
from workflow.planning.actual import planned_seconds
from workflow.planning.estimate import (
    GUESS,
    MEASURED,
    MEASURED_ELSEWHERE,
    SCALED,
    UNKNOWN,
    tasks,
)
from workflow.planning.facts import known_of
from workflow.planning.laws import fit
from workflow.planning.observed import Observed, recipe_text, work_of
from workflow.planning.page import NO_REASON, as_text, in_words, tables_of, write_plan
from workflow.planning.plan import Machine, Plan, earlier_runs
from workflow.planning.reference import reference_runs
from workflow.planning.schedule import longest_chain
from workflow.preflight import missing_here

OWN = {
    "small": {"format": "xc", "train": "a", "test": "b"},
    "unsized": {"format": "xc", "train": "a", "test": "b"},
}
OWN["small"]["counts"] = {"n_train": 1000, "n_test": 200, "n_features": 500, "n_labels": 50}
CARDS = all_cards(OWN)


def jobs_of(*blocks, **more):
    config = check({"cells": list(blocks), **more}, "my.yaml")
    return plan(config, "my.yaml", [*CARDS, "tiny-bow"])


def block(dataset, base, variants=("plain",), **more):
    return {"datasets": [dataset], "bases": [base], "variants": list(variants), **more}


def ran(dataset, base, seconds, here=False):
    meta = known_of(dataset, CARDS, "nowhere").meta
    recipes = [base_recipe(base)]
    work = work_of(recipes, meta)
    cell = Cell(dataset, base, "plain", 0)
    return Observed(cell, work, recipe_text(recipes), seconds, 123.0, here)


TWO_CORES = Machine(2, 0)


def plan_of(jobs, runs=(), machine=TWO_CORES):
    return Plan(jobs, CARDS, list(runs), machine, top_k=100)


def test_every_price_says_what_it_is_based_on():
    blocks = [block(d, "Bonsai") for d in ("small", "EURLex-4K", "Amazon-670K", "unsized")]
    jobs = jobs_of(*blocks, block("small", "Parabel"))
    runs = [ran("small", "Bonsai", 7.0, here=True), ran("EURLex-4K", "Bonsai", 17.0)]
    frame = plan_of(jobs, runs).frame.set_index(["dataset", "base"])
    expected = {
        ("small", "Bonsai"): MEASURED,
        ("EURLex-4K", "Bonsai"): MEASURED_ELSEWHERE,
        ("Amazon-670K", "Bonsai"): SCALED,
        ("unsized", "Bonsai"): UNKNOWN,
        ("small", "Parabel"): GUESS,
    }
    assert frame["basis"].to_dict() == expected
    assert frame.loc[("small", "Bonsai"), ["seconds", "memory_mb"]].tolist() == [7.0, 123.0]
    assert math.isnan(frame.loc[("unsized", "Bonsai"), "seconds"])
    source = frame.loc[("Amazon-670K", "Bonsai"), "source"]
    assert "times the work of EURLex-4K / Bonsai / plain / seed 0" in source
    assert "assumed 200 words per document" in source
    scaled = frame.loc[("Amazon-670K", "Bonsai"), "seconds"]
    assert scaled > 100 * 17


def test_a_price_scaled_far_beyond_what_was_run_is_said_to_be():
    runs = [ran("EURLex-4K", "Bonsai", 17.0)]
    near, far = (plan_of(jobs_of(block(d, "Bonsai")), runs) for d in ("small", "Amazon-670K"))
    assert not any("not measured" in line for line in in_words(near))
    ratio = far.estimates[0].times
    assert f"{ratio:.3g} times the work" in far.frame["source"].iloc[0]
    said = "1 of the 1 scaled cells have more than 10 times the work of the run they are scaled"
    assert any(line.startswith(said) and f"{ratio:,.0f} times" in line for line in in_words(far))


def test_printed_values_without_a_cell_are_counted_with_their_reasons():
    made = plan_of(jobs_of(block("EURLex-4K", "DiSMEC", ["plain", "PW"])))
    (table,) = (t for t in tables_of(made) if t.caption == "Printed values without a cell")
    missing = [value for value in made.covered if not value.setups]
    assert table.frame["printed_values"].sum() == len(missing)
    stated = table.frame[table.frame["why"] != NO_REASON]["printed_values"].sum()
    assert 0 < stated < len(missing)
    assert f"{stated} have none for a stated reason" in in_words(made)[1]


def test_a_measured_price_on_this_machine_beats_the_references():
    runs = [ran("EURLex-4K", "Bonsai", 17.0), ran("EURLex-4K", "Bonsai", 30.0, here=True)]
    frame = plan_of(jobs_of(block("EURLex-4K", "Bonsai")), runs).frame
    assert frame["seconds"].tolist() == [30.0]


def test_ensembles_wait_for_their_members_and_shards_run_side_by_side():
    jobs = jobs_of(block("tiny-bow", "Bonsai", ["ensemble"]), block("tiny-bow", "DiSMEC", shards=4))
    made = plan_of(jobs)
    by_name = {task.name: task for task in made.tasks}
    ensemble = by_name["run tiny-bow / Bonsai / ensemble / seed 0"]
    assert len([name for name in ensemble.after if name.startswith("run ")]) == 3
    shards = [name for name in by_name if name.startswith("shard ")]
    assert len(shards) == 4
    whole = next(each for each in made.estimates if each.cell.base == "DiSMEC")
    assert sum(by_name[name].seconds for name in shards) == pytest.approx(whole.seconds)
    assert longest_chain(made.tasks).seconds == made.critical.seconds
    assert made.spans["hours"].is_monotonic_decreasing


def test_a_budget_keeps_what_prints_most_per_hour():
    jobs = jobs_of(
        block("EURLex-4K", "DiSMEC", ["plain", "PW"]),
        block("Amazon-670K", "DiSMEC", ["plain", "PW"]),
        block("EURLex-4K", "LinearSVC"),
    )
    everything = plan_of(jobs).frame
    assert everything["within_hours"].all()
    small = everything.loc[everything["dataset"] == "EURLex-4K", "seconds"]
    dismec = small.iloc[:2].sum()
    made = plan_of(jobs, machine=Machine(1, 0, hours=1.01 * dismec / 3600))
    kept = made.frame[made.frame["within_hours"]]
    assert kept[["dataset", "base"]].drop_duplicates().values.tolist() == [["EURLex-4K", "DiSMEC"]]
    assert (kept["printed_values"] > 0).all()
    assert any("leave out 3 cells" in line for line in in_words(made))


def test_a_cell_over_its_own_budget_says_so():
    jobs = jobs_of(block("Amazon-670K", "DiSMEC", budget={"wall_s": 10, "memory_mb": 10}))
    over = plan_of(jobs).frame["over_budget"].iloc[0]
    assert "times its wall_s" in over
    assert "times its memory_mb" in over


def test_totals_add_up_and_files_are_written(tmp_path):
    jobs = jobs_of(block("EURLex-4K", "DiSMEC", ["plain", "PW"]), block("small", "DiSMEC"))
    made = plan_of(jobs, [ran("EURLex-4K", "DiSMEC", 20.0)])
    by_dataset, by_paper = made.totals("dataset"), made.totals("papers")
    assert by_dataset["core_hours"].sum() == pytest.approx(made.frame["seconds"].sum() / 3600)
    assert by_dataset["cells"].tolist() == [2, 1]
    # The GLaS paper prints the plain row, the PW paper both, and no paper the third.
    assert by_paper.set_index("papers")["cells"].to_dict() == {"pw": 2, "glas": 1, "no paper": 1}
    write_plan(made, tmp_path / "plan.csv", tmp_path / "plan.html", ["nothing <but> this"])
    written = pd.read_csv(tmp_path / "plan.csv")
    assert written["seconds"].tolist() == pytest.approx(made.frame["seconds"].tolist())
    page = (tmp_path / "plan.html").read_text()
    assert "nothing &lt;but&gt; this" in page
    assert page.count("<tr>") > len(jobs)
    assert "Missing on this machine:" in as_text(made, ["x"])


def test_a_card_does_the_work_of_many_cores():
    jobs = jobs_of(block("EURLex-4K-text", "AttentionXML", budget={"device": "auto"}))
    on_cores, on_card = plan_of(jobs), plan_of(jobs, machine=Machine(2, 1))
    assert on_card.estimates[0].on_card
    assert not on_cores.estimates[0].on_card
    assert on_card.frame["seconds"].sum() < on_cores.frame["seconds"].sum() / 10


def test_sizes_come_from_the_card_its_twin_or_the_generator(tmp_path):
    assert known_of("tiny-bow", CARDS, tmp_path).meta["n_train"] == 300
    twin = known_of("Wiki-500K-text", CARDS, tmp_path)
    assert twin.meta["n_train"] == CARDS["Wikipedia-500K"].counts["n_train"]
    assert "as many documents as Wikipedia-500K" in twin.assumed
    assert known_of("unsized", CARDS, tmp_path) is None
    embedded = all_cards({"x": {"embed": {"of": "EURLex-4K", "encoder": "all-MiniLM-L6-v2"}}})
    assert known_of("x", embedded, tmp_path).meta["n_features"] == 5000 + 384


def test_a_card_that_does_not_count_labels_says_too_little(tmp_path):
    local = {"format": "xc", "train": "a", "test": "b", "counts": {"n_train": 4}}
    assert known_of("x", all_cards({"x": local}), tmp_path) is None


def test_a_part_has_the_facts_of_the_whole_and_its_own_numbers(tmp_path):
    take = {"of": "EURLex-4K", "train": 100, "test": 20}
    cards = all_cards({"part": {"take": take, "counts": {"labels_in_train": 77}}})
    whole = known_of("EURLex-4K", cards, tmp_path)
    part = known_of("part", cards, tmp_path)
    own = {"n_train": 100, "n_test": 20, "labels_in_train": 77}
    assert part.meta == {**whole.meta, **own}
    assert part.assumed == whole.assumed
    lost = all_cards({"part": {"take": {**take, "of": "unsized"}}, "unsized": OWN["unsized"]})
    assert known_of("part", lost, tmp_path) is None


def test_what_a_dataset_is_made_of_is_missing_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAILTABLES_MIRROR", raising=False)
    cards = all_cards(
        {
            "part": {"take": {"of": "EURLex-4.3K", "train": 100, "test": 20}},
            "vectors": {"embed": {"of": "part", "encoder": "all-MiniLM-L6-v2"}},
        }
    )
    blocks = [block(name, "DiSMEC", ["plain", "PW"]) for name in ("part", "vectors")]
    config = check({"cells": blocks}, "my.yaml")
    jobs = plan(config, "my.yaml", list(cards))
    (line,) = missing_here(jobs, cards)
    assert line.startswith("EURLex-4.3K (4 cells): not prepared")
    # The first of its sources is a file of mirrors alone, the second has an address.
    assert line.endswith(cards["EURLex-4.3K"].sources[1].files[0].origins[0])
    # Once it is made, nothing is missing behind it.
    (tmp_path / "results/data/part").mkdir(parents=True)
    (tmp_path / "results/data/part/meta.json").write_text("{}")
    assert missing_here(jobs, cards) == []


BONSAI = {
    "recipe": [{"class": "methods.trees.parabel:Bonsai", "params": {}}],
    "params": {"Bonsai": {}},
    "device": "cpu",
}


def test_the_report_prices_cells_by_the_reference_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = Cell("small", "Bonsai", "plain", 0)
    records, metas = {cell: BONSAI}, {"small": OWN["small"]["counts"]}
    found = planned_seconds(records, metas)
    runs, left_out = reference_runs()
    assert left_out == []
    work = work_of([base_recipe("Bonsai")], metas["small"])
    assert found == {cell: float(f"{fit(runs).seconds(work):.3g}")}
    # Whatever else is in the folder of results: it is no declared input of the report.
    columns = ["dataset", "base", "variant", "seed", "seconds", "basis"]
    for name, row in (("plan.csv", [5.5, SCALED]), ("runs.csv", [9.9, MEASURED])):
        path = tmp_path / "results" / name
        path.parent.mkdir(exist_ok=True)
        frame = pd.DataFrame([["small", "Bonsai", "plain", 0, *row]], columns=columns)
        frame.to_csv(path, index=False)
    prepared = tmp_path / "results/data/EURLex-4K/meta.json"
    prepared.parent.mkdir(parents=True)
    prepared.write_text("{broken")
    assert planned_seconds(records, metas) == found
    assert planned_seconds(records, {"small": {}}) == {}
    members = {**BONSAI, "params": {"ensemble": {"members": 3}}}
    assert planned_seconds({replace(cell, variant="ensemble"): members}, metas) == {}


def test_what_the_reference_measured_of_a_cell_is_no_plan_of_it():
    cell = Cell("EURLex-4K", "Bonsai", "plain", 0)
    meta = known_of("EURLex-4K", CARDS, None).meta
    runs, _ = reference_runs()
    assert cell in {run.cell for run in runs}
    others = fit([run for run in runs if run.cell.dataset != "EURLex-4K"])
    seconds = others.seconds(work_of([base_recipe("Bonsai")], meta))
    planned = planned_seconds({cell: BONSAI}, {"EURLex-4K": meta})[cell]
    assert planned == float(f"{seconds:.3g}")
    assert seconds != fit(runs).seconds(work_of([base_recipe("Bonsai")], meta))


def test_the_digest_of_the_reference_changes_with_it(tmp_path, monkeypatch):
    before, shipped = reference.reference_digest(), reference.references()
    for number, each in enumerate(shipped):
        for part in ("runs", "config"):
            copy = tmp_path / f"{number}.{part}"
            copy.write_bytes(getattr(each, part).read_bytes() + b"#")
            changed = list(shipped)
            changed[number] = replace(each, **{part: copy})
            with monkeypatch.context() as context:
                context.setattr(reference, "references", lambda changed=changed: changed)
                assert reference.reference_digest() != before


def test_who_removes_results_has_no_reference(tmp_path, monkeypatch):
    index = tmp_path / "runs.yaml"
    monkeypatch.setattr(reference, "INDEX", index)
    assert reference.references() == []
    index.write_text("kept.csv: config/kept.yaml\nremoved.csv: config/removed.yaml\n")
    (tmp_path / "kept.csv").touch()
    kept = reference.Reference(tmp_path / "kept.csv", reference.ROOT / "config/kept.yaml")
    assert reference.references() == [kept]


def test_a_users_definitions_do_not_change_what_the_reference_ran(tmp_path):
    changed = {"RankNet-overfitted": {"extends": "RankNet", "params": {"rate": 0.5}}}
    mine = {"bases": {}, "variants": changed}
    other = {"EURLex-4K-half+MiniLM": {**OWN["small"], "counts": {"n_train": 1, "n_labels": 1}}}
    shipped, _ = reference_runs()
    assert "RankNet-overfitted" in {run.cell.variant for run in shipped}
    assert earlier_runs(all_cards(other), mine, tmp_path) == (shipped, [])


def test_tasks_leave_out_what_has_no_price():
    made = plan_of(jobs_of(block("unsized", "Bonsai")))
    assert [task.name for task in tasks(made.estimates, made.known)] == ["prepare unsized"]
