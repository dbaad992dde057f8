"""Saving a model inside another's folder, for variants that wrap a base's model."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from methods.interface import Model


def save_inner(model: Model, folder: Path) -> None:
    """Write a model and the name of its class into a new folder."""
    folder.mkdir()
    kind = type(model)
    (folder / "class.json").write_text(json.dumps(f"{kind.__module__}:{kind.__qualname__}"))
    (folder / "model").mkdir()
    model.save(folder / "model")


def load_inner(folder: Path) -> Model:
    """Read back what :func:`save_inner` wrote."""
    module, _, name = json.loads((folder / "class.json").read_text()).partition(":")
    kind: type[Model] = getattr(importlib.import_module(module), name)
    return kind.load(folder / "model")
