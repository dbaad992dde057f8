"""Dropout whose draws belong to the part of a batch that is being computed.

PyTorch's own dropout draws from one generator of the process, so parts of a batch that run side by
side would draw in an order that no seed fixes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

_current = threading.local()


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """In this thread and block, every :class:`Dropout` draws from the generator."""
    before = getattr(_current, "generator", None)
    _current.generator = generator
    try:
        yield
    finally:
        _current.generator = before


class Dropout(nn.Module):
    """Sets a share ``p`` of the entries to 0 and scales the others by 1 / (1 - p), in training."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The thinned tensor, or the tensor itself when not training."""
        if not self.training or self.p == 0.0:
            return x
        kept = torch.empty_like(x).bernoulli_(
            1.0 - self.p, generator=getattr(_current, "generator", None)
        )
        return x * kept.div_(1.0 - self.p)


def replace_dropout(module: nn.Module) -> None:
    """Put :class:`Dropout` in the place of every ``nn.Dropout`` inside a module."""
    for name, child in module.named_children():
        if isinstance(child, nn.Dropout):
            setattr(module, name, Dropout(child.p))
        else:
            replace_dropout(child)
