"""Unfinished work of a stopped fit: for the same work alone, with the time of all processes."""

import pytest

from workflow.runtime import unfinished
from workflow.runtime.child import Journal
from workflow.runtime.unfinished import Spent, work_folder

IDENTITY = {"recipe": [{"class": "a", "params": {"rate": 0.1}}], "code": "1", "shard": (0, 2)}


def left(tmp_path, identity, name="state.pt"):
    work = work_folder(tmp_path, identity)
    (work / name).write_text("half done")
    return work


def test_the_same_work_is_found_again(tmp_path):
    work = left(tmp_path, IDENTITY)
    assert work_folder(tmp_path, IDENTITY) == work
    assert (work / "state.pt").exists()


@pytest.mark.parametrize(
    "other", [{**IDENTITY, "code": "2"}, {**IDENTITY, "recipe": []}, {"code": "1"}]
)
def test_work_of_other_settings_or_code_is_never_gone_on_with(tmp_path, other):
    (left(tmp_path, IDENTITY).parent / "spent.json").write_text('{"wall_s": 9, "cpu_s": 9}')
    work = work_folder(tmp_path, other)
    assert not list(work.iterdir())
    (work / "state.pt").write_text("new")
    assert Spent(work).before["cpu_s"] == 0


def test_a_damaged_note_of_whose_work_it_is_gives_the_work_up(tmp_path):
    left(tmp_path, IDENTITY)
    (tmp_path / "made_for.json").write_text("{")
    assert not list(work_folder(tmp_path, IDENTITY).iterdir())


def fitted(scratch, work, monkeypatch, seconds):
    """A fit of so many CPU seconds by the journal; it reports its progress once."""
    clock = iter([0.0, seconds, seconds])
    journal = Journal(scratch)
    with monkeypatch.context() as patch:
        patch.setattr("workflow.runtime.child._cpu_seconds", lambda: next(clock))
        patch.setattr(unfinished, "NOTED_EVERY_S", 0.0)
        with journal.timed("fit", work):
            journal.progress(1, 2)
    with journal.timed("predict"):
        pass
    return journal


def test_a_resumed_fit_has_the_time_of_all_its_processes(tmp_path, monkeypatch):
    work = left(tmp_path, IDENTITY)
    first = fitted(tmp_path, work, monkeypatch, 30.0)
    assert first.phases["fit"]["cpu_s"] == 30.0
    second = fitted(tmp_path, work, monkeypatch, 12.0)
    assert second.phases["fit"]["cpu_s"] == 42.0
    assert second.spent_before["cpu_s"] == 30.0


def test_time_without_work_to_go_on_from_does_not_count(tmp_path, monkeypatch):
    work = work_folder(tmp_path, IDENTITY)
    fitted(tmp_path, work, monkeypatch, 30.0)
    again = fitted(tmp_path, work, monkeypatch, 12.0)
    assert again.phases["fit"]["cpu_s"] == 12.0
