"""Dense features: a sentence encoder's vectors of the texts beside the bag of words.

The RankNet+Taug paper's dense input is X-Transformer's: tf-idf and the vector of a fine-tuned
XLNet, side by side. Its weights are not available everywhere; another encoder, not fine-tuned,
stands in for it under its own name.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed
from scipy import sparse
from sklearn.preprocessing import normalize
from tqdm import tqdm

from benchmarks.common.atomic import atomic_path
from benchmarks.data.cards import Card, Embedding, all_cards
from benchmarks.data.errors import DataError, UnavailableError
from benchmarks.data.split import Inputs, Split

BATCH = 512
"""Documents encoded at a time, and lost by a kill. Not a setting: which texts are padded together
moves the last bits of a vector."""


def encoder_folder(encoder: str) -> Path:
    """Where an encoder's files are, by the name of its card or by its folder."""
    known = {name: card for name, card in all_cards().items() if card.encoder is not None}
    if encoder in known:
        return locate(known[encoder])
    if not (Path(encoder) / "modules.json").exists():
        raise DataError(
            f"no encoder {encoder!r}: give one of {', '.join(known)}, or a folder that "
            "sentence-transformers saved (one with modules.json)"
        )
    return Path(encoder)


def locate(card: Card) -> Path:
    """The folder of an encoder that a card describes; nothing is fetched for it."""
    assert card.encoder is not None
    folder = card.encoder.path()
    if folder is None or not (folder / "config.json").exists():
        missing = "not installed" if folder is None else f"{folder} has no config.json"
        raise UnavailableError(f"weights not found, get them by {card.encoder.install} ({missing})")
    return folder


def embedded(
    splits: Mapping[str, Split], embedding: Embedding, scratch: Path, jobs: int | None = None
) -> dict[str, Split]:
    """The splits with the texts' vectors as further columns of the bag of words.

    Bag of words and vector have unit length each, as X-Transformer has them, so neither drowns
    the other. ``scratch`` keeps what is encoded until the caller has no more need of it.
    """
    folder = encoder_folder(embedding.encoder)
    found = {}
    for name, split in splits.items():
        texts = split.inputs.texts
        if texts is None:
            raise DataError(f"{embedding.of} has no texts, so there is nothing to encode")
        vectors = encode(texts, folder, embedding.max_tokens, scratch / name, jobs)
        dense = sparse.csr_matrix(normalize(vectors, copy=False))
        words = split.inputs.bow
        parts = [dense] if words is None else [normalize(words), dense]
        both = sparse.csr_matrix(sparse.hstack(parts, format="csr", dtype=np.float32))
        found[name] = Split(Inputs(bow=both), split.labels, split.meta)
    return found


def encode(
    texts: Sequence[str],
    folder: Path,
    max_tokens: int,
    scratch: Path | None = None,
    jobs: int | None = None,
) -> np.ndarray:
    """A vector for each text, float32[n, d]; the same whatever the number of ``jobs``.

    Batches are encoded side by side on one core each, so that no sum depends on the cores;
    ``scratch`` keeps every finished one, and those it holds already are not encoded again.
    """
    starts = range(0, len(texts), BATCH)
    kept = {start: scratch / f"{start}.npy" for start in starts} if scratch is not None else {}
    todo = [start for start in starts if not (kept and kept[start].exists())]
    on_gpu = _gpu()
    workers = 1 if on_gpu or len(todo) < 2 else min(len(todo), jobs or cpu_count())
    work = Parallel(n_jobs=workers, return_as="generator")(
        delayed(_encode_batch)(list(texts[start : start + BATCH]), folder, max_tokens, on_gpu)
        for start in todo
    )
    fresh: dict[int, np.ndarray] = {}
    for start, vectors in tqdm(
        zip(todo, work, strict=True), "encoding", len(todo), unit=f"x{BATCH} texts", disable=None
    ):
        if kept:
            with atomic_path(kept[start]) as temporary:
                np.save(temporary, vectors)
        else:
            fresh[start] = vectors
    parts = [np.load(kept[start]) if kept else fresh[start] for start in starts]
    return np.concatenate(parts)


def forget(scratch: Path) -> None:
    """Remove what :func:`embedded` kept, and what it kept for earlier forms of the same data."""
    for folder in scratch.parent.glob(f"{scratch.name.rpartition('-')[0]}-*"):
        shutil.rmtree(folder)


def _gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _encode_batch(texts: list[str], folder: Path, max_tokens: int, on_gpu: bool) -> np.ndarray:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = _model(folder, max_tokens, "cuda" if on_gpu else "cpu")
        vectors = model.encode(texts, batch_size=32, show_progress_bar=False)
    finally:
        torch.set_num_threads(threads)
    return np.asarray(vectors, dtype=np.float32)


@lru_cache(maxsize=1)
def _model(folder: Path, max_tokens: int, device: str) -> Any:
    # Imported when called: it takes seconds that only this module's users need to pay.
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = SentenceTransformer(str(folder), device=device, local_files_only=True)
    model.max_seq_length = max_tokens
    return model
