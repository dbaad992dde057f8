"""The time to go: laws of cost, corrected by what cells took on this machine."""

import json
import logging
from types import SimpleNamespace

import pytest
import yaml

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.records.cell import Cell
from methods.registry import base_recipe
from workflow.console import CellLines, attach, words_of
from workflow.preflight import check_targets
from workflow.remaining import Remaining, law_of, planned_seconds

CELLS = [Cell("D", base, "plain", seed) for base in ("slow", "fast", "other") for seed in (0, 1)]
LAW = {"slow": 100.0, "fast": 10.0}


def law(cell):
    return LAW.get(cell.base)


def test_nothing_is_said_before_a_cell_is_done():
    assert Remaining(CELLS, law, cores=2).seconds() is None


def test_laws_are_scaled_by_what_cells_took_and_shared_by_the_cores():
    remaining = Remaining(CELLS, law, cores=2)
    remaining.finish(CELLS[2], 5.0)  # planned 10: this machine is twice as fast
    # Two slow cells of 50, one fast as its like took, two without a law as the median cell.
    assert remaining.seconds() == pytest.approx((2 * 50 + 5 + 2 * 5) / 2)
    remaining.finish(CELLS[0], 80.0)
    # The second slow cell takes what the first took; of the two done the median is 42.5.
    assert remaining.seconds() == pytest.approx((80 + 5 + 2 * 42.5) / 2)


def test_a_run_that_is_done_has_nothing_to_go():
    remaining = Remaining(CELLS[:1], law, cores=1)
    remaining.finish(CELLS[0], 3.0)
    assert remaining.seconds() == 0


def test_a_law_counts_from_when_its_dataset_is_prepared(tmp_path):
    cell = Cell("D", "DiSMEC", "plain", 0)
    recipe = base_recipe("DiSMEC", {})
    seconds = law_of({cell: (recipe, ())}, tmp_path)
    assert seconds(cell) is None
    meta = {"n_train": 1000, "n_features": 500, "n_labels": 100}
    (tmp_path / "D").mkdir()
    (tmp_path / "D/meta.json").write_text(json.dumps(meta))
    assert seconds(cell) == planned_seconds(recipe, (), meta) > 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (59, "about 59 s to go"),
        (1500, "about 25 min to go"),
        (9000, "about 2 h to go"),
    ],
)
def test_the_time_to_go_in_words(seconds, words):
    assert words_of(seconds) == words


@pytest.fixture
def scored(monkeypatch):
    """Has a handler hear that a cell has been scored, after a run of 5 seconds."""
    record = {"status": "ok", "wall_s": 5.0, "reason": ""}
    monkeypatch.setattr("workflow.console.read_record", lambda folder: record)
    monkeypatch.setattr("workflow.console._headline", lambda cell, folder: ["P@1 50.00"])

    def hear(lines, cell):
        names = {**vars(cell), "seed": str(cell.seed)}
        started = {"event": "job_info", "rule_name": "evaluate", "wildcards": names, "jobid": 7}
        for extra in (started, {"event": "job_finished", "job_id": 7}):
            lines.handle(logging.makeLogRecord(extra))

    return hear


def test_the_bar_counts_the_cells_that_are_scored(scored, capsys):
    lines = CellLines(CELLS, CELLS, law, cores=1)
    cell = CELLS[2]
    scored(lines, cell)
    assert f"{cell}: ok, 5.0 s, P@1 50.00" in capsys.readouterr().err
    assert lines.remaining.took == {cell: 5.0}
    lines.close()


def run_of(jobs):
    """What a run of Snakemake with these jobs, rules and cells, shows of itself."""
    wanted = [
        SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards=SimpleNamespace(**vars(cell)))
        for rule, cell in jobs
    ]
    settings = SimpleNamespace(verbose=False, quiet=None)
    manager = SimpleNamespace(
        settings=settings,
        plugin_handlers=[],
        logger=logging.Logger("a run"),
        get_logfile=list,
    )
    return SimpleNamespace(
        logger_manager=manager,
        dag=SimpleNamespace(needrun_jobs=lambda: wanted),
        resource_settings=SimpleNamespace(cores=1, nodes=None),
    )


def test_a_cell_that_is_only_scored_again_takes_no_time(scored, capsys):
    again, anew = CELLS[2], CELLS[:2]
    jobs = [("evaluate", again), *((rule, c) for c in anew for rule in ("run_cell", "evaluate"))]
    run = run_of([*jobs, ("evaluate", CELLS[3])])
    attach(run, law)
    assert "4 cells to go" in capsys.readouterr().err
    (lines,) = run.logger_manager.logger.handlers
    scored(lines, again)
    assert f"{again}: ok" in capsys.readouterr().err
    assert lines.remaining.seconds() is None, "what it took is of an earlier run"
    scored(lines, anew[0])
    assert lines.remaining.seconds() == 5.0, "the other cell that is run"
    scored(lines, anew[1])
    assert lines.remaining.seconds() == 0
    lines.close()


def test_a_target_that_was_taken_for_a_configuration_ends_in_what_to_type(root):
    for target in ("audit", "datasets", "failed", "plan"):
        config = yaml.safe_load((root / target).read_text())
        with pytest.raises(InvalidDocumentError) as caught:
            check_targets(config, ["config/smoke.yaml", target])
        typed = f"snakemake --cores 1 {target} --configfile config/smoke.yaml"
        assert str(caught.value).endswith(typed)
    check_targets({"cells": []}, ["config/smoke.yaml"])
