"""Which code made a result: a commit, and whether the code was edited since."""

import subprocess

from workflow.runtime.provenance import CODE, commit


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_only_edits_of_the_code_count(tmp_path):
    for name in CODE:
        path = tmp_path / name if name == "Snakefile" else tmp_path / name / "a.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("1\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "all")
    clean = commit(tmp_path)
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "my_config.yaml").write_text("cells: []\n")
    (tmp_path / "run.log").write_text("a log\n")
    assert commit(tmp_path) == clean
    (tmp_path / "methods/new.py").write_text("2\n")
    assert commit(tmp_path)["dirty"] is True
    (tmp_path / "methods/new.py").unlink()
    (tmp_path / "workflow/a.py").write_text("2\n")
    assert commit(tmp_path)["dirty"] is True


def test_without_a_repository_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit(tmp_path) == {"commit": None, "dirty": None}
