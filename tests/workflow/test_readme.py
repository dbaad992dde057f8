"""Every block of the README: commands are run as printed, in a copy of the tree.

What is not run from end to end, and what is done instead: the `make` block, whose targets install
an environment and take minutes, is looked at by `make -n`; blocks of YAML are checked as
configurations.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from workflow.config import check
from workflow.studies.headline import read_changes, sentence

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
MAKE = {"run": "snakemake --cores all", "test": "-m pytest -n 2 --dist loadfile"}
pytestmark = pytest.mark.slow


def blocks(kind):
    return [text for language, text in BLOCKS if language == kind]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What a clone holds that its commands read, without results of other runs."""
    copy = tmp_path_factory.mktemp("readme") / "tailtables"
    copy.mkdir()
    no_caches = shutil.ignore_patterns("__pycache__")
    for name in ("benchmarks", "methods", "workflow", "config", "examples"):
        shutil.copytree(ROOT / name, copy / name, ignore=no_caches)
    for name in ("Snakefile", "environment.yml"):
        shutil.copy(ROOT / name, copy / name)
    return copy


def run(text, tree, program=("bash", "-eu")):
    """Run a block as its reader would: in the tree's folder, with its environment active."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        program,
        input=text,
        text=True,
        cwd=tree,
        env={**environment, "PATH": path, "CI": "true", "PWD": str(tree)},
        capture_output=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_block_is_of_a_kind_that_is_tested_here():
    assert {language for language, _ in BLOCKS} == {"", "bash", "python", "yaml"}
    assert [len(blocks(kind)) for kind in ("", "bash", "python", "yaml")] == [1, 4, 2, 1]
    price, own_data, own_method, own_paper = blocks("bash")
    assert " plan " in price
    assert "my_train.txt" in own_data
    assert "examples/config.yaml" in own_method
    assert "my_paper" in own_paper


def test_the_two_commands_are_targets_that_do_what_is_said():
    (text,) = blocks("")
    named = [line.partition("#")[0].split() for line in text.strip().splitlines()]
    assert named == [["make", target] for target in MAKE]
    for target, expected in MAKE.items():
        planned = subprocess.run(
            ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        assert expected in planned


def test_the_commands_of_the_three_kinds_of_run_name_configurations_that_plan(tree):
    section = README.partition("three kinds of run")[2].partition("`snakemake` is in")[0]
    commands = re.findall(r"`(snakemake [^`]*)`", section)
    assert len(commands) == 2
    for command in commands:
        assert "run_cell" in run(f"{command} --dry-run", tree)


def test_the_price_of_the_papers_is_written(tree):
    run(blocks("bash")[0], tree)
    plan = pd.read_csv(tree / "results/plan.csv")
    assert len(plan) > 200
    assert plan["basis"].notna().all()


def test_your_own_data_runs_to_the_report(tree):
    said = run(blocks("bash")[1], tree)
    assert "2 of 2 cells are ok. The report: results/report.html" in said
    cells = pd.read_csv(tree / "results/cells.csv")
    assert set(cells["variant"]) == {"plain", "PW"}
    assert set(cells["status"]) == {"ok"}
    assert "glas" not in set(cells["convention"]), "two test documents have no propensities"
    page = (tree / "results/report.html").read_text()
    assert "<title>my-data</title>" in page
    assert "convention glas has no values on my-data" in page


def test_your_own_method_stands_beside_the_built_in_ones(tree):
    run(blocks("bash")[2], tree)
    cells = pd.read_csv(tree / "build/examples/results/cells.csv")
    assert {"NearestCentroid", "NearestCentroid-shrunk", "LinearSVC"} == set(cells["base"])
    assert set(cells["status"]) == {"ok"}


def test_your_own_paper_gets_its_verdicts(tree):
    run(blocks("bash")[3], tree)
    compared = pd.read_csv(tree / "results/compare/mine.csv")
    assert len(compared) == 3
    assert compared["ours"].notna().sum() >= 2
    assert compared.set_index("kind").loc["claim", "outcome"] == "holds"
    assert "Guessing by Popularity" in (tree / "results/report.html").read_text()


def test_the_library_block_prints_its_scores(tree):
    for text in blocks("python"):
        if "DiSMEC" in text:
            said = run(text, tree, (sys.executable, "-"))
            assert "'PSP@3': " in said


def test_the_python_block_reads_the_files_of_the_shell_block(tree):
    shell = blocks("bash")[1].rpartition("snakemake")[0]
    run(shell, tree)
    (text,) = (text for text in blocks("python") if "my_train" in text)
    assert run(text, tree, (sys.executable, "-")).split() == ["3", "(4,", "5)"]


def test_blocks_of_yaml_are_configurations():
    for text in blocks("yaml"):
        cells = [{"datasets": ["tiny-bow"], "bases": ["random"]}]
        check({"cells": cells, **yaml.safe_load(text)}, "README.md")


def test_the_sentence_is_that_of_the_figure():
    assert sentence(read_changes(ROOT / "results/reference")) in README
    assert "results/reference/headline.png" in README
