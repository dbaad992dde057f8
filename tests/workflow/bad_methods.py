"""Five ways for a method to misbehave; each must end as a cell with a reason."""

import ctypes
import subprocess
import sys
import time

from methods.controls import Popularity

MARKER = "tailtables-test-leftover"


class Raises(Popularity):
    name = "raises"

    def fit_in(self, train, context):
        raise ValueError("the matrix is singular")


class Segfaults(Popularity):
    name = "segfaults"

    def fit_in(self, train, context):
        ctypes.string_at(0)


class Sleeps(Popularity):
    name = "sleeps"

    def fit_in(self, train, context):
        time.sleep(600)


class Allocates(Popularity):
    name = "allocates"

    def fit_in(self, train, context):
        hoard = []
        while True:
            hoard.append(b"x" * (20 * 2**20))
            time.sleep(0.01)


class LeavesChild(Popularity):
    name = "leaves-child"

    def fit_in(self, train, context):
        sleeper = "import time; time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", sleeper, MARKER], start_new_session=True)
        return super().fit_in(train, context)


class Slow(Popularity):
    """Behaves, and takes its time: something to be killed in."""

    name = "slow"

    def fit_in(self, train, context):
        time.sleep(3)
        return super().fit_in(train, context)
