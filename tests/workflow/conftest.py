"""Folders to run the DAG in, shared by the workflow tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, find_browser
from workspace import Workspace


@pytest.fixture(scope="session")
def smoke(root: Path) -> Path:
    return root / "config/smoke.yaml"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("run"), root)


@pytest.fixture(scope="module")
def own_tree(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Workspace:
    """A copy of the tree whose sources a test may edit."""
    copy = tmp_path_factory.mktemp("tree") / "tailtables"
    copy.mkdir()
    for name in ("benchmarks", "methods", "workflow", "config"):
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "environment.yml"):
        shutil.copy(root / name, copy / name)
    return Workspace(copy, copy)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    # Without a browser its tests are skipped and say so; in CI they fail, so that a lost browser
    # cannot pass unseen.
    try:
        find_browser()
    except FileNotFoundError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    opened = Browser()
    yield opened
    opened.close()
