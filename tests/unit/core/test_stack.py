"""One software stack: the lock, environment.yml, pyproject.toml and what is installed agree."""

import importlib.metadata
import re
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


@pytest.fixture(scope="module")
def locked(root):
    lines = (root / "requirements.lock").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "every line of the lock is name==version"
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.fixture(scope="module")
def conda(root):
    stack = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    pairs = [entry.split("=") for entry in stack]
    return {canonicalize_name(CONDA_NAMES.get(name, name)): version for name, version in pairs}


@pytest.fixture(scope="module")
def declared(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    texts = project["dependencies"] + project["optional-dependencies"]["dev"]
    return [Requirement(text) for text in texts]


def test_conda_has_the_versions_of_the_lock(locked, conda):
    assert conda.pop("python") == "3.11"
    assert conda == {name: locked[name] for name in conda}


def test_conda_has_everything_that_is_declared(conda, declared):
    names = {canonicalize_name(r.name) for r in declared if not r.name.startswith("types-")}
    assert names - set(conda) == set()


def test_the_lock_satisfies_what_is_declared(locked, declared):
    for requirement in declared:
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)])


def test_what_is_installed_is_what_is_locked(locked):
    installed = {
        canonicalize_name(d.metadata["Name"]): re.sub(r"\+cpu$", "", d.version)
        for d in importlib.metadata.distributions()
    }
    assert {name: installed.get(name) for name in locked} == locked
