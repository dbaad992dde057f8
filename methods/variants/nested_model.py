"""Saving a model inside another's folder, for variants that wrap a base's model."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.common.loading import load_class, target_of
from methods.interface import Model


def save_nested(model: Model, folder: Path) -> None:
    """Write a model and the name of its class into a new folder."""
    folder.mkdir()
    (folder / "class.json").write_text(json.dumps(target_of(model)))
    (folder / "model").mkdir()
    model.save(folder / "model")


def load_nested(folder: Path) -> Model:
    """The model that :func:`save_nested` wrote into the folder."""
    target = json.loads((folder / "class.json").read_text())
    return load_class(target, Model).load(folder / "model")  # type: ignore[type-abstract]
