"""Hooks: what a variant or a user puts into a base's training, by one mechanism for all kinds.

A kind of hook is a sub-class of :class:`Hook` in a module of its own, so that a new kind changes
the code of no method that does not use it. A method names the kinds it honours in ``accepts``, a
variant those it adds in ``sets``.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np


class Hook(abc.ABC):
    """Something that acts on training; ``kind`` is the name that ``accepts`` and ``sets`` use."""

    kind: ClassVar[str]

    @abc.abstractmethod
    def joined(self, other: Self) -> Self:
        """One hook that does what this one does and then what ``other`` does."""

    def of_labels(self, labels: np.ndarray) -> Self:
        """The hook for a training split that holds only these label columns, in this order."""
        return self


Kind = TypeVar("Kind", bound=Hook)


class Hooks(Mapping[str, Hook]):
    """Hooks by the name of their kind; several of one kind are joined, in the order given."""

    def __init__(self, *hooks: Hook) -> None:
        self._hooks: dict[str, Any] = {}
        for hook in hooks:
            present = self._hooks.get(hook.kind)
            self._hooks[hook.kind] = hook if present is None else present.joined(hook)

    def __getitem__(self, kind: str) -> Hook:
        return self._hooks[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hooks)

    def __len__(self) -> int:
        return len(self._hooks)

    def find(self, kind: type[Kind]) -> Kind | None:
        """The hook of a kind, or None."""
        return self._hooks.get(kind.kind)

    def of_labels(self, labels: np.ndarray) -> Hooks:
        """Every hook restricted to these label columns."""
        return Hooks(*(hook.of_labels(labels) for hook in self._hooks.values()))
