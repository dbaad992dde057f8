"""Warming up compiles all that fit and predict run, so that no compiling is timed."""

import os
import subprocess
import sys

from benchmarks.data import load
from benchmarks.data.prepared import open_prepared, write
from methods.warm_up import tiny_like

# In a process of its own: what other tests have compiled would hide what a warm-up leaves out.
COUNT = """
import sys
from numba.core.dispatcher import Dispatcher
from benchmarks.data.prepared import open_prepared
from methods import get

def compiled():
    return {
        (kernel.py_func.__module__, kernel.py_func.__name__, signature)
        for name, module in list(sys.modules.items()) if name.startswith("methods.")
        for kernel in vars(module).values() if isinstance(kernel, Dispatcher)
        for signature in kernel.signatures
    }

train, test = open_prepared(sys.argv[1])
forest = {"n_trees": 2}
for base, params in [
    ("LinearSVC", {}), ("DiSMEC", {}), ("Parabel", {"max_leaf": 5}), ("Bonsai", {"n_children": 5}),
    ("FastXML", forest), ("PfastreXML", forest),
]:
    for variant in ["plain"] + (["PW", "RankNet+Taug"] if base in ("DiSMEC", "Bonsai") else []):
        method = get(base, variant, **params)
        method.warm_up(train)
        before = compiled()
        assert before, "the warm-up compiles something"
        method.fit(train).predict(test.inputs, 20)
        left = compiled() - before
        assert not left, f"{base} {variant}: {left}"
"""


def test_nothing_is_compiled_after_a_warm_up(tmp_path):
    train, test = load("tiny-bow")
    write(tmp_path / "data", train, test, train.meta)
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COUNT, str(tmp_path / "data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_few_documents_are_of_the_types_of_the_data(tmp_path):
    write(tmp_path / "data", *load("tiny-bow"), load("tiny-bow")[0].meta)
    for train in (load("tiny-bow")[0], open_prepared(tmp_path / "data")[0]):
        tiny = tiny_like(train)
        assert (tiny.label_counts() > 0).all()
        for a, b in ((tiny.inputs.bow, train.inputs.bow), (tiny.labels, train.labels)):
            for part in ("indptr", "indices", "data"):
                mine, theirs = getattr(a, part), getattr(b, part)
                assert mine.dtype == theirs.dtype
                assert mine.flags.writeable == theirs.flags.writeable


MISSES = """
import sys
from numba.core.dispatcher import Dispatcher
from benchmarks.data.prepared import open_prepared
from methods import get

train, test = open_prepared(sys.argv[1])
get("DiSMEC").fit(train).predict(test.inputs, 20)
kernels = [
    kernel for name, module in list(sys.modules.items()) if name.startswith("methods.")
    for kernel in vars(module).values() if isinstance(kernel, Dispatcher)
]
missed = {k.py_func.__name__: dict(k.stats.cache_misses) for k in kernels if k.stats.cache_misses}
assert any(kernel.stats.cache_hits for kernel in kernels)
assert not missed, missed
"""


def test_what_is_compiled_ahead_is_not_compiled_again(tmp_path, root):
    write(tmp_path / "data", *load("tiny-bow"), {"name": "tiny-bow"})
    for command in (["-m", "methods.warm_up", "DiSMEC"], ["-c", MISSES, str(tmp_path / "data")]):
        done = subprocess.run(
            [sys.executable, *command], cwd=root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
