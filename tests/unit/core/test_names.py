"""The machinery names no method and no paper: they come from the registry and from folders."""

import ast

import pytest

from benchmarks.evaluation.conventions import CONVENTIONS
from benchmarks.papers.spec import paper_folders
from benchmarks.records.cell import PLAIN
from methods.registry import BASES, VARIANTS

# A paper's own folder names what the paper is about; cards of data name the papers that use them.
OWN = tuple(f"benchmarks/papers/{paper}/" for paper in paper_folders())
EXEMPT = ("benchmarks/data/", *OWN)


def constants(path):
    """Strings of a module that are values: no docstrings, no bare strings after a constant."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value


@pytest.fixture(scope="module")
def names():
    return {*BASES, *VARIANTS, *paper_folders()}


def test_no_module_of_the_machinery_names_a_method_or_a_paper(root, names):
    assert len(names) > 20
    found = [
        f"{path.relative_to(root)}:{line}: {value!r}"
        for path in sorted((root / "benchmarks").rglob("*.py"))
        if not path.relative_to(root).as_posix().startswith(EXEMPT)
        for line, value in constants(path)
        if value in names
        # An evaluator's conventions may be known by the name of the paper it came with, and a
        # printed value may be that of an ensemble, whoever can run one.
        and not (path.name == "conventions.py" and value in CONVENTIONS)
        and not (path.parent.name == "papers" and value == "ensemble")
    ]
    assert found == []


def test_the_word_for_an_unchanged_base_has_one_place(root):
    found = {
        path.relative_to(root).as_posix()
        for path in (root / "benchmarks").rglob("*.py")
        if any(value == PLAIN for _, value in constants(path))
    }
    assert found == {"benchmarks/records/cell.py"}


def test_rules_and_report_name_no_paper(root):
    for path in [*(root / "workflow").rglob("*.smk"), *(root / "workflow").rglob("*.py")]:
        if path.parent.name == "studies":
            continue  # programs on top, each about one paper
        text = path.read_text(encoding="utf-8")
        found = [
            paper
            for paper in paper_folders()
            if f"papers.{paper}" in text or f"papers/{paper}" in text
        ]
        assert found == [], path
