"""A slow, plain reader of the XC format: the reference that the fast one is held against.

It follows the format's definition token by token with Python's own ``int`` and ``float``; it
shares no code with :mod:`benchmarks.data.xc`.
"""

from __future__ import annotations

import re

import numpy as np

INTEGER = re.compile(r"\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class BadError(Exception):
    """The text is not in XC format."""


def integer(token: str) -> int:
    if not INTEGER.fullmatch(token):
        raise BadError(token)
    return int(token)


def number(token: str) -> np.float32:
    if not NUMBER.fullmatch(token):
        raise BadError(token)
    with np.errstate(over="ignore", under="ignore"):
        value = np.float32(float(token))
    if not np.isfinite(value):
        raise BadError(token)
    return value


def read(content: bytes) -> tuple[int, int, list[list[int]], list[dict[int, np.float32]]]:
    """Features, labels, and each document's labels and features; BadError where it is none."""
    text = content.decode("latin-1")
    if not text.strip("\r\n"):
        raise BadError("empty")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    header = [t for t in re.split("[ \t]+", lines[0]) if t]
    sizes: tuple[int, int, int] | None = None
    if len(header) == 3 and all(INTEGER.fullmatch(t) for t in header):
        sizes = (int(header[0]), int(header[1]), int(header[2]))
        lines = lines[1:]
        while len(lines) > sizes[0] and lines[-1] == "":
            lines.pop()
        if len(lines) != sizes[0]:
            raise BadError("number of documents")
    elif "" in lines:
        raise BadError("empty line")
    labels: list[list[int]] = []
    features: list[dict[int, np.float32]] = []
    for line in lines:
        tokens = [t for t in re.split("[ \t]+", line) if t]
        own: set[int] = set()
        if tokens and line[0] not in " \t" and not re.match(r"\d+:", tokens[0], re.ASCII):
            own = {integer(t) for t in tokens.pop(0).split(",")}
        row: dict[int, np.float32] = {}
        for token in tokens:
            name, colon, value = token.partition(":")
            if not colon or integer(name) in row:
                raise BadError(token)
            row[integer(name)] = number(value)
        labels.append(sorted(own))
        features.append(row)
    all_labels = [i for own in labels for i in own]
    all_features = [i for row in features for i in row]
    n_features = sizes[1] if sizes else max(all_features, default=-1) + 1
    n_labels = sizes[2] if sizes else max(all_labels, default=-1) + 1
    if max(all_features, default=-1) >= min(n_features, 2**31):
        raise BadError("feature id")
    if max(all_labels, default=-1) >= min(n_labels, 2**31):
        raise BadError("label id")
    return n_features, n_labels, labels, features
