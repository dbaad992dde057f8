"""A made-up folder of results, in the shape that a run leaves: to build and test the report on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.data.prepared import write_meta
from benchmarks.evaluation.bins import DECILES, ONCE, PARTS
from benchmarks.evaluation.conventions import CONVENTIONS
from benchmarks.evaluation.declarations import SUMMARY_NAMES
from benchmarks.papers.artefacts import all_artefacts
from benchmarks.papers.audit.page import audit
from benchmarks.papers.compare import compare
from benchmarks.papers.spec import load_papers
from benchmarks.records.bins import COLUMNS as BIN_COLUMNS
from benchmarks.records.cell import KEY, PLAIN, RECORD, Cell
from benchmarks.records.cells import CELL_COLUMNS, write_cells, write_runs
from benchmarks.records.files import write_record
from benchmarks.records.intervals import COLUMNS as INTERVAL_COLUMNS

DATASETS = ("EURLex-4K", "Wiki10-31K", "AmazonCat-13K", "Amazon-670K")
BASES = ("DiSMEC", "Parabel", "Bonsai", "FastXML", "PfastreXML")
VARIANTS = (PLAIN, "PW", "PW-cb", "RankNet", "RankNet+Taug")
METRICS = [f"{metric}@{k}" for metric in ("P", "R", "nDCG", "PSP", "PSnDCG") for k in (1, 3, 5)]
BINS = (*PARTS, *DECILES, ONCE)
SCRIPT = "<script>document.title='overrun'</script>"


def write_results(folder: Path, seeds: int = 2, labels: int = 4000) -> list[Cell]:
    """Write ``results`` and ``figures`` below a folder: 4 x 5 x 5 cells per seed; the cells."""
    rng = np.random.default_rng(0)
    cells = [
        Cell(dataset, base, variant, seed)
        for dataset in DATASETS
        for base in BASES
        for variant in VARIANTS
        for seed in range(seeds)
    ]
    results = folder / "results"
    frame = pd.concat([_cells(cell, rng) for cell in cells], ignore_index=True)
    write_cells(frame, results / "cells.csv")
    write_csv(results / "intervals.csv", pd.concat([_intervals(c, rng) for c in cells]))
    write_csv(results / "bins.csv", pd.concat([_bins(c, rng) for c in cells]))
    write_runs(pd.DataFrame([_run(cell) for cell in cells]), results / "runs.csv")
    for cell in cells:
        path = cell.file(RECORD, results)
        path.parent.mkdir(parents=True)
        write_record(path.parent, _record(cell))
    for dataset in DATASETS:
        write_csv(results / f"labels/{dataset}.csv", _labels(rng, labels))
        data = results / "data" / dataset
        data.mkdir(parents=True)
        write_meta(data, {"name": dataset, "unavailable": "made up"})
    write_csv(results / "audit.csv", audit())
    for paper in load_papers():
        compared = compare(paper, frame, lambda cell: None)
        write_csv(results / f"compare/{paper.id}.csv", compared)
    for declared in all_artefacts().values():
        for artefact in declared:
            path = (folder / artefact.files[0]).with_suffix(".csv")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("nothing\n")
    return cells


def _key(cell: Cell, n: int) -> dict[str, list]:
    return {key: [getattr(cell, key)] * n for key in KEY}


def _cells(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    n = len(METRICS)
    parts = []
    for convention in CONVENTIONS:
        part = pd.DataFrame({**_key(cell, n), "status": "ok", "convention": convention})
        part["metric"] = [name.partition("@")[0] for name in METRICS]
        part["k"] = pd.array([int(name.partition("@")[2]) for name in METRICS], dtype="Int64")
        part["bin"], part["value"] = "all", rng.uniform(20, 80, n)
        parts.append(part)
    return pd.concat(parts, ignore_index=True).reindex(columns=CELL_COLUMNS)


def _intervals(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    names = [*METRICS, *SUMMARY_NAMES.values()]
    frame = pd.DataFrame({**_key(cell, len(names)), "metric": names})
    frame["value"] = rng.uniform(20, 80, len(names))
    frame["low"], frame["high"] = frame["value"] - 1, frame["value"] + 1
    if cell.variant != PLAIN:
        for name in ("change", "difference"):
            frame[name] = rng.normal(1, 3, len(names))
            frame[f"{name}_low"], frame[f"{name}_high"] = frame[name] - 1, frame[name] + 1
    return frame.reindex(columns=INTERVAL_COLUMNS)


def _bins(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    pairs = [(metric, name) for metric in METRICS for name in BINS]
    frame = pd.DataFrame({**_key(cell, len(pairs))})
    frame["metric"], frame["bin"] = zip(*pairs, strict=True)
    frame["bound"] = 30.0
    frame["value"] = rng.uniform(0, 30, len(pairs))
    frame["low"], frame["high"] = frame["value"] - 1, frame["value"] + 1
    if cell.variant != PLAIN:
        frame["difference"] = rng.normal(0, 1, len(pairs))
        frame["difference_low"] = frame["difference"] - 1
        frame["difference_high"] = frame["difference"] + 1
    return frame.reindex(columns=BIN_COLUMNS)


def _run(cell: Cell) -> dict:
    record = _record(cell)
    keep = ("status", "reason", "wall_s", "cpu_s", "peak_mb", "threads", "commit", "dirty")
    phases = {f"{name}_wall_s": times["wall_s"] for name, times in record["phases"].items()}
    same = {key: record[key] for key in (*KEY, *keep, "code", "data", "device")}
    return {**same, **phases, "budget_wall_s": 600, "budget_memory_mb": 4000, "cpu": "a CPU"}


def _record(cell: Cell) -> dict:
    times = {"wall_s": 12.5, "cpu_s": 12.0}
    return dict(
        {key: getattr(cell, key) for key in KEY},
        status="ok",
        reason="",
        notes=[],
        device="cpu",
        threads=1,
        phases={"warm_up": times, "fit": times, "predict": times},
        method_seed=7,
        wall_s=60.0,
        cpu_s=50.0,
        peak_mb=800.0,
        params={cell.base: {"C": 1.0}},
        budget={"wall_s": 600.0, "memory_mb": 4000},
        commit="0" * 40,
        dirty=False,
        node={"cpu": "a CPU", "cores": 2},
        versions={"python": "3.11"},
        recipe=[],
        code="c" * 16,
        data="d" * 64,
        log_tail=[f"line {n} " * 8 for n in range(20)],
    )


def _labels(rng: np.random.Generator, n: int) -> pd.DataFrame:
    frame = pd.DataFrame({"label": range(n), "name": [f"a label of number {i}" for i in range(n)]})
    frame.loc[0, "name"] = SCRIPT
    frame["decile"] = np.arange(n) * 10 // n + 1
    parts = np.where(frame["decile"] == 1, "head", np.where(frame["decile"] < 6, "torso", "tail"))
    frame["part"] = parts
    frame["train"], frame["test"] = rng.integers(1, 99, n), rng.integers(0, 40, n)
    columns: dict[str, np.ndarray] = {}
    for base in BASES:
        for variant in VARIANTS:
            columns[f"found@5 {base}/{variant}"] = rng.integers(0, 40, n)
            columns[f"norm {base}/{variant}"] = rng.uniform(0, 9, n)
    columns[f"found@5 {BASES[0]}/PW"][0] = 10_000  # the label with the script gained most
    return pd.concat([frame, pd.DataFrame(columns)], axis=1)
