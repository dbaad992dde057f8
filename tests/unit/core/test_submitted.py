"""What is remembered of jobs on a cluster, and what the next process makes of it."""

import os
import signal
from types import SimpleNamespace

import pytest
import yaml

from workflow.runtime.cluster import continue_submitted, kept_outputs
from workflow.runtime.stop import Stop
from workflow.runtime.submitted import Submissions, digest_of, newest

OUTPUTS = ("results/runs/d/b/v/seed0/run.json", "results/runs/d/b/v/seed0/norms.npz")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_job(**changes):
    given = {"params": {"code": "a"}, "resources": {"mem_mb": 10, "tmpdir": "/x"}, **changes}
    return SimpleNamespace(
        rule=SimpleNamespace(name="run_cell"),
        name="run_cell",
        wildcards={"dataset": "d"},
        threads=1,
        input=given.get("input", []),
        output=list(OUTPUTS),
        params=given["params"],
        resources=given["resources"],
    )


def test_a_job_is_remembered_until_it_is_removed():
    submissions = Submissions()
    submissions.add(OUTPUTS, "17_3", "abc", "log")
    found = Submissions().read()[OUTPUTS]
    assert (found.jobid, found.request, found.log) == ("17_3", "abc", "log")
    assert found.submitted > 0
    assert kept_outputs() == set(OUTPUTS)
    submissions.remove(OUTPUTS)
    assert Submissions().read() == {}


def test_all_processes_of_a_folder_use_one_name(place, monkeypatch):
    name = Submissions().run_name()
    assert Submissions().run_name() == name
    (place / "other").mkdir()
    monkeypatch.chdir(place / "other")
    assert Submissions().run_name() != name


@pytest.mark.parametrize("content", ["", "{", "[]", '{"outputs": ["x"]}', '{"jobid": 1}'])
def test_a_damaged_file_stands_for_no_job(content):
    submissions = Submissions()
    submissions.add(OUTPUTS, "1", "abc", "log")
    (path,) = submissions.folder.glob("*.json")
    path.write_text(content)
    assert submissions.read() == {}


def test_a_request_is_what_a_job_is_to_do_not_where():
    assert digest_of(make_job()) == digest_of(make_job(resources={"mem_mb": 10, "tmpdir": "/y"}))
    assert digest_of(make_job()) != digest_of(make_job(resources={"mem_mb": 20}))
    assert digest_of(make_job()) != digest_of(make_job(params={"code": "b"}))


def test_the_time_of_a_folder_is_in_snakemakes_stamp(place):
    (place / "shard").mkdir()
    (place / "shard/.snakemake_timestamp").touch()
    os.utime(place / "shard/.snakemake_timestamp", (50, 50))
    (place / "data").touch()
    os.utime(place / "data", (40, 40))
    assert newest([]) == 0
    assert newest(["shard", "data"]) == 50


class FakeWorkflow:
    """A workflow whose targets need the given jobs, each of which runs if it is forced."""

    def __init__(self, *needed):
        self.dag_settings = SimpleNamespace(forcerun=frozenset({"mine"}), force_incomplete=False)
        self.dag = SimpleNamespace(forcefiles=set(), needrun_jobs=lambda: self.runs)
        self.needed = needed
        self.runs = None

    def _build_dag(self):
        forced = self.dag.forcefiles
        self.runs = [job for job in self.needed if not forced.isdisjoint(job.output)]


def test_elsewhere_than_on_slurm_the_jobs_are_run_anew(capsys):
    submissions = Submissions()
    submissions.add(OUTPUTS, "1", "abc", "log")
    workflow = FakeWorkflow(make_job())
    continue_submitted(workflow, SimpleNamespace(name="local"))
    workflow._build_dag()
    assert workflow.runs == [workflow.needed[0]]
    assert f"scancel --name {submissions.run_name()}" in capsys.readouterr().err
    assert submissions.read() == {}


def test_a_job_that_the_targets_do_not_need_is_left_to_a_later_run(capsys):
    Submissions().add(OUTPUTS, "1", "abc", "log")
    workflow = FakeWorkflow()
    continue_submitted(workflow, SimpleNamespace(name="local"))
    workflow._build_dag()
    assert workflow.runs == []
    assert workflow.dag_settings.forcerun == {"mine"}, "a forced file would be a target, too"
    assert capsys.readouterr().err == ""
    assert Submissions().read().keys() == {OUTPUTS}


def test_the_profile_is_for_rules_and_settings_that_exist(root):
    slurm = pytest.importorskip("snakemake_executor_plugin_slurm")
    profile = yaml.safe_load((root / "workflow/profiles/slurm/config.yaml").read_text())
    settings = {name.replace("_", "-") for name in slurm.ExecutorSettings.__dataclass_fields__}
    asked = {key.removeprefix("slurm-") for key in profile if key.startswith("slurm-")}
    assert asked <= settings
    rules = (root / "workflow/rules/run.smk").read_text()
    assert f"rule {profile['slurm-array-jobs']}:" in rules


class FakeExecutor:
    """An executor whose SLURM knows what a test says, and which notes what it does."""

    def __init__(self, states, made=False):
        pytest.importorskip("snakemake_executor_plugin_slurm")
        from workflow.runtime import slurm

        class Made(slurm.Executor):
            def __init__(self):
                self.logger = SimpleNamespace(warning=notes.append)
                self.active_jobs = []
                self.submissions = Submissions()
                self.earlier = self.submissions.read()

            def _states(self):
                return states

            def _is_made(self, job):
                return made

            def _cancel(self, *jobs):
                notes.append(("cancelled", *jobs))

            def run_job_pre(self, job):
                pass

            def report_job_success(self, info):
                notes.append(("success", info.external_jobid))

        self.notes = notes = []
        self.executor = Made()

    def takes(self, job, monkeypatch):
        from workflow.runtime import slurm

        def watched(executor, info, register_job=True):
            self.notes.append(("watched", info.external_jobid))

        monkeypatch.setattr(slurm.PluginExecutor, "report_job_submission", watched)
        taken = self.executor._take_over(job)
        return taken, [note for note in self.notes if isinstance(note, tuple)]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "REQUEUED", "COMPLETED"])
def test_a_job_that_is_queued_at_work_or_done_is_watched(state, monkeypatch):
    Submissions().add(OUTPUTS, "7", digest_of(make_job()), "log")
    taken = FakeExecutor({"7": state}).takes(make_job(), monkeypatch)
    assert taken == (True, [("watched", "7")])
    assert Submissions().read().keys() == {OUTPUTS}, "until it is seen to end"


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"])
def test_a_job_that_failed_is_submitted_again(state, monkeypatch):
    Submissions().add(OUTPUTS, "7", digest_of(make_job()), "log")
    assert FakeExecutor({"7": state}, made=True).takes(make_job(), monkeypatch) == (False, [])


@pytest.mark.parametrize("made", [True, False])
def test_of_a_job_that_slurm_forgot_the_outputs_tell(made, monkeypatch):
    Submissions().add(OUTPUTS, "7", digest_of(make_job()), "log")
    expected = (True, [("success", "7")]) if made else (False, [])
    assert FakeExecutor({}, made=made).takes(make_job(), monkeypatch) == expected


def test_a_job_that_is_not_asked_for_any_more_is_cancelled(monkeypatch):
    Submissions().add(OUTPUTS, "7", digest_of(make_job()), "log")
    other = make_job(params={"code": "changed"})
    taken = FakeExecutor({"7": "RUNNING"}, made=True).takes(other, monkeypatch)
    assert taken == (False, [("cancelled", "7")])


def test_a_job_whose_input_is_newer_is_cancelled(place, monkeypatch):
    Submissions().add(OUTPUTS, "7", digest_of(make_job()), "log")
    later = Submissions().read()[OUTPUTS].submitted + 10
    (place / "data").touch()
    os.utime(place / "data", (later, later))
    taken = FakeExecutor({"7": "PENDING"}).takes(make_job(input=["data"]), monkeypatch)
    assert taken == (False, [("cancelled", "7")])


def test_a_first_signal_lets_jobs_on_a_cluster_go_on_and_a_second_cancels_them():
    done = []
    executor = SimpleNamespace(cancel_submitted=lambda: done.append("cancelled"))
    scheduler = SimpleNamespace(running=[], _executor=executor)
    stop = Stop(SimpleNamespace(scheduler=scheduler))
    stop.graceful = lambda scheduler: done.append("graceful")
    stop.interrupted(signal.SIGINT, None)
    assert done == ["graceful"]
    stop.interrupted(signal.SIGINT, None)
    assert done == ["graceful", "cancelled"]


def test_here_a_first_signal_interrupts():
    stop = Stop(SimpleNamespace(scheduler=SimpleNamespace(running=[], _executor=object())))
    with pytest.raises(KeyboardInterrupt):
        stop.interrupted(signal.SIGINT, None)
