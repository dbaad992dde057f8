"""AttentionXML against a plain PyTorch rendering of it, at its EUR-Lex size; ratios within one run.

``python -m benchmarks.speed text [--documents 80] [--threads 2] [--repeats 3]`` needs no data: the
documents are random words, with lengths like EUR-Lex's. The plain rendering takes documents in the
order given, pads each batch to its longest, packs sequences for PyTorch's LSTM, makes every
context vector and lets PyTorch spread each operation over the cores. Both have the same weights.
Times are the least of the repeats, both sides in turn. Memory is kept by the process and waiting
threads sleep (``SETTINGS``): without that the plain rendering, which allocates much more, spends
most of its time on pages of memory, and its ratio would say nothing about the model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.common.atomic import atomic_path
from benchmarks.speed._memory import peak_mb
from methods.hooks import Hooks
from methods.interface import FitContext
from methods.text.batches import Documents
from methods.text.embedding import WordEmbedding
from methods.text.loss import BatchLoss, BinaryCrossEntropy
from methods.text.network import BiLSTMAttention
from methods.text.predicting import top_labels
from methods.text.training import Examples, Schedule, Trainer, one_thread_per_operation

WORDS, DIMENSIONS, HIDDEN, HEAD, TOKENS, BATCH = 20_000, 300, 256, (256,), 500, 40
LABELS, MANY_LABELS, LABELS_PER_DOCUMENT = 3956, 30_938, 5
EMBEDDING_DROPOUT, DROPOUT, RATE, TOP = 0.2, 0.5, 1e-3, 5
AT_LEAST = {"train": 1.5, "predict": 2.0}
LOSS_WITHIN, MEMORY_WITHIN_MB = 1e-4, 6000
SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
    "OMP_WAIT_POLICY": "PASSIVE",
}
"""Read when a process starts, so the measurement is one of its own."""


class Plain(nn.Module):
    """AttentionXML as its formulas read."""

    def __init__(self, network: BiLSTMAttention) -> None:
        super().__init__()
        self.words = network.embedding.words
        self.lstm = nn.LSTM(DIMENSIONS, HIDDEN, batch_first=True, bidirectional=True)
        with torch.no_grad():
            for name, value in network.lstm.onward.named_parameters():
                getattr(self.lstm, name).copy_(value)
            for name, value in network.lstm.backward_.named_parameters():
                getattr(self.lstm, f"{name}_reverse").copy_(value)
        start = network.lstm.start.detach().clone().transpose(0, 1).unsqueeze(2)
        self.start = nn.Parameter(start)  # hidden, cell; direction
        self.attention = nn.Linear(2 * HIDDEN, len(network.attention.vectors), bias=False)
        self.attention.weight = nn.Parameter(network.attention.vectors.detach().clone())
        self.head = nn.ModuleList(nn.Linear(a, b) for a, b in [(2 * HIDDEN, HEAD[0]), (HEAD[0], 1)])
        for own, layer in zip(self.head, [*network.head.layers, network.head.output], strict=True):
            own.load_state_dict(layer.state_dict())
        self.of_words, self.of_states = nn.Dropout(EMBEDDING_DROPOUT), nn.Dropout(DROPOUT)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Logits, float[n, L]."""
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        packed = pack_padded_sequence(
            self.of_words(self.words(ids)), lengths, batch_first=True, enforce_sorted=False
        )
        hidden, cell = self.start.expand(2, 2, len(ids), HIDDEN)
        packed, _ = self.lstm(packed, (hidden.contiguous(), cell.contiguous()))
        states = self.of_states(pad_packed_sequence(packed, batch_first=True)[0])
        scores = self.attention(states).transpose(1, 2).masked_fill(~mask[:, None], -torch.inf)
        contexts = torch.softmax(scores, -1) @ states
        return torch.as_tensor(self.head[1](torch.relu(self.head[0](contexts))).squeeze(-1))


def corpus(n: int, n_labels: int, seed: int) -> Examples:
    """Random documents whose lengths are those of EUR-Lex, cut at 500 tokens: most are longer."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(100, rng.lognormal(np.log(700), 0.6, n)).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ids = rng.integers(2, WORDS, indptr[-1]).astype(np.int32)
    columns = rng.integers(n_labels, size=(n, LABELS_PER_DOCUMENT))
    rows = np.repeat(np.arange(n), LABELS_PER_DOCUMENT)
    labels = sparse.csr_matrix(
        (np.ones(rows.size, np.float32), (rows, columns.ravel())), shape=(n, n_labels)
    )
    labels.data[:] = 1.0
    return Examples(Documents(indptr, ids, TOKENS), labels)


def network(n_labels: int, seed: int) -> BiLSTMAttention:
    """AttentionXML's network with frozen random word vectors."""
    torch.manual_seed(seed)
    vectors = np.random.default_rng(seed).uniform(-1, 1, (WORDS, DIMENSIONS)).astype(np.float32)
    words = WordEmbedding(vectors, False, EMBEDDING_DROPOUT)
    return BiLSTMAttention(words, HIDDEN, HEAD, n_labels, DROPOUT)


class Ours:
    """A step and a prediction of this project's training loop."""

    def __init__(self, examples: Examples, built: BiLSTMAttention, threads: int) -> None:
        schedule = Schedule(1, BATCH, RATE)
        loss = BatchLoss.of(Hooks(), BinaryCrossEntropy())
        self.trainer = Trainer(built, loss, examples, schedule, FitContext(threads=threads))
        self.examples = examples
        self.threads = threads

    def train(self) -> None:
        """One step on each batch."""
        with one_thread_per_operation(), ThreadPoolExecutor(self.threads) as pool:
            for start in range(0, len(self.examples), BATCH):
                rows = np.arange(start, min(start + BATCH, len(self.examples)))
                self.trainer._train_on(rows, start, 0, pool)

    def predict(self) -> None:
        """The top labels of all documents."""
        with one_thread_per_operation(), ThreadPoolExecutor(self.threads) as pool:
            top_labels(self.trainer.network, self.examples.documents, TOP, "cpu", pool)


class Theirs:
    """The same of the plain rendering."""

    def __init__(self, examples: Examples, plain: Plain, threads: int) -> None:
        self.examples, self.plain, self.threads = examples, plain, threads
        trained = [p for p in plain.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(trained, lr=RATE)

    def _batches(self) -> Any:
        torch.set_num_threads(self.threads)
        for start in range(0, len(self.examples), BATCH):
            rows = np.arange(start, min(start + BATCH, len(self.examples)))
            yield rows, self.examples.documents.batch(rows)

    def train(self) -> None:
        """One step on each batch."""
        self.plain.train()
        for rows, batch in self._batches():
            self.optimiser.zero_grad()
            logits = self.plain(batch.ids, batch.lengths)
            targets = self.examples.targets(rows, "cpu")
            nn.functional.binary_cross_entropy_with_logits(logits, targets).backward()
            nn.utils.clip_grad_norm_(self.plain.parameters(), 5.0)
            self.optimiser.step()

    def predict(self) -> None:
        """The top labels of all documents."""
        self.plain.eval()
        with torch.no_grad():
            for _, batch in self._batches():
                torch.topk(torch.sigmoid(self.plain(batch.ids, batch.lengths)), TOP)


def same_loss(examples: Examples, built: BiLSTMAttention, plain: Plain) -> float:
    """The difference between the losses of both on the first documents, without dropout."""
    rows = np.arange(min(BATCH, len(examples)))
    batch, targets = examples.documents.batch(rows), examples.targets(rows, "cpu")
    built.eval()
    plain.eval()
    with torch.no_grad():
        ours = BinaryCrossEntropy()(built(batch), targets)
        logits = plain(batch.ids, batch.lengths)
        theirs = nn.functional.binary_cross_entropy_with_logits(logits, targets)
    return abs(float(ours) - float(theirs))


def peak_memory(threads: int) -> int:
    """Train one batch with many labels, and print this process' peak memory."""
    examples = corpus(BATCH, MANY_LABELS, 0)
    Ours(examples, network(MANY_LABELS, 0), threads).train()
    print(json.dumps(peak_mb()))
    return 0


def best_of(repeats: int, works: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The least seconds of each, all in turn, after one that is not timed."""
    seconds = dict.fromkeys(works, np.inf)
    for repeat in range(repeats + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if repeat:
                seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


def main(argv: list[str]) -> int:
    """Measure, print ratios, write ``results/speed/text.csv``; 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed text")
    parser.add_argument("--documents", type=int, default=80, help="trained on and predicted")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="runs; the shortest counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", action="store_true", help="only the peak memory, as JSON")
    parser.add_argument("--out", type=Path, default=Path("results/speed/text.csv"))
    args = parser.parse_args(argv)
    if args.memory:
        return peak_memory(args.threads)
    if not os.environ.keys() >= SETTINGS.keys():
        command = [sys.executable, "-m", "benchmarks.speed", "text", *argv]
        return subprocess.run(command, env={**os.environ, **SETTINGS}).returncode

    examples = corpus(args.documents, LABELS, args.seed)
    built = network(LABELS, args.seed)
    plain = Plain(built)
    difference = same_loss(examples, built, plain)
    ours, theirs = Ours(examples, built, args.threads), Theirs(examples, plain, args.threads)
    rows, held = [], difference < LOSS_WITHIN
    for phase, bound in AT_LEAST.items():
        works = {"tailtables": getattr(ours, phase), "plain PyTorch": getattr(theirs, phase)}
        seconds = best_of(args.repeats, works)
        ratio = seconds["plain PyTorch"] / seconds["tailtables"]
        held &= ratio >= bound
        for name, value in seconds.items():
            rows.append((phase, name, args.documents / value, value, bound))
        print(f"{phase}: {ratio:.2f}x the plain rendering; at least {bound}x is asked for")
    frame = pd.DataFrame(rows, columns=["phase", "program", "documents_per_s", "seconds", "bound"])
    print(frame.to_string(index=False, float_format="{:.2f}".format))
    print(f"difference of the losses on the same documents: {difference:.1e}")
    command = [sys.executable, "-m", "benchmarks.speed", "text", "--memory"]
    usual = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=usual)
    megabytes = json.loads(found.stdout)
    held &= megabytes < MEMORY_WITHIN_MB
    print(
        f"peak memory, {MANY_LABELS:,} labels, {TOKENS} tokens, batch {BATCH}: {megabytes:.0f} MB"
    )
    with atomic_path(args.out) as temporary:
        frame.to_csv(temporary, index=False)
    return 0 if held else 1
