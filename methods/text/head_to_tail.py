"""The parts of HTTN that come after its extractor (eqs. 6-12), on document representations.

Shapes: R is float[n, d], the representations of the training documents; a classifier is
float[labels, d], a label's parameters in its row (the paper's M is its transpose). What the paper
leaves open is decided here: a label with fewer than t documents gives all it has; f_att is the
inner product or the cosine; head prototypes of several draws give the mean of their attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from scipy import sparse
from torch.nn import functional as F  # noqa: N812


def head_and_tail(counts: np.ndarray, l_tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the head and of the tail, each sorted by label: the tail are the rarest that occur.

    ``l_tail`` is a number of labels or, below 1, a share of those that occur. At least one label
    is left on either side.
    """
    counts = np.asarray(counts)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    size = round(l_tail * len(order)) if l_tail < 1 else int(l_tail)
    if not 0 < size < len(order):
        raise ValueError(
            f"l_tail = {l_tail:g} leaves {len(order) - size} head and {size} tail labels of the "
            f"{len(order)} that occur in training; both need one"
        )
    return np.sort(order[: len(order) - size]), np.sort(order[len(order) - size :])


class Documents:
    """Which training documents carry each of some labels."""

    def __init__(self, labels: sparse.csr_matrix, wanted: np.ndarray) -> None:
        by_label = sparse.csc_matrix(labels[:, wanted])
        self.rows = np.split(by_label.indices, by_label.indptr[1:-1])

    def draw(self, t: int, rng: np.random.Generator) -> list[np.ndarray]:
        """``t`` different documents of each label, or all where it has fewer."""
        return [rng.choice(rows, min(t, len(rows)), replace=False) for rows in self.rows]


def prototypes(R: torch.Tensor, drawn: Sequence[np.ndarray], unit: bool = False) -> torch.Tensor:
    """The mean representation of each label's drawn documents (eqs. 6 and 8), float[labels, d].

    With ``unit`` they are scaled to length 1, as the released code does.
    """
    lengths = torch.tensor([len(rows) for rows in drawn])
    flat = torch.from_numpy(np.concatenate(drawn).astype(np.int64))
    owner = torch.repeat_interleave(torch.arange(len(drawn)), lengths)
    sums = torch.zeros(len(drawn), R.shape[1], dtype=R.dtype).index_add_(0, owner, R[flat])
    means = sums / lengths.unsqueeze(1)
    return F.normalize(means, dim=1) if unit else means


def least_squares_transfer(P: torch.Tensor, M: torch.Tensor, ridge: float = 1e-6) -> torch.Tensor:
    """W that minimises sum over draws and labels of ||m - W p||^2 (eq. 7), float[d, d].

    ``P`` is float[S, head, d], ``M`` float[head, d]. ``ridge``, relative to the mean square of a
    prototype's entry, makes it solvable with few labels.
    """
    p = P.reshape(-1, P.shape[2]).double()
    m = M.double().repeat(len(P), 1)
    gram = p.T @ p
    gram += ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    return torch.linalg.solve(gram, p.T @ m).T.to(P.dtype)


def descent_transfer(
    P: torch.Tensor, M: torch.Tensor, rate: float, epochs: int, seed: int
) -> torch.Tensor:
    """W from Adam on the mean square of eq. 7, a step per draw: how the released code does it."""
    generator = torch.Generator().manual_seed(seed)
    d = P.shape[2]
    W = torch.empty(d, d).uniform_(-(d**-0.5), d**-0.5, generator=generator).requires_grad_()
    optimiser = torch.optim.Adam([W], lr=rate)
    for _ in range(epochs):
        for p in P:
            optimiser.zero_grad()
            F.mse_loss(p @ W.T, M).backward()
            optimiser.step()
    return W.detach()


def attended(
    P_tail: torch.Tensor,
    P_head: torch.Tensor,
    divisor: float | None = None,
    cosine: bool = False,
) -> torch.Tensor:
    """The tail prototypes after attention over the head's (eq. 10), float[tail, d].

    ``P_head`` is float[S, head, d]. The attention terms of the S draws are averaged; the released
    code divides their sum by the number of head labels instead, which ``divisor`` allows. f_att
    is the inner product or, with ``cosine``, that of prototypes of length 1.
    """
    total = torch.zeros_like(P_tail)
    queries = F.normalize(P_tail, dim=1) if cosine else P_tail
    for P in P_head:
        keys = F.normalize(P, dim=1) if cosine else P
        total += torch.softmax(queries @ keys.T, dim=1) @ P
    return (total / (len(P_head) if divisor is None else divisor) + P_tail) / 2


def tail_rows(
    P_tail: torch.Tensor,
    W: torch.Tensor,
    P_head: torch.Tensor | None = None,
    divisor: float | None = None,
    cosine: bool = False,
) -> torch.Tensor:
    """Classifier rows of tail labels: eq. 11, or eq. 9 where no head prototypes are given."""
    P = P_tail if P_head is None else attended(P_tail, P_head, divisor, cosine)
    return P @ W.T


def assembled(
    n_labels: int,
    head: np.ndarray,
    M_head: torch.Tensor,
    tail: np.ndarray,
    M_tail: torch.Tensor,
) -> torch.Tensor:
    """The whole classifier (eq. 12), float[L, d]; rows of labels without documents are NaN."""
    M = torch.full((n_labels, M_head.shape[1]), torch.nan, dtype=M_head.dtype)
    M[torch.from_numpy(head)] = M_head
    M[torch.from_numpy(tail)] = M_tail
    return M


def fine_tuned(
    M: torch.Tensor,
    R: torch.Tensor,
    Y: torch.Tensor,
    *,
    rate: float,
    epochs: int,
    batch: int,
    rng: np.random.Generator,
) -> torch.Tensor:
    """The classifier after some epochs of Adam on eq. 5 over all labels, the extractor fixed.

    ``R`` and ``Y`` are the representations and labels of the documents to train on. Rows of
    labels without documents stay NaN.
    """
    known = ~torch.isnan(M[:, 0])
    weights, targets = M[known].clone().requires_grad_(), Y[:, known]
    optimiser = torch.optim.Adam([weights], lr=rate)
    for _ in range(epochs):
        for rows in _batches(len(R), batch, rng):
            optimiser.zero_grad()
            F.binary_cross_entropy_with_logits(R[rows] @ weights.T, targets[rows]).backward()
            optimiser.step()
    result = M.clone()
    result[known] = weights.detach()
    return result


def probabilities(
    R: torch.Tensor, classifiers: Sequence[torch.Tensor], bias: torch.Tensor | float = 0.0
) -> torch.Tensor:
    """The mean over classifiers of sigmoid(r M), float[n, L]; NaN for labels without documents."""
    total = torch.zeros(len(R), len(classifiers[0]), dtype=R.dtype)
    for M in classifiers:
        total += torch.sigmoid(R @ M.T + bias)
    return total / len(classifiers)


def _batches(n: int, size: int, rng: np.random.Generator) -> Iterator[torch.Tensor]:
    order = torch.from_numpy(rng.permutation(n))
    return iter(order.split(size))
