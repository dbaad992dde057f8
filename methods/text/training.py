"""The training loop of all deep text models.

A batch is cut into pieces by a rule that knows nothing of the machine; pieces are computed side by
side, one core each, and their gradients summed in a fixed order. So a seed gives the same weights
whatever the number of cores. What a step draws follows from the seed and the number of the step,
so that training can stop and go on anywhere.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

from benchmarks.common.atomic import atomic_path
from benchmarks.evaluation.metrics import score
from benchmarks.evaluation.topk import TopK
from methods.interface import FitContext
from methods.text.batches import Documents, TokenBatch, epoch_batches, pieces
from methods.text.dropout import drawing_from
from methods.text.network import TextNetwork
from methods.text.optimiser import AdaptiveClip, DenseSparseAdam, Group, WeightAverage
from methods.text.predicting import top_labels

SELECTION = "nDCG@5"
CHECKPOINT_EVERY_S = 120.0
SAVING_S = 15.0  # kept back of the time budget for writing the result

Loss = Callable[[Any, TokenBatch, torch.Tensor, int, np.random.Generator], torch.Tensor]


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    ``swa_from`` is the epoch (from 0) before which weights start to be averaged, None for never;
    ``evaluate_every`` steps the dev split is scored, and training ends after ``patience`` such
    scores without a gain. ``decay`` is ``constant``, ``linear`` (to 0) or ``cosine`` (to 0).
    ``pool`` batches are sorted by length together; ``piece`` documents are computed on at a time.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    clip: float | None = 5.0
    decay: str = "constant"
    swa_from: int | None = None
    evaluate_every: int = 100
    patience: int = 50
    pool: int = 1
    piece: int = 10

    def factor(self, step: int, steps: int) -> float:
        """The factor on the learning rate at a step (from 0)."""
        if self.decay == "linear":
            return 1.0 - step / steps
        if self.decay == "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * step / steps))
        return 1.0


@dataclass(frozen=True)
class Examples:
    """Documents and their labels, csr[n, L], in the columns that the network has."""

    documents: Documents
    labels: sparse.csr_matrix

    def __len__(self) -> int:
        return len(self.documents)

    def targets(self, rows: np.ndarray, device: str | torch.device) -> torch.Tensor:
        """Labels of some documents as float32[n, L]."""
        return torch.from_numpy(self.labels[rows].toarray().astype(np.float32)).to(device)

    def top(
        self, network: Any, k: int, device: str, pool: ThreadPoolExecutor | None = None
    ) -> TopK:
        """The k best labels of each document by a network."""
        return top_labels(network, self.documents, k, device, pool)


@dataclass
class History:
    """What a training went through: mean losses by epoch, and (step, dev score)."""

    losses: list[float]
    scores: list[tuple[int, float]]
    notes: list[str]

    def numbers(self) -> dict[str, list[float]]:
        """What a run's record keeps: losses by epoch, and dev scores with their steps."""
        return {
            "loss": self.losses,
            "step": [float(step) for step, _ in self.scores],
            f"dev {SELECTION}": [value for _, value in self.scores],
        }


class Trainer:
    """Trains a network on examples; :meth:`run` leaves the chosen weights in it."""

    def __init__(
        self,
        network: TextNetwork,
        loss: Loss,
        train: Examples,
        schedule: Schedule,
        context: FitContext,
        *,
        dev: Examples | None = None,
        groups: Sequence[Group] | None = None,
        sort_pieces: bool = True,
        name: str = "state",
        n_test: int = 0,
    ) -> None:
        self.network = network.to(context.device)
        self.loss = loss
        self.train = train
        self.dev = dev
        self.schedule = schedule
        self.context = context
        self.sort_pieces = sort_pieces
        self.path = None if context.checkpoint is None else context.checkpoint / f"{name}.pt"
        self.n_test = n_test
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        of_embeddings: list[torch.Tensor] = [
            m.weight for m in network.modules() if isinstance(m, nn.Embedding) and m.sparse
        ]
        self.optimiser = DenseSparseAdam(
            groups or [(self.parameters, 1.0)],
            of_embeddings,
            schedule.learning_rate,
            schedule.weight_decay,
            schedule.betas,
        )
        self.clip = None if schedule.clip is None else AdaptiveClip(schedule.clip)
        self.average: WeightAverage | None = None
        self.per_epoch = -(-len(train) // schedule.batch_size)
        self.steps = schedule.epochs * self.per_epoch
        self.step = 0
        self.best: tuple[float, int] = (-1.0, 0)
        self.best_state: dict[str, torch.Tensor] | None = None
        self.without_gain = 0
        self.history = History([], [], [])
        self.epoch_loss = 0.0
        self.on_card = torch.device(context.device).type != "cpu"
        self.replicas: list[TextNetwork] = []
        self.dev_seconds = 0.0

    def run(self) -> History:
        """Train to the end, to the patience's end or to the end of the time budget."""
        self._restore()
        started, first = time.monotonic(), self.step
        saved = time.monotonic()
        with one_thread_per_operation(), self._pool() as pool:
            for step, epoch, rows in self._steps():
                if epoch == self.schedule.swa_from and self.average is None:
                    self.average = WeightAverage(self.parameters)
                if step % self.per_epoch == 0 and _begins(self.loss, epoch):
                    # Weights are chosen among those that were trained as the variant says.
                    self.best, self.best_state, self.without_gain = (-1.0, step), None, 0
                loss = self._train_on(rows, step, epoch, pool)
                self.step = step + 1
                self.epoch_loss += loss * len(rows)
                if self.step % self.per_epoch == 0:
                    self.history.losses.append(self.epoch_loss / len(self.train))
                    self.epoch_loss = 0.0
                if self.step % self.schedule.evaluate_every == 0 or self.step == self.steps:
                    self._evaluate(pool)
                    if self.without_gain > self.schedule.patience:
                        self._note(f"stopped at step {self.step}: no gain on dev for long")
                        break
                per_step = (time.monotonic() - started) / (self.step - first)
                self._report(loss, per_step)
                if time.monotonic() - saved > CHECKPOINT_EVERY_S:
                    self._save()
                    saved = time.monotonic()
                if self._out_of_time(per_step) and self.step < self.steps:
                    self._evaluate(pool)
                    self._note(
                        f"the time budget ended training at step {self.step} of {self.steps}"
                    )
                    break
        self._choose()
        return self.history

    def _steps(self) -> Iterator[tuple[int, int, np.ndarray]]:
        for epoch in range(self.step // self.per_epoch, self.schedule.epochs):
            rng = np.random.default_rng([self.context.seed, epoch, 1])
            batches = epoch_batches(
                self.train.documents.lengths, self.schedule.batch_size, rng, self.schedule.pool
            )
            for number, rows in enumerate(batches):
                step = epoch * self.per_epoch + number
                if step >= self.step:
                    yield step, epoch, rows

    def _train_on(
        self, rows: np.ndarray, step: int, epoch: int, pool: ThreadPoolExecutor | None
    ) -> float:
        """One step on a batch; its mean loss."""
        size = len(rows) if self.on_card else self.schedule.piece
        parts = pieces(rows, self.train.documents.lengths, size, self.sort_pieces)
        while len(self.replicas) < len(parts):
            self.replicas.append(_replica(self.network))

        def work(number: int) -> float:
            return self._gradients(self.replicas[number], parts[number], len(rows), step, epoch)

        numbers = range(len(parts))
        found = list(pool.map(work, numbers) if pool is not None else map(work, numbers))
        self._gather(len(parts))
        if self.clip is not None:
            self.clip(self.parameters)
        self.optimiser.step(self.schedule.factor(step, self.steps))
        for parameter in self.parameters:
            parameter.grad = None
        return sum(found)

    def _gradients(
        self, network: TextNetwork, part: np.ndarray, batch: int, step: int, epoch: int
    ) -> float:
        """Loss of a piece, as its share of the batch's; gradients stay in the replica."""
        device = self.context.device
        generator = torch.Generator(device).manual_seed(_seed(self.context.seed, step, part[0]))
        rng = np.random.default_rng([self.context.seed, step, 2])
        network.train()
        tokens = self.train.documents.batch(part, device)
        targets = self.train.targets(part, device)
        half = torch.autocast("cuda", torch.bfloat16, enabled=_is_cuda(device))
        with one_thread_per_operation(), drawing_from(generator), half:
            loss = self.loss(network, tokens, targets, epoch, rng) * (len(part) / batch)
            loss.backward()
        return float(loss.detach())

    def _gather(self, n_pieces: int) -> None:
        """Sum the replicas' gradients into the network's, in the order of the pieces."""
        own = [list(r.parameters()) for r in self.replicas[:n_pieces]]
        for place, parameter in enumerate(self.network.parameters()):
            if not parameter.requires_grad:
                continue
            total: torch.Tensor | None = None
            for replica in own:
                gradient = replica[place].grad
                if gradient is not None:
                    total = gradient if total is None else total + gradient
            if total is not None:
                parameter.grad = total.coalesce() if total.is_sparse else total
            for replica in own:
                replica[place].grad = None

    def _evaluate(self, pool: ThreadPoolExecutor | None) -> None:
        """Score the dev split with the averaged weights; keep them if they are the best."""
        if self.average is not None:
            self.average.add(self.parameters)
        if self.dev is None:
            return
        started = time.monotonic()
        with self._averaged():
            top = self.dev.top(self.network, 5, self.context.device, pool)
            value = _selection(top, self.dev.labels, self.train.labels)
            self.history.scores.append((self.step, value))
            if value > self.best[0]:
                self.best, self.without_gain = (value, self.step), 0
                self.best_state = self._weights()
            else:
                self.without_gain += 1
        self.dev_seconds = time.monotonic() - started

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        if self.average is not None:
            self.average.swap(self.parameters)
        try:
            yield
        finally:
            if self.average is not None:
                self.average.swap(self.parameters)

    def _choose(self) -> None:
        """Put the best weights into the network; without a dev split, the averaged last ones."""
        if self.best_state is not None:
            self.network.load_state_dict(self.best_state, strict=False)
        elif self.average is not None:
            self.average.swap(self.parameters)
        self.replicas = []

    def _weights(self) -> dict[str, torch.Tensor]:
        """Copies of what training changes; frozen embeddings are not among it."""
        frozen = {name for name, p in self.network.named_parameters() if not p.requires_grad}
        state = self.network.state_dict()
        return {name: v.detach().clone() for name, v in state.items() if name not in frozen}

    def _report(self, loss: float, per_step: float) -> None:
        score_text = f", dev {SELECTION} {self.best[0]:.2f}" if self.best_state else ""
        left = per_step * (self.steps - self.step)
        what = f"steps, loss {loss:.5f}{score_text}, {left:.0f} s left"
        self.context.progress(self.step, self.steps, what)

    def _out_of_time(self, per_step: float) -> bool:
        per_document = self.dev_seconds / len(self.dev) if self.dev else 0.0
        reserve = SAVING_S + 2 * per_step + self.dev_seconds + 1.5 * per_document * self.n_test
        return self.context.clock.remaining() < reserve

    def _note(self, text: str) -> None:
        chosen = f"; weights of step {self.best[1]} were kept" if self.best_state else ""
        self.history.notes.append(text + chosen)

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor | None]:
        if self.context.threads < 2 or self.on_card:
            yield None
            return
        with ThreadPoolExecutor(self.context.threads) as pool:
            yield pool

    def _save(self) -> None:
        if self.path is None:
            return
        average = self.average
        state = {
            "step": self.step,
            "weights": self._weights(),
            "optimiser": self.optimiser.state(),
            "average": None if average is None else (average.mean, average.states),
            "norms": None if self.clip is None else list(self.clip.norms),
            "best": self.best,
            "best_state": self.best_state,
            "without_gain": self.without_gain,
            "history": (self.history.losses, self.history.scores, self.history.notes),
            "epoch_loss": self.epoch_loss,
        }
        with atomic_path(self.path) as temporary:
            torch.save(state, temporary)

    def _restore(self) -> None:
        """Go on from a checkpoint, if there is one."""
        if self.path is None or not self.path.exists():
            return
        state = torch.load(self.path, map_location=self.context.device, weights_only=True)
        self.step = state["step"]
        self.network.load_state_dict(state["weights"], strict=False)
        self.optimiser.restore(state["optimiser"])
        if state["average"] is not None:
            self.average = WeightAverage(self.parameters)
            self.average.mean, self.average.states = state["average"]
        if self.clip is not None:
            self.clip.norms.clear()
            self.clip.norms.extend(state["norms"])
        self.best, self.best_state = tuple(state["best"]), state["best_state"]
        self.without_gain = state["without_gain"]
        self.history = History(*(list(part) for part in state["history"]))
        self.epoch_loss = state["epoch_loss"]


def _begins(loss: Any, epoch: int) -> bool:
    begins = getattr(loss, "begins", None)
    return begins is not None and bool(begins(epoch))


def _replica(network: TextNetwork) -> TextNetwork:
    """A network with the same weights in memory, but gradients of its own."""
    memo: dict[int, Any] = {}
    for tensor in [*network.parameters(), *network.buffers()]:
        shared: torch.Tensor = tensor.detach()
        if isinstance(tensor, nn.Parameter):
            shared = nn.Parameter(shared, requires_grad=tensor.requires_grad)
        memo[id(tensor)] = shared
    return copy.deepcopy(network, memo)


@contextmanager
def one_thread_per_operation() -> Iterator[None]:
    """PyTorch's operations use one core each in this block: sums do not depend on the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _selection(top: TopK, labels: sparse.csr_matrix, train: sparse.csr_matrix) -> float:
    return float(score(top, labels, train, ks=(5,))[SELECTION])


def _seed(*numbers: Any) -> int:
    """A seed for torch from several numbers."""
    words = np.random.SeedSequence([int(n) for n in numbers]).generate_state(2, np.uint32)
    return int(words[0]) << 31 | int(words[1]) >> 1


def _is_cuda(device: str) -> bool:
    return torch.device(device).type == "cuda"
