"""Mixing whole documents: wordMix, hiddenMix and TMix interpolate, SSMix swaps spans of tokens.

wordMix (Guo et al. 2019) mixes word vectors, hiddenMix (manifold mixup, Verma et al. 2019) the
encoder's output, TMix (Chen et al. 2020) the hidden states between two layers of a transformer.
All three mix a batch with a permutation of itself, so that each document passes the network once.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

TMIX_LAYERS = (7, 9, 12)
TMIX_DEPTH = 12
"""TMix mixes after one of these layers of twelve, by the authors of TMix and of TailMix."""


def draw_share(alpha: float, rng: np.random.Generator) -> float:
    """lambda ~ Beta(alpha, alpha) or 1 - lambda, whichever is larger: a document stays itself."""
    share = float(rng.beta(alpha, alpha))
    return max(share, 1.0 - share)


def interpolated(
    states: Tensor, mask: Tensor, partner: Tensor, share: float
) -> tuple[Tensor, Tensor]:
    """States float[B, T, d] mixed with those of each document's partner, and the mask of the mix.

    Where only one of two documents has a token, the other adds nothing, and the position counts.
    """
    states = states * mask.unsqueeze(-1)
    return torch.lerp(states[partner], states, share), mask | mask[partner]


def interpolated_targets(targets: Tensor, partner: Tensor, share: float | Tensor) -> Tensor:
    """share y + (1 - share) y of the partner (TailMix eq. 1)."""
    return share * targets + (1 - share) * targets[partner]


def tmix_layer(rng: np.random.Generator, depth: int, layers: tuple[int, ...] = TMIX_LAYERS) -> int:
    """After which of an encoder's layers to mix, 1 for the first.

    The layers are those of a twelve-layer encoder, taken at the same relative depth.
    """
    layer = layers[int(rng.integers(len(layers)))]
    return max(1, -(-layer * depth // TMIX_DEPTH))


def paired(n: int, rng: np.random.Generator) -> np.ndarray:
    """Partners of n documents: halves of a random order swapped; an odd one is its own partner."""
    order = rng.permutation(n)
    half = n // 2
    partner = np.arange(n)
    partner[order[:half]], partner[order[half : 2 * half]] = order[half : 2 * half], order[:half]
    return partner


def with_spans_of(
    ids: Tensor,
    lengths: np.ndarray,
    saliency: Tensor,
    partner: np.ndarray,
    window: float,
    edge: int = 0,
) -> tuple[Tensor, np.ndarray]:
    """SSMix: each document's least salient span replaced by its partner's most salient one.

    ``saliency`` float[B, T] is the norm of the loss' gradient in each token's vector. A span has
    ``window`` of the document's tokens, at least one; ``edge`` tokens at either end (a
    transformer's marks) belong to none. Returns the new ids and each document's share of itself;
    a document whose span does not fit into its partner stays whole, with share 1.
    """
    ids = ids.clone()
    source = ids.clone()
    # Windows are compared by sums in float64, so that the device's order of adding plays no part.
    sums = np.cumsum(np.pad(saliency.detach().double().cpu().numpy(), ((0, 0), (1, 0))), axis=1)
    shares = np.ones(len(lengths))
    for i, j in enumerate(partner):
        own, other = int(lengths[i]) - 2 * edge, int(lengths[j]) - 2 * edge
        size = max(1, int(own * window))
        if i == j or own < size or other < size:
            continue
        here = _start(sums[i], edge, own, size, least=True)
        there = _start(sums[j], edge, other, size, least=False)
        ids[i, here : here + size] = source[j, there : there + size]
        shares[i] = 1.0 - size / own
    return ids, shares


def _start(sums: np.ndarray, edge: int, length: int, size: int, *, least: bool) -> int:
    """Where the window of least or most salience starts; the first of equals."""
    first, last = edge, edge + length - size
    totals = sums[first + size : last + size + 1] - sums[first : last + 1]
    return first + int(totals.argmin() if least else totals.argmax())
