"""How the work of one-vs-rest is counted, and what the machine is held to allow."""

from __future__ import annotations

import argparse
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from benchmarks.speed import bounds
from benchmarks.speed._corpus import SHAPES
from methods.linear import layout
from methods.linear.solver import Solution


def solution(rounds, products, visited):
    report = np.array([[1.0, 0.0, rounds, products, 5.0, visited]])
    return Solution(np.array([0]), sparse.csr_matrix((1, 3), dtype=np.float32), report)


def test_bytes_and_operations_follow_from_the_solvers_counts():
    done = bounds.work(solution(3, 10, 700), n=100, columns=50, nonzeros=2000, slots=8)
    assert done["Mflop"] == pytest.approx(2e-6 * (3 * 2000 + 700))
    assert done["MB of weights"] == pytest.approx(4e-6 * 3 * 2000)
    assert done["MB of X"] == pytest.approx(1e-6 * (3 * 2000 * 8 / 8 + 700 * 12))
    parts = ("MB of X", "MB of weights", "MB of vectors")
    assert done["MB"] == pytest.approx(sum(done[part] for part in parts))


def test_a_label_that_shares_its_pass_with_more_others_moves_fewer_bytes():
    few = bounds.work(solution(3, 10, 700), n=100, columns=50, nonzeros=2000, slots=1)
    many = bounds.work(solution(3, 10, 700), n=100, columns=50, nonzeros=2000, slots=32)
    assert many["MB of X"] < few["MB of X"]
    assert many["MB of weights"] == few["MB of weights"]


def test_the_machines_rates_are_of_the_right_size(monkeypatch):
    monkeypatch.setattr(bounds, "TRIAD", 1 << 18)
    monkeypatch.setattr(bounds, "PRODUCT", 256)
    assert 1e7 < bounds.bandwidth(2) < 1e13
    assert 1e7 < bounds.arithmetic(2) < 1e14


def test_the_peak_of_a_process_is_not_that_of_its_parent():
    held = np.ones(40_000_000)  # 305 MB
    code = "from benchmarks.speed._memory import peak_mb; print(peak_mb())"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert 5 < float(done.stdout) < held.nbytes / 2**20


def test_both_ways_of_the_solver_are_timed_on_the_same_labels(monkeypatch):
    small = SHAPES["Amazon-670K"].scaled(0.002, 0.002, 0.002)
    monkeypatch.setattr(bounds, "SHAPES", {small.name: small})
    for name, value in {"HOT_COLUMNS": 64, "CANDIDATES": 50}.items():
        monkeypatch.setattr(layout, name, value)
    row = bounds.ways_row(small.name, argparse.Namespace(labels=20, threads=1))
    assert 20 <= row["labels"] <= 30
    assert row["rounds, candidates"] != row["rounds, all of X"]
    assert row["times as fast"] > 0
    tol = bounds.DiSMEC().tol
    assert max(row["largest gap, candidates"], row["largest gap, all of X"]) <= tol
