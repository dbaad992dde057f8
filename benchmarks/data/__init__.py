"""Datasets: fetched, checked, parsed, held open.

>>> from benchmarks.data import load, read_xc
>>> train, test = load("demo-bow")
"""

from benchmarks.data.xc import read_xc

__all__ = ["read_xc"]
