"""A paper is a folder: a made-up sixth one is compared and drawn without editing a tracked file."""

import subprocess

import pandas as pd
import pytest

from benchmarks.papers.verdicts import CONTRADICTED, HOLDS, MEASURED, REPRODUCED

SPEC = """
id: sixth
title: Guessing by Popularity
year: 2026
venue: nowhere
band: {points: 1.0, change: 2.0}
tables:
  - table: "1"
    file: sixth_table1.csv
    about: Precision of guessing
    role: results
    datasets: &datasets {Tiny: tiny-bow}
    bases: &bases {Popular: popularity, Chance: random}
  - table: "2"
    file: sixth_table2.csv
    about: The same, propensity scored
    role: results
    datasets: *datasets
    bases: *bases
claims:
  - id: better
    where: section 1
    says: Popularity beats chance
    left: {cell: ["1", Tiny, Popular, "", P@1]}
    op: ">"
    right: {cell: ["1", Tiny, Chance, "", P@1]}
  - id: worse
    where: section 2
    says: Chance beats popularity
    left: {cell: ["1", Tiny, Chance, "", P@3]}
    op: ">"
    right: {cell: ["1", Tiny, Popular, "", P@3]}
  - id: far
    where: section 3
    says: Popularity gains 90 points over chance
    left:
      difference:
        - {cell: ["2", Tiny, Popular, "", PSP@1]}
        - {cell: ["2", Tiny, Chance, "", PSP@1]}
    op: "="
    right: "90.0"
"""
ARTEFACTS = """
from benchmarks.papers.artefacts import Artefact
from benchmarks.records.cells import wide
from benchmarks.render.figure import Figure, panels
from benchmarks.render.table import Table

from .names import METRICS


def table(family):
    def draw(results):
        names = [name for name in METRICS if name.startswith(f"{family}@")]
        frame = wide(results.cells)[names].reset_index()
        return Table("", frame, ["dataset", "base", "variant"])

    return draw


def bars(results):
    frame = wide(results.cells).reset_index()[["base", "P@1"]]
    return Figure(panels(1, 1, lambda axes: axes[0, 0].bar(*frame.to_numpy().T)), frame)


ARTEFACTS = (
    Artefact("sixth_table1", "Guessing (Sixth Table 1)", table("P"), needs=("cells",)),
    Artefact("sixth_table2", "Propensity scored (Sixth Table 2)", table("PSP"), needs=("cells",)),
    Artefact("sixth_figure1", "As bars (Sixth Fig. 1)", bars, kind="figure", needs=("cells",)),
)
"""
NAMES = 'METRICS = ("P@1", "P@3", "PSP@1", "PSP@3")\n'


def published(number, family):
    head = "table,dataset,base,variant,metric,value,note"
    rows = [
        f"{number},Tiny,{base},,{family}@{k},{value},"
        for base, value in (("Popular", "97.0"), ("Chance", "2.0"))
        for k in (1, 3)
    ]
    return "\n".join([head, *rows]) + "\n"


@pytest.fixture(scope="module")
def paper(workspace):
    folder = workspace.folder / "papers of mine" / "guessing"
    (folder / "published").mkdir(parents=True)
    (folder / "paper.yaml").write_text(SPEC)
    (folder / "artefacts.py").write_text(ARTEFACTS)
    (folder / "names.py").write_text(NAMES)
    for number, family in ((1, "P"), (2, "PSP")):
        (folder / f"published/sixth_table{number}.csv").write_text(published(number, family))
    return folder


@pytest.fixture(scope="module")
def config(workspace, paper):
    cells = [{"datasets": ["tiny-bow"], "bases": ["popularity", "random"]}]
    define = {"papers": {"sixth": str(paper)}}
    return workspace.configure({"cells": cells, "define": define, "top_k": 10})


@pytest.fixture(scope="module")
def tracked(root):
    def status():
        command = ["git", "-C", str(root), "status", "--porcelain"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    return status


@pytest.fixture(scope="module")
def done(workspace, config, tracked):
    before = tracked()
    workspace.run("--cores", "2", config=config)
    assert tracked() == before
    return workspace


def test_its_page_has_every_claim_with_a_verdict(done):
    verdicts = pd.read_csv(done.folder / "results/compare/sixth.csv")
    claims = verdicts[verdicts["kind"] == "claim"].set_index("metric")["outcome"]
    assert claims["better"] in (REPRODUCED, HOLDS)
    assert claims["worse"] == CONTRADICTED
    assert set(claims.index) == {"better", "worse", "far"}
    assert set(claims) <= set(MEASURED)
    page = done.read("results/compare/sixth.html")
    for says in ("Popularity beats chance", "Chance beats popularity", "gains 90 points"):
        assert says in page
    for outcome in claims:
        assert f">{outcome}</td>" in page


def test_its_tables_and_figure_are_drawn_and_shown(done):
    for number, metric in ((1, "P@1"), (2, "PSP@1")):
        for suffix in ("md", "tex", "html"):
            text = done.read(f"results/tables/sixth_table{number}.{suffix}")
            assert f"Sixth Table {number}" in text
        table = pd.read_csv(done.folder / f"results/tables/sixth_table{number}.csv")
        values = table.set_index("base")[metric]
        assert values["popularity"] > values["random"]
    for suffix in ("svg", "png", "csv"):
        assert (done.folder / f"figures/sixth_figure1.{suffix}").stat().st_size > 20
    report = done.read("results/report.html")
    for text in (
        "Guessing by Popularity",
        "Sixth Table 1",
        "Sixth Fig. 1",
        "Popularity beats chance",
    ):
        assert text in report


def test_it_is_audited_and_counted_with_the_others(done):
    assert "Guessing by Popularity" in done.read("results/audit.html")
    summary = pd.read_csv(done.folder / "results/compare/summary.csv")
    assert summary.loc[summary["kind"] == "claim", "paper"].tolist()[-1] == "sixth"


def test_its_code_is_watched(done, config, paper):
    assert done.planned(config=config) == {}
    (paper / "names.py").write_text(NAMES + "OTHER = ()\n")
    planned = set(done.planned(config=config))
    assert planned == {"paper_artefacts_sixth_cells", "report", "all"}
    (paper / "names.py").write_text(NAMES)


def test_a_folder_without_a_paper_is_refused_with_the_remedy(workspace, paper, tmp_path):
    cells = [{"datasets": ["tiny-bow"], "bases": ["random"]}]
    wrong = {"cells": cells, "define": {"papers": {"seventh": str(tmp_path)}}}
    path = tmp_path / "config.yaml"
    path.write_text(str(wrong))
    said = workspace.run("--dry-run", "--cores", "1", config=path, check=False)
    assert said.returncode != 0
    assert f"{tmp_path}" in said.stdout + said.stderr
    assert "paper.yaml" in said.stdout + said.stderr
