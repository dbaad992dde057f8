"""Top labels of documents by a network, in batches of similar length."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from benchmarks.evaluation.topk import TopK
from methods.text.batches import Documents, prediction_batches
from methods.text.network import TextNetwork

TOKENS_AT_ONCE = 4096
"""More make no core faster, and leave some without work at the end."""


@torch.no_grad()
def top_labels(
    network: TextNetwork,
    documents: Documents,
    k: int,
    device: str = "cpu",
    pool: ThreadPoolExecutor | None = None,
) -> TopK:
    """The k labels of the largest probability, by the network's columns."""
    network.eval()
    top = TopK.empty(len(documents), k)

    def work(rows: np.ndarray) -> None:
        with torch.no_grad():
            logits = network(documents.batch(rows, device))
            found = TopK.from_dense(torch.sigmoid(logits.double()).float().cpu().numpy(), k)
        top.indices[rows], top.scores[rows] = found.indices, found.scores

    groups = prediction_batches(documents.lengths, TOKENS_AT_ONCE)
    for _ in pool.map(work, groups) if pool is not None else map(work, groups):
        pass
    return top
