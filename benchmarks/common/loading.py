"""Classes named as ``module:Class``, as configurations and saved models name them."""

from __future__ import annotations

import importlib
from inspect import isabstract
from typing import TypeVar

Kind = TypeVar("Kind")


def load_class(target: str, kind: type[Kind]) -> type[Kind]:
    """The class that a target names, imported; ValueError unless it is a ``kind``."""
    module, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot import {target!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ValueError(f"{target} is not a {kind.__name__}")
    if isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ValueError(f"{target}: {name} is abstract; define {missing}")
    return found


def target_of(instance: object) -> str:
    """The ``module:Class`` of an instance, for :func:`load_class`."""
    kind = type(instance)
    return f"{kind.__module__}:{kind.__qualname__}"
