"""What the report tells a reader to run for a paper that it has measured nothing of."""

from dataclasses import replace

import pytest
import yaml

from benchmarks.common.schema import load_yaml
from benchmarks.papers.spec import load_paper, load_papers
from workflow.report import commands
from workflow.report.commands import commands_for

PAPERS = [paper.id for paper in load_papers()]


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_run_by_its_own_configuration(name, root):
    command = f"snakemake --cores all --configfile benchmarks/papers/{name}/config.yaml"
    assert commands_for(load_paper(name)) == command
    assert load_yaml(root / command.split()[-1])["cells"]


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_without_one_is_never_sent_to_the_run_of_weeks(name, root):
    """As a paper of the user: no folder of this tree has its configuration."""
    found = commands_for(replace(load_paper(name), id="mine"))
    assert "paper.yaml" not in found
    assert not found or (root / found.split()[-1]).parent == root / "config"


def test_without_its_own_the_one_that_measures_most_is_named(tmp_path, monkeypatch):
    def cells(*variants):
        block = {"datasets": ["EURLex-4K"], "bases": ["DiSMEC"], "variants": list(variants)}
        return yaml.safe_dump({"cells": [block]})

    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "little.yaml").write_text(cells("plain"))
    (folder / "more.yaml").write_text(cells("plain", "PW"))
    (folder / "paper.yaml").write_text(cells("plain", "PW", "PW-cb"))
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "WHOLE", folder / "paper.yaml")
    paper = replace(load_paper("pw"), id="mine")
    assert commands_for(paper) == "snakemake --cores all --configfile config/more.yaml"
    for name in ("little", "more"):
        (folder / f"{name}.yaml").write_text(cells("no such variant"))
    assert commands_for(paper) == ""
