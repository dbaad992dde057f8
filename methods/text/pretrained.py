"""Pretrained transformers as encoders: any that transformers can read from a folder.

Nothing is ever downloaded here. A method names the card of an encoder (``benchmarks/resources``,
or one of the user's own with ``encoder: {folder: ...}``), preparation finds its folder, and both
weights and tokeniser are read from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from methods.text.dropout import replace_dropout

CHARACTERS_PER_PIECE = 10
"""Read of a text at first per word piece that is wanted; tokenisers read all they are given, and
documents are far longer than what a model is shown of them."""
TOKENISER_FILES = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model")

After = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Called after each layer with its number (from 1), hidden states and mask; gives both anew."""


def encoder_files(resource: Path) -> Path:
    """The folder with an encoder's files: the resource itself, or what its meta.json names."""
    meta = Path(resource) / "meta.json"
    if not meta.is_file():
        return Path(resource)
    return Path(json.loads(meta.read_text(encoding="utf-8")).get("folder") or resource)


def opening(text: str, characters: int) -> str:
    """The first words of a text, up to so many characters; all of it if no space ends them."""
    if len(text) <= characters:
        return text
    end = text.rfind(" ", 0, characters)
    return text[:end] if end > 0 else text


class Tokeniser:
    """A transformer's own tokeniser, read from its folder."""

    def __init__(self, folder: Path) -> None:
        # Imported when called: it takes seconds that only users of transformers need to pay.
        from transformers import AutoTokenizer

        # A name that is no folder would be taken for a model of the hub.
        if not any((Path(folder) / name).is_file() for name in TOKENISER_FILES):
            raise FileNotFoundError(f"{folder} holds no tokeniser: none of {TOKENISER_FILES}")
        self._tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)

    @property
    def padding(self) -> int:
        """The id that fills up shorter documents; the attention mask hides it."""
        return int(self._tokenizer.pad_token_id or 0)

    def __call__(self, texts: Sequence[str], max_length: int) -> tuple[np.ndarray, np.ndarray]:
        """Ragged rows of ids with the encoder's marks: indptr int64[n + 1] and ids int32."""
        rows: list[list[int]] = []
        for start in range(0, len(texts), 1024):  # bounds the memory of the encodings
            some = list(texts[start : start + 1024])
            openings = [opening(text, CHARACTERS_PER_PIECE * max_length) for text in some]
            found = self._pieces(openings, max_length)
            # Words are cut into pieces one by one, so what fills a row does not depend on the rest.
            short = [
                i
                for i, row in enumerate(found)
                if len(row) < max_length and len(openings[i]) < len(some[i])
            ]
            for i, row in zip(
                short, self._pieces([some[i] for i in short], max_length), strict=True
            ):
                found[i] = row
            rows += found
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        ids = np.fromiter((i for row in rows for i in row), np.int32, int(lengths.sum()))
        return np.concatenate([[0], np.cumsum(lengths)]), ids

    def _pieces(self, texts: list[str], max_length: int) -> list[list[int]]:
        if not texts:
            return []
        found = self._tokenizer(texts, truncation=True, max_length=max_length)
        return list(found["input_ids"])

    def save(self, folder: Path) -> None:
        """Write the tokeniser's files."""
        self._tokenizer.save_pretrained(folder)


class PretrainedEncoder(nn.Module):
    """A transformer in two stages: word vectors of ids, and hidden states of word vectors.

    ``layers`` keeps only the first ones, which costs accuracy and saves time in proportion.
    A frozen encoder computes no gradients and drops nothing out.
    """

    def __init__(self, model: nn.Module, *, trainable: bool, layers: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.trainable = trainable
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # type: ignore[assignment]  # nothing here uses its summary
        if layers is not None:
            _shorten(model, layers)
        self.requires_grad_(trainable)
        self.train(self.training)

    @classmethod
    def load(cls, folder: Path, *, trainable: bool, layers: int | None = None) -> PretrainedEncoder:
        """The encoder whose configuration and weights are in a folder."""
        from transformers import AutoConfig, AutoModel
        from transformers.utils import logging

        logging.disable_progress_bar()
        where = _existing(folder)
        config = AutoConfig.from_pretrained(where, local_files_only=True)
        # Attention weights are not dropped out: transformers draws for that from one generator of
        # the process, whose order no seed fixes where parts of a batch run side by side.
        if hasattr(config, "attention_probs_dropout_prob"):
            config.attention_probs_dropout_prob = 0.0
        model = AutoModel.from_pretrained(
            where, config=config, local_files_only=True, dtype=torch.float32
        )
        replace_dropout(model)
        return cls(model, trainable=trainable, layers=layers)

    @property
    def width(self) -> int:
        """The size of a hidden state."""
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def depth(self) -> int:
        """The number of layers."""
        return len(_layers(self.model))

    @property
    def _is_xlnet(self) -> bool:
        return bool(self.model.config.model_type == "xlnet")  # type: ignore[union-attr]

    def train(self, mode: bool = True) -> PretrainedEncoder:
        """Training mode, which a frozen encoder does not enter."""
        super().train(mode)
        if not self.trainable:
            self.model.eval()
        return self

    def embed(self, ids: Tensor) -> Tensor:
        """Word vectors float[B, T, d], before positions are added."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.trainable):
            vectors: Tensor = self.model.get_input_embeddings()(ids)  # type: ignore[operator]
        return vectors

    def encode(
        self, vectors: Tensor, mask: Tensor, after: After | None = None
    ) -> tuple[Tensor, Tensor]:
        """Hidden states float[B, T, d] of the last layer and their mask.

        ``after`` may change the states that a layer passes on. A mask that it gives back is that
        of the result; within the encoder, attention goes on by the mask that was given.
        """
        learns = self.trainable or vectors.requires_grad
        with torch.set_grad_enabled(torch.is_grad_enabled() and learns):
            if after is None:
                found = self.model(inputs_embeds=vectors, attention_mask=mask.to(vectors.dtype))
            else:
                with self._changed(after, mask) as masks:
                    found = self.model(inputs_embeds=vectors, attention_mask=mask.to(vectors.dtype))
                mask = masks[0]
        return found.last_hidden_state, mask

    def save(self, folder: Path) -> None:
        """Write configuration and weights in the form that :meth:`load` reads."""
        self.model.save_pretrained(folder)  # type: ignore[operator]

    @contextmanager
    def _changed(self, after: After, mask: Tensor) -> Iterator[list[Tensor]]:
        """In this block ``after`` acts on every layer; the mask it left is in the list."""
        masks = [mask]

        def hook_of(number: int) -> Callable[..., Any]:
            def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
                states = output[0] if isinstance(output, tuple) else output
                if self._is_xlnet:  # which keeps documents in the second dimension
                    states, masks[0] = after(number, states.transpose(0, 1), masks[0])
                    states = states.transpose(0, 1)
                else:
                    states, masks[0] = after(number, states, masks[0])
                return (states, *output[1:]) if isinstance(output, tuple) else states

            return hook

        layers = enumerate(_layers(self.model), 1)
        handles = [layer.register_forward_hook(hook_of(number)) for number, layer in layers]
        try:
            yield masks
        finally:
            for handle in handles:
                handle.remove()


def _layers(model: nn.Module) -> nn.ModuleList:
    """The transformer's layers, first to last."""
    for owner in ("encoder", "transformer", ""):
        holder = getattr(model, owner, None) if owner else model
        for name in ("layer", "layers"):
            found = getattr(holder, name, None)
            if isinstance(found, nn.ModuleList):
                return found
    raise ValueError(f"{type(model).__name__} has no list of layers that is known here")


def _shorten(model: nn.Module, layers: int) -> None:
    known = _layers(model)
    if not 1 <= layers <= len(known):
        raise ValueError(f"the encoder has {len(known)} layers; {layers} cannot be kept")
    del known[layers:]
    model.config.num_hidden_layers = layers  # type: ignore[union-attr]


def _existing(folder: Path) -> str:
    # A name that is no folder would be taken for a model of the hub.
    if not (Path(folder) / "config.json").is_file():
        raise FileNotFoundError(f"{folder} holds no encoder: it has no config.json")
    return str(folder)
