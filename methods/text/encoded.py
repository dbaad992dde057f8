"""Hidden states of a frozen encoder, computed once: training then reads them from disk or memory.

Kept in half precision, which halves the memory of the largest thing there is; documents are
encoded in blocks, and with a checkpoint folder a kill loses the current block at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from benchmarks.common.atomic import atomic_path
from methods.interface import Progress, no_progress
from methods.text.batches import Documents, TokenBatch, prediction_batches
from methods.text.pretrained import PretrainedEncoder
from methods.text.training import one_thread_per_operation

BLOCK = 256
"""Documents encoded at a time. Not a setting: which are padded together moves the last bits."""
TOKENS_AT_ONCE = 4096


class EncodedDocuments(Documents):
    """Documents as hidden states in place of ids: ``batch`` gives them as float[n, T, d]."""

    def __init__(self, lengths: np.ndarray, blocks: Sequence[np.ndarray]) -> None:
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.blocks = blocks
        parts = [self.lengths[i : i + BLOCK] for i in range(0, len(self.lengths), BLOCK)]
        self.starts = np.concatenate([np.empty(0, np.int64), *(_starts(part) for part in parts)])

    def batch(self, rows: np.ndarray, device: str | torch.device = "cpu") -> TokenBatch:
        """The given documents, in the given order."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[rows]
        width = int(lengths.max(initial=1))
        d = self.blocks[0].shape[1]
        states = np.zeros((len(rows), width, d), dtype=np.float32)
        for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            start = int(self.starts[row])
            states[i, :length] = self.blocks[row // BLOCK][start : start + length]
        mask = np.arange(width) < lengths[:, None]
        return TokenBatch(
            rows,
            torch.from_numpy(states).to(device),
            torch.from_numpy(mask).to(device),
            torch.from_numpy(lengths).to(device),
        )


def encoded(
    documents: Documents,
    encoder: PretrainedEncoder,
    *,
    folder: Path | None = None,
    name: str = "states",
    device: str = "cpu",
    threads: int = 1,
    progress: Progress = no_progress,
) -> EncodedDocuments:
    """The documents' hidden states; blocks that ``folder`` holds already are not made again."""
    encoder = encoder.to(device).eval()
    blocks: list[np.ndarray] = []
    pool = ThreadPoolExecutor(threads) if threads > 1 and device == "cpu" else None
    try:
        for first in range(0, len(documents), BLOCK):
            rows = np.arange(first, min(first + BLOCK, len(documents)))
            path = None if folder is None else folder / f"{name}-{first}.npy"
            if path is None or not path.exists():
                states = _encode(rows, documents, encoder, device, pool)
                if path is not None:
                    with atomic_path(path) as temporary, temporary.open("wb") as stream:
                        np.save(stream, states)
            blocks.append(states if path is None else np.load(path, mmap_mode="r"))
            progress(int(rows[-1]) + 1, len(documents), f"{name}: documents encoded")
    finally:
        if pool is not None:
            pool.shutdown()
    return EncodedDocuments(documents.lengths, blocks)


def _encode(
    rows: np.ndarray,
    documents: Documents,
    encoder: PretrainedEncoder,
    device: str,
    pool: ThreadPoolExecutor | None,
) -> np.ndarray:
    lengths = documents.lengths[rows]
    starts = _starts(lengths)
    states = np.empty((int(lengths.sum()), encoder.width), dtype=np.float16)

    def work(some: np.ndarray) -> None:
        with torch.no_grad(), one_thread_per_operation():
            batch = documents.batch(rows[some], device)
            found, _ = encoder.encode(encoder.embed(batch.ids), batch.mask)
        for i, state in zip(some, found.half().cpu().numpy(), strict=True):
            states[starts[i] : starts[i] + lengths[i]] = state[: lengths[i]]

    groups = prediction_batches(lengths, TOKENS_AT_ONCE)
    for _ in pool.map(work, groups) if pool is not None else map(work, groups):
        pass
    return states


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
