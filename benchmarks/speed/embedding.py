"""The embedding model's training step at EURLex-4.3K's shape, beside plain PyTorch.

The peer is what one writes first: a dense matrix of documents, a linear layer, label embeddings,
the full matrix of scores, and autograd with torch's Adagrad over all of it. A second peer takes
torch's own embedding bag with sparse gradients instead of the dense input. All compute the same
loss of the same batches from the same weights, which is checked; each is timed on the steps that
follow, on one core. Documents are drawn with Zipf-like words and labels, so that no data is needed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from torch.nn.functional import normalize

from benchmarks.common.atomic import atomic_path
from benchmarks.speed._memory import peak_mb
from methods.embedding.bag import bag
from methods.embedding.embedding import Embedding
from methods.embedding.network import Network, TouchedLabels
from methods.embedding.training import Batch, Batches, batch_loss, threads_for, train
from methods.interface import FitContext
from methods.linear.model import as_unit_rows

Step = Callable[[Batch], float]


def zipf(rows: int, columns: int, per_row: float, power: float, seed: int) -> sparse.csr_matrix:
    """A sparse matrix whose columns are the rarer the later, unit rows."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1.0 / (np.arange(columns) + 10.0) ** power)
    sizes = np.maximum(1, rng.poisson(per_row, rows))
    drawn = np.searchsorted(popularity / popularity[-1], rng.random(sizes.sum()))
    owner = np.repeat(np.arange(rows), sizes)
    values = rng.random(len(owner), dtype=np.float32) + 0.1
    matrix = sparse.csr_matrix((values, (owner, drawn)), shape=(rows, columns))
    return as_unit_rows(matrix)


def ours(network: Network, batches: Batches) -> Step:
    """A step of the embedding model, as training makes it."""
    context = FitContext()

    class One(Batches):
        def __init__(self, batch: Batch) -> None:
            self.settings, self._batch = batches.settings, batch

        def __len__(self) -> int:
            return 1

        def epoch(self) -> Iterator[Batch]:
            yield self._batch

    def step(batch: Batch) -> float:
        return next(train(network, One(batch), 1, (), context))

    return step


class Plain:
    """Plain PyTorch: every weight a dense parameter, every score differentiated."""

    def __init__(self, network: Network, method: Embedding, embedding_bag: bool) -> None:
        self.words = torch.from_numpy(network.words.vectors.copy()).requires_grad_()
        self.labels = torch.from_numpy(network.labels.copy()).requires_grad_()
        self.method, self.embedding_bag = method, embedding_bag
        self.optimiser = torch.optim.Adagrad([self.words, self.labels], lr=method.rate)

    def loss(self, batch: Batch) -> torch.Tensor:
        """The margin loss over the mined negatives, from the full score matrix."""
        if self.embedding_bag:
            documents = torch.nn.functional.embedding_bag(
                torch.from_numpy(batch.X.indices.astype(np.int64)),
                self.words,
                torch.from_numpy(batch.X.indptr[:-1].astype(np.int64)),
                mode="sum",
                per_sample_weights=torch.from_numpy(batch.X.data),
                sparse=True,
            )
        else:
            documents = torch.from_numpy(batch.X.toarray()) @ self.words
        scores = normalize(documents, dim=1) @ normalize(self.labels, dim=1).T
        positive = scores.gather(1, torch.from_numpy(batch.positives)[:, None])
        others = scores.masked_fill(torch.from_numpy(batch.carried), -torch.inf)
        hardest = others.topk(self.method.mined, dim=1).values
        return (hardest - positive + self.method.margin).clamp_min(0.0).sum(dim=1).mean()

    def step(self, batch: Batch) -> float:
        """One step of every weight."""
        self.optimiser.zero_grad()
        loss = self.loss(batch)
        loss.backward()
        self.optimiser.step()
        return loss.item()


def seconds_per_step(step: Step, batches: list[Batch]) -> float:
    """The mean over batches after the first, which is not timed."""
    step(batches[0])
    started = time.perf_counter()
    for batch in batches[1:]:
        step(batch)
    return (time.perf_counter() - started) / (len(batches) - 1)


def main(argv: list[str]) -> int:
    """Measure, print ratios, write ``results/speed/embedding.csv``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed embedding")
    parser.add_argument("--train", type=int, default=45_000, help="documents")
    parser.add_argument("--words", type=int, default=159_877, help="features")
    parser.add_argument("--labels", type=int, default=4_271)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--steps", type=int, default=20, help="of ours that are timed")
    parser.add_argument("--peer-steps", type=int, default=3, help="of each peer")
    parser.add_argument("--out", type=Path, default=Path("results/speed/embedding.csv"))
    args = parser.parse_args(argv)

    method = Embedding(dim=args.dim)
    X = zipf(args.train, args.words, 235.0, 0.9, 0)
    Y = zipf(args.train, args.labels, 5.07, 0.7, 1)
    Y.data[:] = 1.0
    rng = np.random.default_rng(0)
    with threads_for(1):
        network = Network.random(
            args.words, args.labels, args.dim, 0, rng, relu=False, unit=method.unit
        )
        batches = Batches(X, Y, method.settings(), rng)
        drawn = list(islice(batches.epoch(), args.steps + 1))
        peers = [Plain(network, method, embedding_bag=flag) for flag in (True, False)]
        sums = torch.from_numpy(bag(drawn[0].X, network.words.vectors))
        settings = method.settings()
        losses = [
            batch_loss(network, sums, TouchedLabels(network), drawn[0], settings, ()).item(),
            *(peer.loss(drawn[0]).item() for peer in peers),
        ]
        ours_s = seconds_per_step(ours(network, batches), drawn)
        few = drawn[: args.peer_steps + 1]
        sparse_s, dense_s = (seconds_per_step(peer.step, few) for peer in peers)
    rows = [
        ("tailtables", ours_s, 1.0),
        ("PyTorch, embedding bag with sparse gradients", sparse_s, sparse_s / ours_s),
        ("PyTorch, dense input", dense_s, dense_s / ours_s),
    ]
    frame = pd.DataFrame(rows, columns=["implementation", "s per step", "ratio to ours"])
    frame["documents per s"] = method.batch / frame["s per step"]
    print(
        f"{args.train:,} documents x {args.words:,} words, {args.labels:,} labels, d = {args.dim}, "
        f"batches of {method.batch}; one core"
    )
    print(frame.to_string(index=False, float_format="{:.3f}".format))
    print(f"peak memory of the process, peers included: {peak_mb():.0f} MB")
    worst = max(abs(loss - losses[0]) for loss in losses) / losses[0]
    print(f"loss of the first batch, relative difference to the peers: {worst:.1e}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(args.out) as temporary:
        frame.to_csv(temporary, index=False)
    return 0 if worst < 1e-4 and dense_s >= 3.0 * ours_s else 1
