"""What is known of a dataset's size before it is prepared, and what has to be assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data.cards import Card, Taken
from benchmarks.data.facts import count
from benchmarks.data.prepared import read_meta
from benchmarks.data.synthetic import NAMES, generate
from methods.cost import ASSUMED_WORDS
from methods.text.cost import ASSUMED_TOKENS, encoder_width

SIZES = ("n_train", "n_test", "n_features")


@dataclass(frozen=True)
class Known:
    """Counts by the names of ``meta.json``; ``assumed`` says in words what they do not say."""

    meta: Mapping[str, Any]
    assumed: tuple[str, ...] = ()


def known_of(name: str, cards: Mapping[str, Card], data: str | Path | None) -> Known | None:
    """From the prepared folder, the generator, the card or its twin; None where all are silent.

    ``data`` holds prepared datasets; None where these are not to be looked at.
    """
    if data is not None and Path(data, name, "meta.json").exists():
        meta = read_meta(Path(data, name))
        if "unavailable" not in meta:
            return Known(meta)
    if name in NAMES:
        return Known(count(*generate(name)))
    card = cards.get(name)
    if card is None:
        return None
    if card.embedding is not None:
        return _embedded(card, cards, data)
    if card.taken is not None:
        return _part(card, card.taken, cards, data)
    meta = {**card.counts, **card.reference}
    assumed = []
    if "n_train" not in meta:
        twin = _twin(card, cards)
        if twin is None:
            return None
        meta = {**{k: v for k, v in twin.counts.items() if k in SIZES}, **twin.reference, **meta}
        assumed.append(f"as many documents as {twin.name}")
    if "n_labels" not in meta:
        return None
    if "n_features" in meta and "features_per_train_document" not in meta:
        assumed.append(f"{ASSUMED_WORDS:.0f} words per document")
    if "n_features" not in meta and "tokens_per_document" not in meta:
        assumed.append(f"{ASSUMED_TOKENS:.0f} tokens per document")
    return Known(meta, tuple(assumed))


def facts_in(
    results: Path | None, cards: Mapping[str, Card]
) -> Callable[[str], Mapping[str, Any] | None]:
    """The counts of datasets by name, as :func:`known_of` finds them beside a folder's runs."""
    data = None if results is None else results / "data"

    def facts(name: str) -> Mapping[str, Any] | None:
        known = known_of(name, cards, data)
        return None if known is None else known.meta

    return facts


def _twin(card: Card, cards: Mapping[str, Card]) -> Card | None:
    """Another card of as many labels that says how many documents there are."""
    labels = card.counts.get("n_labels")
    same = [c for c in cards.values() if labels and c.counts.get("n_labels") == labels]
    return next((c for c in same if "n_train" in c.counts), None)


def _part(
    card: Card, taken: Taken, cards: Mapping[str, Card], data: str | Path | None
) -> Known | None:
    """Some documents of another dataset; what the card counts itself is of these."""
    of = known_of(taken.of, cards, data)
    if of is None:
        return None
    sizes = {"n_train": taken.train, "n_test": taken.test}
    return Known({**of.meta, **sizes, **card.counts, **card.reference}, of.assumed)


def _embedded(card: Card, cards: Mapping[str, Card], data: str | Path | None) -> Known | None:
    """Another dataset with the vectors of its texts beside its words."""
    assert card.embedding is not None
    of = known_of(card.embedding.of, cards, data)
    if of is None:
        return None
    words = float(of.meta.get("features_per_train_document") or ASSUMED_WORDS)
    width = encoder_width(card.embedding.encoder)
    meta = {
        **of.meta,
        "n_features": (of.meta.get("n_features") or 0) + width,
        "features_per_train_document": words + width,
    }
    return Known(meta, of.assumed)
