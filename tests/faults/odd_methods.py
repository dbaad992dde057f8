"""Methods whose predictions or words are not what the protocol asks for."""

import numpy as np

from benchmarks.evaluation.topk import TopK
from methods.controls import ConstantModel, Popularity


class Altered(ConstantModel):
    """The same ranking for every document, after a function changed it."""

    def __init__(self, scores, change):
        super().__init__(scores)
        self.change = change

    def predict(self, inputs, k):
        return self.change(super().predict(inputs, k))


class Odd(Popularity):
    name = "odd"

    def __init__(self, how: str = "float"):
        self.how = how

    def fit_in(self, train, context):
        return Altered(train.label_counts(), CHANGES[self.how])


CHANGES = {
    "float": lambda top: TopK(top.indices.astype(float), top.scores),
    "object": lambda top: TopK(top.indices, top.scores.astype(object)),
    "narrow": lambda top: TopK(top.indices[:, :2], top.scores[:, :2]),
    "pair": lambda top: (top.indices, top.scores),
    "nothing": lambda top: None,
    "wide-types": lambda top: TopK(top.indices.astype(np.int64), top.scores.astype(np.float64)),
}


class Talks(Popularity):
    """Prints one line of the given length, then raises an error with such a message."""

    name = "talks"

    def __init__(self, printed: int = 0, message: int = 0):
        self.printed, self.message = printed, message

    def fit_in(self, train, context):
        for _ in range(self.printed // 2**20):
            print("x" * 2**20, end="", flush=True)
        print("\nthe last words", flush=True)
        raise ValueError("m" * self.message)
