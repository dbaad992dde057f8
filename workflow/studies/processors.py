"""What another processor changes: ``python -m workflow.studies.processors``.

Fits cells of the demo three times in fresh processes: compiled for this processor, for one with
AVX2 and FMA alone (Haswell), and for any x86-64 one (SSE2, no FMA), with NumPy, OpenBLAS and
PyTorch kept from newer instructions too. Prints, per cell, against the first: test documents whose
first five labels differ, the largest difference of a score among these, and of a metric, in points.
Writes the same as CSV. ``docs/trust.md`` quotes it, and ``results/reference/tolerances.csv``
follows from it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.data import load
from benchmarks.evaluation.metrics import score
from benchmarks.records.cell import PLAIN, Cell
from methods import get
from methods.interface import DivergedError
from workflow.config import derive_seed

CELLS = (
    *(f"demo-bow/DiSMEC/{v}" for v in (PLAIN, "PW", "PW-cb", "cb", "PW-cost", "unbiased")),
    *("demo-bow/Parabel/plain", "demo-bow/Bonsai/plain", "demo-bow/Bonsai/PW"),
)
AVX2 = "cmov mmx sse sse2 sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 fma bmi bmi2 lzcnt movbe f16c"
AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
PROCESSORS: dict[str, dict[str, str]] = {
    "this one": {},
    "haswell": {
        "NUMBA_CPU_NAME": "haswell",
        # Without its features numba keeps those of the processor at hand, and compares nothing.
        "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in AVX2.split()),
        "NPY_DISABLE_CPU_FEATURES": AVX512,
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
    },
    "any x86-64": {
        "NUMBA_CPU_NAME": "generic",
        "NPY_DISABLE_CPU_FEATURES": f"AVX2 FMA3 {AVX512}",
        "OPENBLAS_CORETYPE": "Sandybridge",
        "ATEN_CPU_CAPABILITY": "default",
    },
}
SHOWN = 5


def fit_all(cells: Sequence[str], folder: Path) -> None:
    """Fit cells in this process, and leave predictions and metrics of each in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in cells:
        dataset, base, variant = name.split("/")
        train, test = load(dataset)
        method = get(base, variant=None if variant == PLAIN else variant)
        (folder / _file(name)).unlink(missing_ok=True)  # of an earlier start
        try:
            model = method.fit(train, seed=derive_seed(Cell(dataset, base, variant, 0)))
        except DivergedError:
            continue  # it has no values on any processor
        top = model.predict(test.inputs, k=SHOWN)
        found = score(top, test.labels, train.labels)
        np.savez(
            folder / _file(name),
            indices=top.indices,
            scores=top.scores,
            values=list(found.values()),
            names=list(found),
        )


def compare(cells: Sequence[str], folders: dict[str, Path]) -> pd.DataFrame:
    """A row per cell and processor but the first, which is what the others are compared with."""
    first, *others = folders
    rows = []
    for name in cells:
        files = {processor: folder / _file(name) for processor, folder in folders.items()}
        for processor in others:
            row: dict[str, object] = {"cell": name, "processor": processor}
            if not files[first].exists() or not files[processor].exists():
                both = files[first].exists() == files[processor].exists()
                rows.append(row | {"diverged": "both" if both else "one"})
                continue
            with np.load(files[first]) as a, np.load(files[processor]) as b:
                moved = np.abs(a["values"] - b["values"])
                gaps = np.abs(_finite(a["scores"]) - _finite(b["scores"]))
                row |= {
                    "documents": int((a["indices"] != b["indices"]).any(axis=1).sum()),
                    "score": float(gaps.max()),
                    "points": float(moved.max()),
                    "metric": str(a["names"][moved.argmax()]) if moved.max() > 0 else "",
                }
            rows.append(row)
    columns = ["cell", "processor", "documents", "score", "points", "metric", "diverged"]
    return pd.DataFrame(rows).reindex(columns=columns)


def main(argv: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.studies.processors", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--cells", nargs="+", default=CELLS, metavar="dataset/base/variant")
    parser.add_argument("--folder", type=Path, default=Path("build/processors"))
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("results/reference/processors.csv"))
    given = parser.parse_args(argv)
    if given.fit is not None:
        fit_all(given.cells, given.fit)
        return 0
    folders = {name: given.folder / name.replace(" ", "-") for name in PROCESSORS}
    for name, settings in PROCESSORS.items():
        cache = str((folders[name] / "compiled").resolve())
        environment = {**os.environ, **settings, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "workflow.studies.processors", "--fit", folders[name]]
        subprocess.run([*command, "--cells", *given.cells], env=environment, check=True)
    found = compare(given.cells, folders)
    write_csv(given.output, found)
    print(found.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}"))
    return 0


def _finite(scores: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(scores), scores, 0.0)  # padding has no score


def _file(cell: str) -> str:
    return f"{cell.replace('/', '__')}.npz"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
