"""Compiling before the clock of ``fit`` starts: a fit on a few documents of the measured types.

``python -m methods.warm_up [BASE ...]`` compiles ahead of use, as ``make`` does at the install:
compiled code is kept beside the sources until they change.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from methods.interface import Method

DIGEST_EXEMPT: dict[str, str] = {}
"""What is compiled here decides no result, so the module is left out of the digests of cells."""
DOCUMENTS, FEATURES, LABELS = 64, 32, 12


def fit_tiny(method: Method, train: Split) -> None:
    """Fit and predict on made-up documents whose arrays are of the types of ``train``'s."""
    tiny = tiny_like(train)
    method.fit(tiny).predict(tiny.inputs, 5)


def tiny_like(train: Split) -> Split:
    """A few random documents: bags of words and labels with the dtypes of ``train``'s.

    Arrays are as read-only as in ``train``, or the compiler would take them for another type and
    compile again when it counts.
    """
    rng = np.random.default_rng(0)
    assert train.inputs.bow is not None
    words = rng.random((DOCUMENTS, FEATURES)) * (rng.random((DOCUMENTS, FEATURES)) < 0.3)
    carried = rng.random((DOCUMENTS, LABELS)) < 0.15
    carried[np.arange(DOCUMENTS), np.arange(DOCUMENTS) % LABELS] = True
    inputs = Inputs(bow=_like(train.inputs.bow, words))
    return Split(inputs, _like(train.labels, carried), train.meta)


def _like(model: sparse.csr_matrix, dense: np.ndarray) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(dense, dtype=model.dtype)
    for part in ("indptr", "indices", "data"):
        old = getattr(model, part)
        array = getattr(matrix, part).astype(old.dtype)
        array.setflags(write=old.flags.writeable)
        setattr(matrix, part, array)
    return matrix


COMPILED = ("DiSMEC", "Parabel", "Bonsai", "FastXML", "PfastreXML")
"""The bases on bags of words whose loops are compiled."""


def compile_ahead(names: list[str]) -> None:
    """Compile what the bases run on prepared data, and say how long each took.

    The documents are opened from files, as in a run: for arrays that may be written to the
    compiler would make other code.
    """
    from benchmarks.data.prepare import ensure
    from benchmarks.data.prepared import open_prepared
    from methods.registry import get

    with tempfile.TemporaryDirectory() as folder:
        train, _ = open_prepared(ensure("tiny-bow", Path(folder)))
        for name in names:
            start = time.perf_counter()
            get(name).warm_up(train)
            print(f"{name}: compiled in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    compile_ahead(sys.argv[1:] or list(COMPILED))
