"""Things that a configuration may name and that must not be called; what was called is recorded."""

CALLS = []


def function(*arguments, **named):
    CALLS.append(("function", arguments, named))


class Unrelated:
    def __init__(self, **named):
        CALLS.append(("class", (), named))


class Meta(type):
    def __call__(cls, *arguments, **named):
        CALLS.append(("metaclass", arguments, named))


class Odd(metaclass=Meta):
    pass
