"""config/paper.yaml: every printed value of the papers has a cell, or a reason."""

from pathlib import Path

import pytest

from benchmarks.common.schema import load_yaml
from benchmarks.data import names
from benchmarks.papers.spec import load_paper, load_papers
from benchmarks.records.cell import PLAIN, Setup
from methods.registry import BASES
from workflow.config import check, check_pairs, plan
from workflow.planning.coverage import coverage, papers_of

PATH = Path(__file__).resolve().parents[3] / "config" / "paper.yaml"
MOST_JOBS = 10_000


@pytest.fixture(scope="module")
def settings():
    return check(load_yaml(PATH), PATH.name)


@pytest.fixture(scope="module")
def jobs(settings):
    return plan(settings, PATH.name, names({}))


@pytest.fixture(scope="module")
def setups(jobs):
    return {Setup(job.cell.dataset, job.cell.base, job.cell.variant) for job in jobs}


@pytest.fixture(scope="module")
def covered(setups):
    return coverage(load_papers(), setups)


def test_every_printed_value_has_a_cell_or_a_reason(covered):
    assert len(covered) == sum(len(paper.values) for paper in load_papers()) == 2468
    assert [value for value in covered if not value.explained] == []


def without_excuse(covered, define):
    """Values that have a reason in place of a cell, although there is a card of the dataset, a
    base of the name, and a variant that is built in or that the configuration defines.

    A paper calls a variant "not run" that is a setting for configurations to define: one that
    defines it has to run it.
    """
    papers = {paper.id: paper for paper in load_papers()}
    found = []
    for value in covered:
        row = papers[value.paper].one(value.position)
        if value.setups or row["role"] in ("statistic", "outside"):
            continue
        known = row["our_base"] in BASES and row["our_dataset"] in names({})
        unbuilt = papers[value.paper].missing.keys() - define["variants"].keys()
        if known and row["our_variant"] not in unbuilt:
            found.append(value)
    return found


def test_reasons_are_for_what_cannot_be_run(covered, settings):
    """A reason in place of a cell is for counts, columns that no cell has, methods and data that
    are not here: never for one of our bases on a dataset that has a card."""
    assert without_excuse(covered, settings["define"]) == []


@pytest.mark.parametrize(
    ("paper", "table", "lost"),
    [
        ("httn", "2", {"l_tail-9", "l_tail-18"}),
        ("httn", "3", {"l_tail-14", "l_tail-28"}),
        ("httn", "4", {"l_tail-768", "l_tail-1238"}),
        ("glas", "1", {"lambda-1", "keep-0.6", "linear"}),
    ],
)
def test_a_setting_that_is_defined_and_not_run_has_no_excuse(paper, table, lost, setups, settings):
    rest = {setup for setup in setups if setup.variant not in lost}
    found = without_excuse(coverage([load_paper(paper)], rest), settings["define"])
    one = load_paper(paper).one
    assert {(v.position[0], one(v.position)["our_variant"]) for v in found} == {
        (table, variant) for variant in lost
    }


def test_every_cell_is_for_a_printed_value(jobs, covered):
    used = papers_of(covered)
    members = {cell for job in jobs for cell in job.members}
    idle = [
        job.cell
        for job in jobs
        if Setup(job.cell.dataset, job.cell.base, job.cell.variant) not in used
        and job.cell not in members
    ]
    assert idle == []


def test_every_recipe_is_used_and_every_rule_of_a_paper_leads_to_one(settings, jobs, setups):
    bases = {job.cell.base for job in jobs}
    variants = {part for job in jobs for part in job.cell.variant.split("+")}
    assert set(settings["define"]["bases"]) <= bases
    assert set(settings["define"]["variants"]) <= variants
    for paper in load_papers():
        for rule in paper.spec["recipes"]:
            assert rule["set"].get("base") in {None, *bases}, rule
            parts = set(rule["set"].get("variant", PLAIN).split("+"))
            assert parts <= variants, rule


def test_every_pair_fits_and_jobs_are_few_enough_to_plan(settings, jobs):
    check_pairs(jobs, PATH.name, settings["misfits"])
    shards = sum(job.shards for job in jobs if job.shards > 1)
    assert 2 * len(jobs) + shards < MOST_JOBS


def test_a_value_without_cell_or_reason_is_found(setups):
    lost = Setup("EURLex-4K", "DiSMEC", "PW")
    found = coverage([load_paper("pw")], setups - {lost})
    unexplained = [value for value in found if not value.explained]
    assert {value.position[:4] for value in unexplained} == {("3", "EURLex-4K", "DiSMEC", "PW")}
    # Summaries are of a row over the plain one: without that, they are lost, too.
    found = coverage([load_paper("pw")], setups - {lost._replace(variant=PLAIN)})
    summaries = [v for v in found if v.position[3:] == ("PW", "summary_PS") and not v.explained]
    assert len(summaries) == 1
