"""The digest follows code that decides a result, and nothing else."""

import importlib
import sys

import pytest

from workflow.runtime import digest


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A throw-away package: adapter imports helper; bystander imports nothing of them."""
    name = "digested_" + tmp_path.name.replace("-", "_")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("def double(x):\n    return 2 * x\n")
    (folder / "adapter.py").write_text(
        f'"""Doc."""\nfrom {name}.helper import double\n\n\ndef fit(x):\n    """Fit."""\n'
        "    return double(x)\n"
    )
    (folder / "bystander.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def take(package, module):
    for cached in (digest._source, digest._tree, digest._normalised):
        cached.cache_clear()
    importlib.invalidate_caches()
    return digest.code_digest(f"{package.name}.{module}")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_comments_docstrings_and_blank_lines_cost_nothing(package):
    before = take(package, "adapter")
    edit(package / "adapter.py", "return double", "# why\n\n    return double")
    edit(package / "adapter.py", '"""Fit."""', '"""Fit, better said."""')
    assert take(package, "adapter") == before


def test_code_changes_it(package):
    before = take(package, "adapter")
    edit(package / "adapter.py", "return double(x)", "return double(x) + 1")
    assert take(package, "adapter") != before


def test_imported_code_changes_it(package):
    before, bystander = take(package, "adapter"), take(package, "bystander")
    edit(package / "helper.py", "2 * x", "3 * x")
    assert take(package, "adapter") != before
    assert take(package, "bystander") == bystander


def test_relative_imports_are_followed(package):
    edit(package / "adapter.py", f"from {package.name}.helper import", "from .helper import")
    before = take(package, "adapter")
    edit(package / "helper.py", "2 * x", "3 * x")
    assert take(package, "adapter") != before


def test_nothing_is_imported_to_take_it(package):
    take(package, "adapter")
    assert f"{package.name}.adapter" not in sys.modules


def test_methods_do_not_depend_on_each_other():
    for module in ("methods.linear.svc", "methods.controls"):
        closure = digest._closure([module])
        assert "methods.registry" not in closure
    assert "methods.linear.svc" not in digest._closure(["methods.controls"])


def test_a_missing_module_is_named():
    with pytest.raises(ModuleNotFoundError, match="no.such"):
        digest.code_digest("no.such")
