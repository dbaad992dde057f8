"""The fitted embedding model: exact blocked search for the best labels, or an index of faiss."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba import njit
from scipy import sparse

from benchmarks.common.atomic import write_json
from benchmarks.data.split import Inputs
from benchmarks.evaluation.topk import TopK
from methods._kernels.topk import best_of, reordered
from methods.embedding.network import Network
from methods.embedding.training import threads_for
from methods.interface import Model
from methods.linear.model import as_unit_rows

BLOCK = 256
"""Documents scored at a time. The last block is filled up: every product has the same shape, so
that a document's scores do not depend on how many others are asked for."""
LABEL_BLOCK = 65536
LINKS = 32
"""Neighbours of a label in the graph of faiss."""
CANDIDATES = 4
"""Labels kept while the graph is searched, per label asked for; at least ``LINKS``."""
RECALL_DOCUMENTS = 1000


class EmbeddingModel(Model):
    """A network over the labels that occur in train; the others are never predicted.

    ``search`` is ``exact``, or ``faiss`` for a graph of faiss-cpu (hierarchical navigable small
    world), whose recall against the exact answer is measured and noted.
    """

    def __init__(
        self,
        network: Network,
        occurring: np.ndarray,
        *,
        unit_rows: bool = True,
        search: str = "exact",
        threads: int = 1,
        history: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.network = network
        self.occurring = occurring
        self.unit_rows = unit_rows
        self.search = search
        self.threads = threads
        self.fit_history = dict(history or {})
        self.notes: list[str] = []
        """With faiss, the recall of the last prediction."""
        self._faiss: Any = None

    def predict(self, inputs: Inputs, k: int) -> TopK:
        """The k labels of the largest inner products, ties to the lower label."""
        if inputs.bow is None:
            raise ValueError("the model predicts from a bag of words; the inputs have none")
        X = as_unit_rows(inputs.bow) if self.unit_rows else inputs.bow.astype(np.float32)
        features = len(self.network.words.vectors)
        if X.shape[1] != features:
            raise ValueError(f"the model has {features} features, the documents have {X.shape[1]}")
        with threads_for(self.threads), torch.no_grad():
            if self.search == "exact":
                return self._exact(X, k)
            top = self._searched(X, k)
            self._note_recall(X, top)
            return top

    def label_norms(self) -> np.ndarray | None:
        """Lengths of the label embeddings; None where they are of length 1 by construction."""
        if self.network.unit_labels:
            return None
        norms = np.full(len(self.network.labels), np.nan, np.float32)
        norms[self.occurring] = np.linalg.norm(self.network.labels[self.occurring], axis=1)
        return norms

    def best_labels(self, X: sparse.csr_matrix) -> np.ndarray:
        """The best label of each document, int64[n], for rows prepared as in training."""
        with torch.no_grad():
            return self._exact(X, 1).indices[:, 0].astype(np.int64)

    def _label_embeddings(self) -> torch.Tensor:
        return torch.from_numpy(self.network.labels[self.occurring]) * self.network.lengths[2]

    def _blocks(self, X: sparse.csr_matrix) -> Iterator[tuple[int, torch.Tensor]]:
        for first in range(0, X.shape[0], BLOCK):
            documents = self.network.embed(X[first : first + BLOCK])
            yield first, documents

    def _exact(self, X: sparse.csr_matrix, k: int) -> TopK:
        labels = self._label_embeddings()
        top = TopK.empty(X.shape[0], k)
        full = torch.zeros(BLOCK, labels.shape[1])
        for first, documents in self._blocks(X):
            n = len(documents)
            full[:n] = documents
            for start in range(0, len(labels), LABEL_BLOCK):
                scores = (full @ labels[start : start + LABEL_BLOCK].T)[:n].numpy()
                names = self.occurring[start : start + LABEL_BLOCK].astype(np.int32)
                found = TopK.empty(n, k)
                _best_of_rows(scores, names, found.indices, found.scores)
                here = slice(first, first + n)
                if start:
                    found = reordered(
                        np.hstack([top.indices[here], found.indices]),
                        np.hstack([top.scores[here], found.scores]),
                        k,
                    )
                top.indices[here], top.scores[here] = found.indices, found.scores
        return top

    def _searched(self, X: sparse.csr_matrix, k: int) -> TopK:
        import faiss

        if self._faiss is None:
            labels = self._label_embeddings().numpy()
            faiss.omp_set_num_threads(1)  # the graph depends on the order in which labels enter
            self._faiss = faiss.IndexHNSWFlat(labels.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
            self._faiss.add(labels)
        self._faiss.hnsw.efSearch = max(LINKS, CANDIDATES * k)
        top = TopK.empty(X.shape[0], k)
        names = np.append(self.occurring, -1).astype(np.int32)
        for first, documents in self._blocks(X):
            scores, places = self._faiss.search(documents.numpy(), k)
            found = reordered(names[places], scores, k)
            here = slice(first, first + len(documents))
            top.indices[here], top.scores[here] = found.indices, found.scores
        return top

    def _note_recall(self, X: sparse.csr_matrix, top: TopK) -> None:
        """Say how many of the exact answer's labels the index found, on the first documents."""
        n, k = min(RECALL_DOCUMENTS, len(top)), min(top.k, len(self.occurring))
        exact = self._exact(X[:n], k)
        found = [
            np.isin(mine, theirs[theirs >= 0]).mean()
            for mine, theirs in zip(exact.indices, top.indices[:n], strict=True)
        ]
        share = 100.0 * float(np.mean(found)) if found else 100.0
        self.notes = [
            f"labels searched by faiss: {share:.2f} % of the exact {k} best found, on {n} documents"
        ]

    def save(self, folder: Path) -> None:
        """Write the arrays and ``model.json``."""
        for name, array in self.network.arrays().items():
            np.save(folder / f"{name}.npy", array)
        np.save(folder / "occurring.npy", self.occurring)
        facts = {
            "flags": self.network.flags(),
            "unit_rows": self.unit_rows,
            "search": self.search,
            "history": {name: list(values) for name, values in self.fit_history.items()},
        }
        write_json(folder / "model.json", facts)

    @classmethod
    def load(cls, folder: Path) -> EmbeddingModel:
        """The model that :meth:`save` wrote into the folder."""
        facts = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
        return cls(
            Network.from_arrays(arrays, facts["flags"]),
            arrays["occurring"],
            unit_rows=facts["unit_rows"],
            search=facts["search"],
            history=facts["history"],
        )


@njit(cache=True, nogil=True)
def _best_of_rows(scores, names, indices, values):  # type: ignore[no-untyped-def]
    """The best columns of each row, by the names of the columns, which rise."""
    columns = np.arange(scores.shape[1]).astype(np.int32)
    for i in range(scores.shape[0]):
        best_of(scores[i], columns, indices[i], values[i])
        for j in range(indices.shape[1]):
            if indices[i, j] >= 0:
                indices[i, j] = names[indices[i, j]]
