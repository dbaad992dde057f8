"""Methods whose predictions or words are not what the protocol asks for."""

import os

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


class FillsDisk(Popularity):
    """Writes to a device that is always full."""

    name = "fills-disk"

    def fit_in(self, train, context):
        with open("/dev/full", "w") as device:
            device.write("x")
        return super().fit_in(train, context)


class Wanders(Popularity):
    """Leaves the working folder; its hyper-parameters are arrays and an object."""

    name = "wanders"

    def __init__(self, short=(1, 2), about=object):
        self.short = np.array(short)
        self.long = np.zeros((1000, 5))
        self.about = about
        self.number = np.float32(0.5)

    def fit_in(self, train, context):
        os.chdir("/")
        return super().fit_in(train, context)


class Says(Popularity):
    """Raises an error whose text has line ends of every kind, and a bar."""

    name = "says"

    def fit_in(self, train, context):
        raise ValueError("first\nsecond\r\nthird\u2028fourth | fifth")


class Mute(Popularity):
    """Raises an error that fails to give its text."""

    name = "mute"

    def fit_in(self, train, context):
        class SilentError(Exception):
            def __str__(self):
                raise RuntimeError

        raise SilentError
