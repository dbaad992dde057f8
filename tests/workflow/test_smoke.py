"""The whole DAG on the tiny corpus, and what makes it run again."""

import json
import re
import zipfile

import pandas as pd
import pytest
import yaml
from browser import assert_sound
from workspace import Workspace

from benchmarks.common.schema import validate
from workflow.diff import BEYOND, GONE, MOVED, compare_runs, describe, read_tolerances, read_values
from workflow.runtime.cell import RUN_SCHEMA
from workflow.studies import reference


@pytest.fixture(scope="module")
def done(own_tree, smoke):
    own_tree.run("--cores", "2", config=smoke)
    return own_tree


@pytest.fixture
def edited(done):
    """Edit a source; it is put back afterwards."""
    before = {}

    def edit(name, old, new):
        path = done.root / name
        before.setdefault(path, path.read_text())
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    yield edit
    for path, text in before.items():
        path.write_text(text)


def test_every_output_is_there(done):
    for name in ("report.html", "cells.csv", "runs.csv"):
        assert (done.folder / "results" / name).stat().st_size > 1000
    for suffix in ("csv", "md", "tex", "html"):
        table = done.read(f"results/tables/relative_improvement.{suffix}")
        for row in ("LinearSVC", "PW-cb", "oracle", "popularity", "random"):
            assert row in table
    for suffix in ("svg", "png", "csv"):
        assert (done.folder / f"figures/weight_norms.{suffix}").stat().st_size > 1000
    report = done.read("results/report.html")
    assert "LinearSVC" in report
    assert "data:image/svg+xml;base64," in report
    labels = pd.read_csv(done.folder / "results/labels/tiny-bow.csv")
    assert {"name", "train", "test", "found@5 LinearSVC/PW", "norm DiSMEC/plain"} <= set(labels)


def test_the_report_holds_in_a_browser(done, browser):
    assert_sound(browser, done.folder / "results/report.html")


def test_cell_logs_say_what_was_done(done):
    log = done.read("results/logs/runs/tiny-bow/LinearSVC/PW/seed0.log")
    for words in ("300 + 80 documents, 60 labels", "parameters:", "fit:", "predict:", "written"):
        assert words in log


def test_figures_are_those_of_the_reference(done, root):
    # Any change of a method shows here; docs/trust.md says what may move between machines.
    found = compare_runs(
        read_values(root / "results/reference/smoke.csv"),
        read_values(done.folder / "results/cells.csv"),
        read_tolerances(root / "results/reference/tolerances.csv"),
    )
    whole = found[(found["bin"] == "all") & (found["convention"] == "xc-matlab")]
    bad = whole[whole["what"].isin(MOVED)]
    assert bad.empty, describe(bad)


def test_the_archive_of_snakemakes_report_has_captions_and_no_dead_links(done, smoke):
    done.run("--report", "report.zip", config=smoke)
    with zipfile.ZipFile(done.folder / "report.zip") as archive:
        names = archive.namelist()
        text = "".join(
            archive.read(name).decode("utf-8", "replace")
            for name in names
            if name.endswith((".html", ".js")) and "data" not in name.split("/")[-2:-1]
        )
        pages = [archive.read(n).decode() for n in names if n.endswith("report.html")]
    assert "Start with" in text
    for words in ("Published and ours", "Audit", "Tables", "Figures", "A figure redrawn"):
        assert words in text
    links = {link for page in pages for link in re.findall(r'<a [^>]*href="([^"]*)"', page)}
    assert links
    assert all(link.startswith("#") for link in links)


def test_a_reference_page_holds_the_run_and_its_tables(done, tmp_path):
    (tmp_path / "pw.intro.md").write_text("Written by hand.")
    folder = str(done.folder / "results")
    assert (
        reference.main(["pw", "--results", folder, "--out", str(tmp_path), "--prefix", "p_"]) == 0
    )
    page = (tmp_path / "pw.md").read_text()
    for words in ("8 of 8 cells are ok", "Written by hand.", "| tiny-bow | LinearSVC | PW-cb |"):
        assert words in page
    for figure in re.findall(r"\]\((\w+\.png)\)", page):
        assert (tmp_path / figure).stat().st_size > 1000
    kept = read_values(tmp_path / "p_cells.csv")
    assert set(kept["bin"]) == {"all"}
    found = compare_runs(kept, read_values(done.folder / "results/cells.csv"))
    assert not found["what"].isin([BEYOND, GONE]).any()


def test_records_follow_their_schema_and_say_where_they_came_from(done):
    records = list((done.folder / "results/runs").rglob("run.json"))
    assert len(records) == 8
    for path in records:
        record = json.loads(path.read_text())
        validate(record, RUN_SCHEMA, str(path))
        assert record["status"] == "ok"
        assert {"warm_up", "fit", "predict"} <= record["phases"].keys()
        assert record["peak_mb"] > 10
        assert record["versions"]["numpy"]
        assert {p.name for p in path.parent.iterdir()} == {
            *("run.json", "predictions.npz", "norms.npz", "metrics.csv", "instance.npz"),
            *("evaluation.json", ".lock"),
        }, "nothing half-written is left"


def test_controls_bound_every_method(done):
    cells = pd.read_csv(done.folder / "results/cells.csv")
    whole = cells[(cells["bin"] == "all") & (cells["convention"] == "xc-matlab")]
    table = whole.pivot_table(index=["base", "variant"], columns=["metric", "k"], values="value")
    assert (table.loc[("oracle", "plain")] >= table.max() - 1e-9).all()
    for metric in ("P", "PSP", "nDCG"):
        column = table[(metric, 5)]
        assert column[("LinearSVC", "plain")] > column[("popularity", "plain")]
        assert column[("popularity", "plain")] > column[("random", "plain")]


def test_nothing_is_left_to_do(done, smoke):
    assert done.planned(config=smoke) == {}


def test_a_comment_or_a_docstring_reruns_nothing(done, edited, smoke):
    edited(
        "methods/linear/svc.py",
        "        target = np.zeros",
        "        # why\n        target = np.zeros",
    )
    edited("methods/linear/svc.py", "one per label: primal", "one for each label: primal")
    assert done.planned(config=smoke) == {}


def test_code_of_an_adapter_reruns_its_cells_and_no_other(done, edited, smoke):
    edited("methods/linear/svc.py", "tol: float = 1e-3", "tol: float = 1e-2")
    cells = done.planned(config=smoke)["run_cell"]
    assert len(cells) == 3
    assert set(cells) == {
        f"results/runs/tiny-bow/LinearSVC/{variant}/seed0/run.json"
        for variant in ("PW", "PW-cb", "plain")
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("        return 2.0 * inverse_p - 1.0", "        return 3.0 * inverse_p", {"PW"}),
        ("(1.0 - beta) / (1.0 - beta**counts)", "1.0 / (1.0 - beta**counts)", {"PW-cb"}),
    ],
)
def test_code_of_a_variant_reruns_its_cells_and_no_other(
    done, edited, smoke, before, after, expected
):
    edited("methods/variants/pw.py", before, after)
    cells = done.planned(config=smoke)["run_cell"]
    of_variants = {tuple(c.split("/")[3:5]) for c in cells}
    assert {variant for _, variant in of_variants} == expected
    assert ("LinearSVC", *expected) in of_variants


def test_code_that_everything_imports_reruns_everything(done, edited, smoke):
    edited("benchmarks/evaluation/propensity.py", "1.0 + C *", "1.0 + 2.0 * C *")
    jobs = done.planned(config=smoke)
    assert len(jobs["prepare"]) == 1, "the demo hides labels by that formula"
    assert len(jobs["run_cell"]) == 8


def test_code_of_the_metrics_scores_again_and_trains_nothing(done, edited, smoke):
    edited("benchmarks/evaluation/bins.py", "HEAD_DECILES = 1", "HEAD_DECILES = 2")
    jobs = done.planned(config=smoke)
    assert len(jobs["evaluate"]) == 8
    assert "run_cell" not in jobs


def test_a_template_makes_the_pages_again_and_nothing_else(done, edited, smoke):
    edited("benchmarks/render/templates/style.css", "font-size: 28px", "font-size: 29px")
    assert set(done.planned(config=smoke)) == {
        "audit",
        "compare",
        "compare_summary",
        "report",
        "all",
    }


def test_raising_a_budget_reruns_nothing(done, smoke):
    config = yaml.safe_load(smoke.read_text())
    config["budget"] = {"wall_s": 999, "memory_mb": 3000, "threads": 2}
    assert done.planned(config=done.configure(config)) == {}


def test_one_core_and_one_piece_give_the_same_cells_as_two_and_shards(done, workspace, smoke):
    config = yaml.safe_load(smoke.read_text())
    assert config["cells"][0].pop("shards") == 2
    path = workspace.configure(config)
    workspace.run("--cores", "1", "results/cells.csv", config=path)
    assert workspace.read("results/cells.csv") == done.read("results/cells.csv")


def test_no_cell_failed(done, smoke):
    said = done.run("--cores", "1", "failed", config=smoke)
    assert "No cell failed." in said.stdout


TRAIN_TEXTS = {
    "animals": ["The dog barked at the cat", "A horse eats hay in the stable", "Lions hunt zebras"],
    "money": ["The bank raised its interest rate", "Shares fell on the market", "He owes taxes"],
    "weather": ["Heavy rain is expected", "Snow covered the hills", "A hot and sunny afternoon"],
    "music": ["She plays the violin", "The orchestra tuned up", "A song on the radio"],
}
TEST_TEXTS = {
    "animals": ["Wolves howled", "The puppy chased a rabbit"],
    "money": ["Investors bought bonds", "A loan with a low fee"],
    "weather": ["Thunderstorms tonight", "Frost and fog this morning"],
    "music": ["A pianist gave a concert", "The choir sang a melody"],
}


def test_texts_become_vectors_that_say_what_they_are_about(tmp_path, root):
    # No bag of words, and other words in the test texts: only what they mean can tell.
    for name, texts in (("train", TRAIN_TEXTS), ("test", TEST_TEXTS)):
        rows = [{"text": text, "labels": [topic]} for topic in texts for text in texts[topic]]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    workspace = Workspace(tmp_path, root)
    files = {"format": "jsonl", "train": "train.jsonl", "test": "test.jsonl"}
    vectors = {"embed": {"of": "topics", "encoder": "all-MiniLM-L6-v2"}}
    config = {
        "cells": [{"datasets": ["topics+MiniLM"], "bases": ["DiSMEC"]}],
        "define": {
            "datasets": {
                "topics": {**files, "options": {"tfidf": False}},
                "topics+MiniLM": vectors,
            }
        },
        "top_k": 4,
        "ks": [1],
    }
    path = workspace.configure(config)
    workspace.run("--cores", "2", "results/cells.csv", config=path)
    cells = pd.read_csv(tmp_path / "results/cells.csv")
    assert set(cells["status"]) == {"ok"}
    precision = cells[(cells["metric"] == "P") & (cells["bin"] == "all") & (cells["k"] == 1)]
    assert precision["value"].min() >= 75  # chance is 25
    assert workspace.planned("results/cells.csv", config=path) == {}
