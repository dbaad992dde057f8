"""What the tests of faults share: a small dataset of files, in a folder to run the DAG in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from workspace import Workspace

from benchmarks.data.prepare import ensure
from workflow.runtime.cell import run_cell

TRAIN = "4 3 3\n0 0:1 1:0.5\n1 1:1\n0,2 0:1 2:1\n1 2:0.5\n"
TEST = "3 3 3\n0 0:1\n1,2 1:1 2:1\n2 2:1\n"
CELL = Path("mine/odd/plain/seed0")
"""The folder of the one cell that ``run`` runs, below the working folder."""
XC_FILES = {"format": "xc", "train": "train.txt", "test": "test.txt"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a dataset of seven documents and three labels in XC files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "test.txt").write_text(TEST)
    return tmp_path


@pytest.fixture
def workspace(files: Path, root: Path) -> Workspace:
    return Workspace(files, root)


@pytest.fixture
def run(files: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Run a cell of a class of ``odd_methods`` on the files; its record, as ``run.json`` has it."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    data = ensure("mine", files / "data", cards={"mine": XC_FILES})

    def run_one(target: str, **params: Any) -> dict[str, Any]:
        run_cell(
            CELL,
            cell={"dataset": "mine", "base": "odd", "variant": "plain", "seed": 0},
            recipe={"parts": [{"class": f"odd_methods:{target}", "params": params}], "seed": 0},
            data=data,
            budget={"wall_s": 120.0, "memory_mb": 2000.0},
            threads=1,
            top_k=5,
            code="",
            log=files / "log",
        )
        record: dict[str, Any] = json.loads((CELL / "run.json").read_text())
        return record

    return run_one


@pytest.fixture
def configuration() -> Callable[..., dict[str, Any]]:
    """A run of the files and of a synthetic corpus, with changes to it by key."""

    def make(**changes: Any) -> dict[str, Any]:
        return {
            "cells": [{"datasets": ["mine", "tiny-bow"], "bases": ["popularity"]}],
            "define": {"datasets": {"mine": dict(XC_FILES)}},
            "top_k": 5,
            "ks": [1, 3],
            **changes,
        }

    return make


@pytest.fixture
def cell() -> Path:
    """The folder of the cell that ``run`` runs."""
    return CELL
