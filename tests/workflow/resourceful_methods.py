"""Methods of a user that name resources: prepared ones, and one that is nowhere."""

import json
from pathlib import Path

from benchmarks.data.vectors import open_vectors
from methods.controls import ConstantModel, Popularity


class UsesVectors(Popularity):
    name = "UsesVectors"
    resources = frozenset({"my-vectors", "my-encoder"})

    def fit(self, train, *, resources, **context):
        words, vectors = open_vectors(resources["my-vectors"])
        assert (words, vectors.shape) == (["dog", "cat"], (2, 3))
        width = json.loads((Path(resources["my-encoder"]) / "config.json").read_text())
        assert width == {"hidden_size": 8}
        return ConstantModel(train.label_counts())


class NeedsLost(Popularity):
    name = "NeedsLost"
    resources = frozenset({"lost-vectors"})
