"""What bases on a pretrained transformer share: its stages, its tokens, states computed once.

A base whose paper has another encoder than this machine is a base of its own name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.data.split import Inputs, Split
from methods.cost import price_only
from methods.hooks.batch_mixer import EmbeddingMixer, HiddenMixer
from methods.interface import FitContext
from methods.text.base import TextMethod, TextModel
from methods.text.batches import Documents, TokenBatch
from methods.text.cost import BASE_SIZE, ENCODERS, tokens_read, transformer
from methods.text.dropout import Dropout
from methods.text.encoded import encoded
from methods.text.network import After, TextNetwork
from methods.text.optimiser import Group
from methods.text.pretrained import PretrainedEncoder, Tokeniser, encoder_files
from methods.text.training import Examples, History


class EncoderStages(TextNetwork):
    """The first two stages by a pretrained encoder.

    Without one, batches hold hidden states already (:mod:`methods.text.encoded`).
    """

    encoder: PretrainedEncoder | None
    dropout: Dropout

    def set_encoder(self, encoder: PretrainedEncoder | None) -> None:
        """Use an encoder, or none."""
        self.encoder = encoder
        self.n_layers = encoder.depth if encoder is not None else 1

    def embed(self, batch: TokenBatch) -> Tensor:
        """Word vectors, or the hidden states that the batch holds."""
        return batch.ids if self.encoder is None else self.encoder.embed(batch.ids)

    def encode(
        self, embedded: Tensor, mask: Tensor, after: After | None = None
    ) -> tuple[Tensor, Tensor]:
        """Hidden states, thinned by dropout."""
        if self.encoder is not None:
            embedded, mask = self.encoder.encode(embedded, mask, after)
        return torch.as_tensor(self.dropout(embedded)), mask


class TransformerMethod(TextMethod):
    """A base whose encoder is the resource ``encoder``, trained or frozen.

    ``layers`` keeps the encoder's first layers alone; ``encoder_rate`` is the factor on the
    learning rate for the encoder's weights.
    """

    needs = frozenset({"texts"})
    package = "transformers"
    extra = "text"
    has_layers = True
    marks = 1

    encoder: str
    trainable: bool
    layers: int | None
    encoder_rate: float
    dropout: float

    @property
    def resources(self) -> frozenset[str]:
        """The encoder."""
        return frozenset({self.encoder})

    def documents(self, inputs: Inputs, resources: Mapping[str, Path]) -> Documents:
        """Word pieces of the texts."""
        tokeniser = Tokeniser(encoder_files(resources[self.encoder]))
        return tokenised(inputs, tokeniser, self.max_length)

    def examples(
        self, split: Split, labels: np.ndarray, context: FitContext, name: str
    ) -> Examples:
        """Word pieces or, where nothing changes them in training, their hidden states."""
        found = super().examples(split, labels, context, name)
        if not self._encodes_once(context):
            return found
        states = encoded(
            found.documents,
            self._load(context),
            folder=context.checkpoint,
            name=name,
            device=context.device,
            threads=context.threads,
            progress=context.progress,
        )
        return Examples(states, found.labels)

    def model(
        self,
        network: TextNetwork,
        labels: np.ndarray,
        train: Split,
        context: FitContext,
        history: History,
    ) -> TextModel:
        """The network with its encoder, and the tokeniser."""
        assert isinstance(network, EncoderStages)
        if network.encoder is None:
            network.set_encoder(self._load(context).to(context.device))
        return TransformerModel(
            network,
            labels,
            train.n_labels,
            self.max_length,
            device=context.device,
            threads=context.threads,
            notes=history.notes,
            history=history,
            tokeniser=Tokeniser(encoder_files(context.resources[self.encoder])),
        )

    @price_only
    def encoder_work(self, meta: Mapping[str, Any]) -> float:
        """Multiply-adds of the encoder on a document."""
        return transformer(tokens_read(meta, self.max_length), self.encoder, self.layers)

    @price_only
    def head_work(self, meta: Mapping[str, Any], labels: float) -> float:
        """Multiply-adds behind the encoder."""
        raise NotImplementedError(f"{self.name} has no law of cost")

    @price_only
    def work(self, meta: Mapping[str, Any], labels: float) -> float:
        """A frozen encoder runs once, a trained one in every epoch."""
        encoder = self.encoder_work(meta) if self.trainable else 0.0
        return encoder + self.head_work(meta, labels)

    @price_only
    def work_once(self, meta: Mapping[str, Any]) -> float:
        """The frozen encoder."""
        return 0.0 if self.trainable else self.encoder_work(meta)

    @price_only
    def parameters_mb(self, meta: Mapping[str, Any], n_labels: int) -> float:
        """The encoder beside what all have."""
        width, depth = ENCODERS.get(self.encoder, BASE_SIZE)
        encoder = (12 * depth * width**2 + 30_000 * width) * 4 / 2**20
        return encoder + super().parameters_mb(meta, n_labels)

    def _encodes_once(self, context: FitContext) -> bool:
        """Whether hidden states are the same in every epoch."""
        mixed = {EmbeddingMixer.kind, HiddenMixer.kind} & context.hooks.keys()
        return not self.trainable and not mixed

    def _load(self, context: FitContext) -> PretrainedEncoder:
        folder = encoder_files(context.resources[self.encoder])
        return PretrainedEncoder.load(folder, trainable=self.trainable, layers=self.layers)


class TransformerModel(TextModel):
    """A trained network with the tokeniser of its encoder."""

    def __init__(self, *args: Any, tokeniser: Tokeniser, **more: Any) -> None:
        super().__init__(*args, **more)
        self.tokeniser = tokeniser

    def documents(self, inputs: Inputs) -> Documents:
        """Word pieces of the texts."""
        return tokenised(inputs, self.tokeniser, self.max_length)

    def save(self, folder: Path) -> None:
        """The network, encoder included, and the tokeniser."""
        super().save(folder)
        self.tokeniser.save(folder / "tokeniser")

    @classmethod
    def load(cls, folder: Path) -> TransformerModel:
        """The model that :meth:`save` wrote, on the CPU."""
        facts = json.loads((folder / "model.json").read_text())
        network = torch.load(folder / "network.pt", map_location="cpu", weights_only=False)
        labels = np.load(folder / "labels.npy")
        return cls(network, labels, **facts, tokeniser=Tokeniser(folder / "tokeniser"))


def tokenised(inputs: Inputs, tokeniser: Tokeniser, max_length: int) -> Documents:
    """Word pieces with the encoder's marks."""
    assert inputs.texts is not None
    indptr, ids = tokeniser(inputs.texts, max_length)
    return Documents(indptr, ids, max_length, tokeniser.padding, tokeniser.padding)


def with_encoder_rate(network: EncoderStages, groups: Sequence[Group], rate: float) -> list[Group]:
    """The groups without the encoder's weights, and these with a rate of their own."""
    own = [] if network.encoder is None else list(network.encoder.parameters())
    encoders = {id(parameter) for parameter in own}
    found: list[Group] = [
        ([p for p in parameters if id(p) not in encoders], factor) for parameters, factor in groups
    ]
    trained = [p for p in own if p.requires_grad]
    return [*found, (trained, rate)] if trained else found
