"""Imports point one way: workflow -> methods -> benchmarks."""

import ast

import pytest

RANK = {"benchmarks": 0, "methods": 1, "workflow": 2}
# Measurements are programs on top of everything; the test below sees that nothing imports them.
PROGRAMS = "benchmarks/speed/"


def project_imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        yield from (name for name in names if name.partition(".")[0] in RANK)


@pytest.fixture(scope="module")
def sources(root):
    found = {
        path.relative_to(root).as_posix(): list(project_imports(path))
        for package in RANK
        for path in sorted((root / package).rglob("*.py"))
    }
    assert len(found) > 20
    return found


def test_imports_point_one_way(sources):
    wrong = [
        f"{path} imports {name}"
        for path, names in sources.items()
        if not path.startswith(PROGRAMS)
        for name in names
        if RANK[name.partition(".")[0]] > RANK[path.partition("/")[0]]
    ]
    assert wrong == []


def test_nothing_imports_the_measurements(sources):
    wrong = [
        f"{path} imports {name}"
        for path, names in sources.items()
        if not path.startswith(PROGRAMS)
        for name in names
        if name.startswith("benchmarks.speed")
    ]
    assert wrong == []


def test_modules_are_of_a_readable_length(root, sources):
    lengths = {path: len((root / path).read_text().splitlines()) for path in sources}
    assert {path: n for path, n in lengths.items() if n > 450} == {}


def test_rules_hold_no_lambda(root):
    for path in (root / "workflow/rules").glob("*.smk"):
        assert "lambda" not in path.read_text(), path
