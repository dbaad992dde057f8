"""Readers of formats that a single dataset has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.data.cards import Part
from benchmarks.data.content import Content, Parts, bow, find, matrix, some_paths
from benchmarks.data.errors import DataError, FormatError
from benchmarks.data.matrices import load_array, positives
from benchmarks.data.split import Tokens
from benchmarks.data.streams import text_lines
from benchmarks.data.xc import read_xc


def read_token_arrays(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    """Zero-padded word ids and dense labels in ``.npy`` (LSAN's AAPD).

    Ids index the rows of a text file of word vectors; 0 is padding.
    """
    vocabulary = ["<PAD>", "<UNK>"]
    words = text_lines(find(root, options["vocabulary"]))
    vocabulary += [line.split(" ", 1)[0] for line in words if line.strip()]
    splits = {}
    for name, part in parts.items():
        if not isinstance(part, dict) or not {"tokens", "labels"} <= set(part):
            raise DataError(f"{name}: format token-arrays needs the keys tokens and labels")
        padded, dense = (load_array(find(root, part[key])) for key in ("tokens", "labels"))
        real = padded > 0
        indptr = np.concatenate([[0], np.cumsum(real.sum(axis=1))]).astype(np.int64)
        ids = padded[real].astype(np.int32) + 1  # word i moves behind <PAD> and <UNK>
        if len(ids) and padded.max() + 1 >= len(vocabulary):
            raise DataError(f"{name}: word id {padded.max()} is not in the vocabulary")
        labels = positives(sparse.csr_matrix(dense, dtype=np.float32), find(root, part["labels"]))
        splits[name] = Parts(labels, tokens=Tokens(indptr, ids, vocabulary))
    return Content(splits)


def read_rcv1(parts: Mapping[str, Part], options: Mapping[str, Any], root: Path) -> Content:
    """LYRL2004 vectors (``document  feature:value ...``) and topics (``topic document 1``)."""
    topics: dict[int, list[str]] = {}
    path = find(root, options["topics"])
    for number, line in enumerate(text_lines(path), 1):
        fields = line.split()
        if len(fields) != 3 or not fields[1].isdigit():
            raise FormatError(path, number, f"not 'topic document 1': {line!r}", "Fetch it again.")
        topics.setdefault(int(fields[1]), []).append(fields[0])
    names = sorted({topic for own in topics.values() for topic in own})
    column = {name: i for i, name in enumerate(names)}
    splits = {}
    for name, part in parts.items():
        # The vectors are in LIBSVM's format with the document's number for a label.
        pieces = [read_xc(find(root, file), first_feature=1) for file in some_paths(name, part)]
        documents = np.concatenate([piece.labels.indices for piece in pieces])
        width = max(bow(piece.inputs.bow).shape[1] for piece in pieces)
        bows = [bow(piece.inputs.bow) for piece in pieces]
        for part_bow in bows:
            part_bow.resize((part_bow.shape[0], width))
        rows = [[column[t] for t in topics.get(int(d), [])] for d in documents]
        splits[name] = Parts(matrix(rows, len(names)), bow=sparse.vstack(bows, format="csr"))
    width = max(bow(p.bow).shape[1] for p in splits.values())
    for split in splits.values():
        bow(split.bow).resize((split.labels.shape[0], width))
    return Content(splits, names)
