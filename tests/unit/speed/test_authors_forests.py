"""The text formats of FastXML's authors and how their programs are asked, on a made-up program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.split import Inputs, Split
from benchmarks.speed._authors_forests import (
    AuthorsForest,
    find_program,
    read_matrix,
    write_matrix,
    write_splits,
)
from methods.trees.fastxml import FastXML, PfastreXML

# Trains by noting what it was asked, predicts the same scores for every document.
PROGRAM = f"""#!{sys.executable}
import json, sys
from pathlib import Path
files, options = sys.argv[1:], {{}}
while len(files) > 1 and files[-2].startswith("-"):
    options[files[-2]] = files[-1]
    files = files[:-2]
if Path(sys.argv[0]).name.endswith("train"):
    Path(files[-1], "asked").write_text(json.dumps([files, options]))
    print("training time: 0.002 hr")
else:
    rows = Path(files[0]).read_text().split()[0]
    Path(files[1]).write_text(f"{{rows}} 3\\n" + "1:0.5 2:0.75\\n" * int(rows))
    print("prediction time: 4 ms/point")
"""


def make_split(n: int) -> Split:
    rng = np.random.default_rng(n)
    X = sparse.random(n, 6, density=0.4, format="csr", dtype=np.float32, random_state=rng)
    Y = sparse.random(n, 3, density=0.4, format="csr", dtype=np.float32, random_state=rng)
    Y.data[:] = 1
    return Split(Inputs(bow=X), Y)


def test_a_matrix_comes_back_as_it_was_written(tmp_path: Path) -> None:
    dense = np.array([[0, 1 / 3, 0], [0, 0, 0], [1e-7, 0, -2]], np.float32)
    write_matrix(tmp_path / "m.txt", sparse.csr_matrix(dense))
    assert (tmp_path / "m.txt").read_text() == "3 3\n1:0.333333343\n\n0:1.00000001e-07 2:-2\n"
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.txt").toarray(), dense)
    (tmp_path / "short.txt").write_text("3 3\n\n1:2\n")
    with pytest.raises(ValueError, match="2 lines for 3 rows"):
        read_matrix(tmp_path / "short.txt")


@pytest.mark.parametrize("method", [FastXML(n_trees=4), PfastreXML(n_trees=4, C=2.0)])
def test_programs_are_asked_for_our_settings(method: FastXML, tmp_path: Path) -> None:
    stem = {"FastXML": "fastXML", "PfastreXML": "PfastreXML"}[method.name]
    binaries = tmp_path / method.name
    binaries.mkdir()
    for task in ("train", "predict"):
        (binaries / f"{stem}_{task}").write_text(PROGRAM)
        (binaries / f"{stem}_{task}").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    train, test = make_split(9), make_split(5)
    write_splits(work, train, test)
    (fit, predict), top = AuthorsForest(method, tmp_path, work, threads=2, k=3).run(3, test)
    assert fit == pytest.approx(0.002 * 3600 / 2)
    assert predict == pytest.approx(5 * 0.004 / 2)
    assert top.indices.tolist() == [[2, 1, -1]] * 5
    files, options = json.loads((work / f"model_{method.name}/asked").read_text())
    expected = {"-T": "2", "-s": "12", "-t": "4", "-b": "1.0", "-m": "10", "-l": "100", "-q": "1"}
    assert expected.items() <= options.items()
    assert options["-c"] == str(method.C)
    assert [Path(name).suffix for name in files[:-1]] == [".txt"] * (len(files) - 1)
    if isinstance(method, PfastreXML):
        assert (options["-g"], options["-a"]) == ("30.0", "0.8")
        weights = np.loadtxt(work / files[2])
        np.testing.assert_allclose(weights, train.inverse_propensity(), rtol=1e-6)


def test_a_program_that_is_missing_or_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="fastXML_train"):
        find_program(tmp_path, "FastXML", "train")
    for task in ("train", "predict"):
        path = tmp_path / f"fastXML_{task}"
        path.write_text(f"#!{sys.executable}\nraise SystemExit('no memory')\n")
        path.chmod(0o755)
    with pytest.raises(RuntimeError, match="fastXML_train ended with 1: no memory"):
        AuthorsForest(FastXML(), tmp_path, tmp_path, threads=1, k=5).run(0, make_split(5))
