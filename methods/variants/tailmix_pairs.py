"""TailMix (paper: TailMix, Algorithm 1): which context vectors are mixed, and what comes out.

A label-attention model has a context vector for each document and label. TailMix picks some of a
document's labels, rare ones first, and mixes the vector of each with that of another label *of the
same document*; the labels' targets become the shares of the mix. Selection needs no gradient and
no second forward pass: only the vectors of the chosen pairs are computed with one.

Random numbers are drawn in a fixed order, whatever the device: a Gumbel number per positive label
of the batch, then, per pair, the share and, where the partner is drawn, one uniform number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

Lookup = Callable[[Tensor, Tensor], Tensor]
"""Context vectors float[P, d] of pairs of a document (row of the batch) and a label."""

CANDIDATES_AT_ONCE = 65_536
"""Context vectors compared at a time; bounds the memory of a search among all labels."""


@dataclass(frozen=True)
class LabelGraph:
    """The label proximity graph A = binary(Y'Y) (TailMix eq. 6) without loops, as sparse rows.

    A label would be its own nearest neighbour, so it is none of its own.
    """

    indptr: np.ndarray
    indices: np.ndarray

    @property
    def n_labels(self) -> int:
        """The number of label columns."""
        return len(self.indptr) - 1

    @classmethod
    def of(cls, labels: sparse.csr_matrix) -> LabelGraph:
        """The graph of a training split's labels: neighbours share a document."""
        together = sparse.csr_matrix(labels.T @ labels)
        together.setdiag(0)
        together.eliminate_zeros()
        together.sort_indices()
        return cls(together.indptr.astype(np.int64), together.indices.astype(np.int64))

    def degree(self, labels: np.ndarray) -> np.ndarray:
        """How many neighbours each label has."""
        return self.indptr[labels + 1] - self.indptr[labels]

    def neighbour(self, labels: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The neighbour of each label that has this number among its neighbours, from 0."""
        return self.indices[self.indptr[labels] + number]

    def of_labels(self, labels: np.ndarray) -> LabelGraph:
        """The graph of some labels among themselves, in this order."""
        ones = np.ones(len(self.indices), np.float32)
        whole = sparse.csr_matrix((ones, self.indices, self.indptr), (self.n_labels, self.n_labels))
        part = sparse.csr_matrix(whole[labels][:, labels])
        part.sort_indices()
        return LabelGraph(part.indptr.astype(np.int64), part.indices.astype(np.int64))


@dataclass(frozen=True)
class EveryOtherLabel:
    """Every label beside every other: what is left without the graph (Table 4, LPG -)."""

    n_labels: int

    def degree(self, labels: np.ndarray) -> np.ndarray:
        """All labels but itself."""
        return np.full(len(labels), self.n_labels - 1, np.int64)

    def neighbour(self, labels: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The label with this number when the given one is left out."""
        return number + (number >= labels)

    def of_labels(self, labels: np.ndarray) -> EveryOtherLabel:
        """So many labels."""
        return EveryOtherLabel(len(labels))


Graph = LabelGraph | EveryOtherLabel


class Pairs(NamedTuple):
    """What is mixed: document, target label, partner label, share of the target.

    Arrays of one length, sorted by document and, within it, by ``turn``: Algorithm 1 mixes the
    targets of a document one after the other, each time on what the turns before left.
    """

    rows: np.ndarray
    targets: np.ndarray
    partners: np.ndarray
    shares: np.ndarray
    turns: np.ndarray


@dataclass(frozen=True)
class Rule:
    """How pairs are selected.

    ``targets_by``: ``propensity``, by the softmax of the inverse propensities (sec. 3.2), or
    ``chance``. ``partner_by``: ``distance``, the nearest context vector (Sim +), ``chance`` (Sim -)
    or ``propensity``. ``larger_share``: the target keeps the larger part. ``scaled``: both vectors
    are only scaled by their shares, and not added. The last three are what the authors' code of
    September 2021 does; Algorithm 1 is the default.
    """

    most: int
    alpha: float
    targets_by: str = "propensity"
    partner_by: str = "distance"
    larger_share: bool = False
    scaled: bool = False


def choose_targets(
    rows: np.ndarray,
    labels: np.ndarray,
    log_weights: np.ndarray,
    most: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Up to ``most`` labels of each document, drawn without replacement by softmax(log_weights).

    The largest of log-weights plus Gumbel noise are such a draw. Returns documents, labels and
    turns, sorted by document and turn.
    """
    keys = log_weights[labels] + rng.gumbel(size=len(labels))
    order = np.lexsort((-keys, rows))
    rows, labels = rows[order], labels[order]
    first = np.searchsorted(rows, rows)
    turns = np.arange(len(rows)) - first
    kept = turns < most
    return rows[kept], labels[kept], turns[kept]


def select(
    positives: tuple[np.ndarray, np.ndarray],
    lookup: Lookup,
    graph: Graph,
    inverse_p: np.ndarray,
    rule: Rule,
    rng: np.random.Generator,
    device: torch.device | str = "cpu",
) -> Pairs:
    """The pairs of a batch, by Algorithm 1 or one of its variations.

    ``positives`` are documents and labels of the batch's true pairs, sorted by document. Targets
    without a neighbour in the graph are left as they are.
    """
    uniform = rule.targets_by == "chance"
    log_weights = np.zeros_like(inverse_p) if uniform else inverse_p
    rows, labels, turns = choose_targets(*positives, log_weights, rule.most, rng)
    kept = graph.degree(labels) > 0
    rows, labels, turns = rows[kept], labels[kept], turns[kept]
    shares = np.empty(len(rows))
    chance = np.empty(len(rows))
    for i in range(len(rows)):  # one after the other, so that the order of draws is plain
        shares[i] = rng.beta(rule.alpha, rule.alpha)
        if rule.partner_by != "distance":
            chance[i] = rng.random()
    if rule.larger_share:
        shares = np.maximum(shares, 1.0 - shares)
    if rule.partner_by == "distance" and isinstance(graph, EveryOtherLabel):
        partners = _nearest_of_all(rows, labels, shares, lookup, graph.n_labels, device)
    elif rule.partner_by == "distance":
        partners = _nearest_in_turn(rows, labels, turns, shares, lookup, graph, device)
    else:
        weights = inverse_p if rule.partner_by == "propensity" else None
        partners = _drawn(labels, chance, graph, weights)
    return Pairs(rows, labels, partners, shares, turns)


def mixed_targets(targets: Tensor, pairs: Pairs) -> Tensor:
    """A copy of targets float[B, L] with the shares in place, turn by turn: later ones stay."""
    targets = targets.clone()
    for turn in range(_turns(pairs)):
        now = np.flatnonzero(pairs.turns == turn)
        rows, shares = pairs.rows[now], pairs.shares[now]
        for labels, values in ((pairs.targets[now], shares), (pairs.partners[now], 1.0 - shares)):
            where = (_ids(rows, targets), _ids(labels, targets))
            targets[where] = torch.from_numpy(values).to(targets)
    return targets


def mixed_contexts(
    pairs: Pairs, lookup: Lookup, rule: Rule, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor, Tensor]:
    """Documents, labels and the context vectors to use there in place of the model's.

    The vectors carry gradients if those of ``lookup`` do.
    """
    n_labels = 1 + max(pairs.targets.max(initial=0), pairs.partners.max(initial=0))
    keys, where = np.unique(
        np.concatenate([pairs.rows, pairs.rows]) * n_labels
        + np.concatenate([pairs.targets, pairs.partners]),
        return_inverse=True,
    )
    rows, labels = np.divmod(keys, n_labels)
    of_target, of_partner = np.split(where, 2)
    at = torch.from_numpy(rows).to(device), torch.from_numpy(labels).to(device)
    vectors = original = lookup(*at)
    for turn in range(_turns(pairs)):
        now = np.flatnonzero(pairs.turns == turn)
        target, partner = _ids(of_target[now], vectors), _ids(of_partner[now], vectors)
        share = torch.from_numpy(pairs.shares[now]).to(vectors)[:, None]
        if rule.scaled:
            vectors = vectors.index_copy(0, target, share * original[target])
            vectors = vectors.index_copy(0, partner, (1 - share) * original[partner])
        else:
            mixed = share * vectors[target] + (1 - share) * vectors[partner]
            vectors = vectors.index_copy(0, target, mixed)
    changed = np.ones(len(keys), bool)
    if not rule.scaled:  # partners keep their own vectors
        changed = np.isin(np.arange(len(keys)), of_target)
    kept = _ids(np.flatnonzero(changed), vectors)
    return at[0][kept], at[1][kept], vectors[kept]


@torch.no_grad()
def _nearest_in_turn(
    rows: np.ndarray,
    labels: np.ndarray,
    turns: np.ndarray,
    shares: np.ndarray,
    lookup: Lookup,
    graph: Graph,
    device: torch.device | str,
) -> np.ndarray:
    """The neighbour whose context vector is nearest, on the vectors as earlier turns left them."""
    partners = np.empty(len(rows), np.int64)
    mixed_keys, mixed_vectors = np.empty(0, np.int64), torch.empty(0)

    def now(documents: np.ndarray, some: np.ndarray) -> Tensor:
        """Context vectors as they are after the turns so far."""
        found = lookup(torch.from_numpy(documents).to(device), torch.from_numpy(some).to(device))
        keys = documents * graph.n_labels + some
        touched = np.flatnonzero(np.isin(keys, mixed_keys))
        if len(touched):
            which = np.searchsorted(mixed_keys, keys[touched])
            new = mixed_vectors[_ids(which, mixed_vectors)]
            found = found.index_copy(0, _ids(touched, found), new)
        return found

    for turn in range(int(turns.max(initial=-1)) + 1):
        current = np.flatnonzero(turns == turn)
        own = now(rows[current], labels[current])
        for block in _blocks(graph.degree(labels[current])):
            some = current[block]
            sizes = graph.degree(labels[some])
            pair = np.repeat(np.arange(len(some)), sizes)
            offset = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            candidates = graph.neighbour(labels[some][pair], offset)
            vectors = now(rows[some][pair], candidates)
            here = own[block][_ids(pair, own)]
            distances = (vectors - here).square().sum(dim=1).double().cpu().numpy()
            order = np.lexsort((offset, distances, pair))
            partners[some] = candidates[order[np.searchsorted(pair, np.arange(len(some)))]]
        beside = now(rows[current], partners[current])
        share = torch.from_numpy(shares[current]).to(own)[:, None]
        keys = np.append(mixed_keys, rows[current] * graph.n_labels + labels[current])
        order = np.argsort(keys)  # a target is one once: no key comes twice
        vectors = share * own + (1 - share) * beside
        if len(mixed_keys):
            vectors = torch.cat([mixed_vectors, vectors])
        mixed_keys, mixed_vectors = keys[order], vectors[_ids(order, own)]
    return partners


@torch.no_grad()
def _nearest_of_all(
    rows: np.ndarray,
    labels: np.ndarray,
    shares: np.ndarray,
    lookup: Lookup,
    n_labels: int,
    device: torch.device | str,
) -> np.ndarray:
    """The same among all labels: the vectors of a document are computed once, for all its turns."""
    partners = np.empty(len(rows), np.int64)
    every = torch.arange(n_labels, device=device)
    document, vectors = -1, torch.empty(0)
    for i, label in enumerate(labels):  # by document and, within it, by turn
        if rows[i] != document:
            document = rows[i]
            vectors = lookup(torch.full_like(every, int(document)), every).clone()
        own = vectors[label]
        distances = (vectors - own).square().sum(dim=1)
        distances[label] = torch.inf
        partners[i] = int(distances.argmin())
        share = torch.tensor(shares[i]).to(own)
        vectors[label] = share * own + (1 - share) * vectors[partners[i]]
    return partners


def _drawn(
    labels: np.ndarray, chance: np.ndarray, graph: Graph, weights: np.ndarray | None
) -> np.ndarray:
    """A neighbour of each label at random, evenly or by softmax(weights) among its neighbours."""
    partners = np.empty(len(labels), np.int64)
    sizes = graph.degree(labels)
    if weights is None:
        return graph.neighbour(labels, (chance * sizes).astype(np.int64))
    for i, label in enumerate(labels):
        candidates = graph.neighbour(np.repeat(label, sizes[i]), np.arange(sizes[i]))
        mass = np.cumsum(np.exp(weights[candidates] - weights[candidates].max()))
        partners[i] = candidates[np.searchsorted(mass, chance[i] * mass[-1], side="right")]
    return partners


def _blocks(sizes: np.ndarray) -> list[slice]:
    """Runs of pairs that have no more than ``CANDIDATES_AT_ONCE`` candidates together."""
    blocks, start, total = [], 0, 0
    for i, size in enumerate(sizes):
        if total and total + size > CANDIDATES_AT_ONCE:
            blocks.append(slice(start, i))
            start, total = i, 0
        total += int(size)
    return [*blocks, slice(start, len(sizes))]


def _turns(pairs: Pairs) -> int:
    return int(pairs.turns.max(initial=-1)) + 1


def _ids(values: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.int64)).to(like.device)
