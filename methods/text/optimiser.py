"""Adam or AdamW on dense and sparse gradients, AttentionXML's clipping, averaged weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

Group = tuple[Sequence[nn.Parameter], float]
"""Parameters and the factor on the learning rate that they are trained with."""


class DenseSparseAdam:
    """Adam, or AdamW where ``weight_decay`` is above 0.

    Rows of an embedding that a batch does not touch keep their moments, as in ``SparseAdam``; of
    the rows it touches, AdamW decays the weights too.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        sparse: Iterable[torch.Tensor],
        learning_rate: float,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.weight_decay = weight_decay
        self.of_sparse = {id(parameter) for parameter in sparse}
        dense, rows = self._split(groups, learning_rate)
        self.optimisers: list[torch.optim.Optimizer] = []
        if dense:
            self.optimisers.append(
                torch.optim.AdamW(dense, betas=betas, eps=epsilon, weight_decay=weight_decay)
            )
        if rows:
            self.optimisers.append(torch.optim.SparseAdam(rows, betas=betas, eps=epsilon))
        self.rates = [[g["lr"] for g in o.param_groups] for o in self.optimisers]

    def _split(self, groups: Sequence[Group], rate: float) -> tuple[list[Any], list[Any]]:
        dense: list[Any] = []
        rows: list[Any] = []
        for parameters, factor in groups:
            for kind, chosen in ((dense, False), (rows, True)):
                own = [p for p in parameters if (id(p) in self.of_sparse) is chosen]
                if own:
                    kind.append({"params": own, "lr": rate * factor})
        return dense, rows

    def step(self, factor: float = 1.0) -> None:
        """One step with every rate times ``factor``."""
        for optimiser, rates in zip(self.optimisers, self.rates, strict=True):
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * factor
                if isinstance(optimiser, torch.optim.SparseAdam) and self.weight_decay:
                    self._decay_rows(group)
            optimiser.step()

    def _decay_rows(self, group: dict[str, Any]) -> None:
        for parameter in group["params"]:
            if parameter.grad is not None:
                rows = parameter.grad.coalesce().indices()[0]
                parameter.data[rows] *= 1.0 - group["lr"] * self.weight_decay

    def state(self) -> list[dict[str, Any]]:
        """What :meth:`restore` takes."""
        return [optimiser.state_dict() for optimiser in self.optimisers]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Go on from an earlier :meth:`state`."""
        for optimiser, saved in zip(self.optimisers, state, strict=True):
            optimiser.load_state_dict(saved)


class AdaptiveClip:
    """Clips the norm of the gradient at ``factor`` times the largest of the last five norms.

    The norms remembered are at most 1 and at most twice the largest before them, so that one
    huge gradient does not open the way for the next (AttentionXML's program).
    """

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.norms: deque[float] = deque([float("inf")], maxlen=5)

    def __call__(self, parameters: Iterable[nn.Parameter]) -> float:
        """Scale the gradients where their norm is too large; the norm before."""
        values = [_values(p.grad) for p in parameters if p.grad is not None]
        norm = float(torch.sqrt(sum((v.double().square().sum() for v in values), torch.zeros(()))))
        largest = max(self.norms)
        if norm > largest * self.factor:
            for value in values:
                value.mul_(largest * self.factor / (norm + 1e-6))
        self.norms.append(min(norm, 2.0 * largest, 1.0))
        return norm


def _values(gradient: torch.Tensor) -> torch.Tensor:
    return gradient._values() if gradient.is_sparse else gradient


class WeightAverage:
    """The running mean of weights (SWA), each state counting once."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.mean = [p.detach().clone() for p in parameters]
        self.states = 1

    def add(self, parameters: Sequence[nn.Parameter]) -> None:
        """Count the weights as they are now."""
        self.states += 1
        for mean, parameter in zip(self.mean, parameters, strict=True):
            mean.lerp_(parameter.detach(), 1.0 / self.states)

    def swap(self, parameters: Sequence[nn.Parameter]) -> None:
        """Exchange the weights and their mean, in place."""
        for mean, parameter in zip(self.mean, parameters, strict=True):
            kept = parameter.detach().clone()
            parameter.data.copy_(mean)
            mean.copy_(kept)
