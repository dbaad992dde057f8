"""Past small data: parsing to metrics at the full size of Amazon-670K and WikiLSHTC-325K.

Makes seeded documents of these shapes (``--share`` scales them; 1 is full size), writes and parses
them as XC text, prepares and opens them, fits one shard of DiSMEC (of as many as keep a shard at
ten minutes), fits and searches one tree of Parabel and one of Bonsai, and evaluates every metric.
Each stage runs in a process of its own, so that its peak memory is its own; compiling is not timed.

Smaller corpora come first (``--sweep``): from them the exponents of time in documents, features and
labels are fitted, and what the rest will take is printed before it starts. A row is written to
``results/speed/scale.csv`` as soon as its stage is done; a second start goes on where the first
stopped, and ``--again`` measures anew.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from benchmarks.common.atomic import write_csv
from benchmarks.speed._corpus import SHAPES, Shape
from benchmarks.speed._scale_stages import STAGES, Place, run_stage

SIZES = ("n_train", "n_features", "n_labels")
KEY = ("shape", *SIZES, "stage")
SHARD_S, LEAST_SHARD_S = 600.0, 10.0
LIMITED = "MemoryError"


def points(shape: Shape, sweep: Sequence[float], shares: Sequence[float]) -> Iterator[Shape]:
    """The corpora to measure: all sizes scaled together, and at one share each size alone."""
    for share in sorted(sweep):
        yield shape.scaled(share, share, share)
    if sweep:
        middle = sorted(sweep)[len(sweep) // 2]
        for axis in range(3):
            factors = [2 * middle if axis == other else middle for other in range(3)]
            yield shape.scaled(*factors)
    for share in sorted(shares):
        yield shape.scaled(share, share, share)


def key_of(point: Shape, stage: str) -> tuple[Any, ...]:
    """What tells a row from others."""
    return (point.name, *(getattr(point, size) for size in SIZES), stage)


class Rows:
    """The table of what was measured, written at every change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        if path.exists():
            for row in pd.read_csv(path).to_dict("records"):
                found = {str(k): v for k, v in row.items() if pd.notna(v)}
                self.rows[tuple(found[name] for name in KEY)] = found

    def has(self, point: Shape, stage: str) -> bool:
        """Whether a stage was measured to its end."""
        return self.rows.get(key_of(point, stage), {}).get("status") == "ok"

    def add(self, point: Shape, stage: str, facts: dict[str, Any]) -> None:
        """Keep a row and write the table."""
        key = key_of(point, stage)
        self.rows[key] = {**dict(zip(KEY, key, strict=True)), **facts}
        write_csv(self.path, pd.DataFrame(self.rows.values()))

    def of(self, shape: str, stage: str) -> pd.DataFrame:
        """The rows of a stage on corpora of a shape that ended well."""
        rows = [
            row
            for row in self.rows.values()
            if (row["shape"], row["stage"], row["status"]) == (shape, stage, "ok")
        ]
        return pd.DataFrame(rows)


class Law:
    """Time as a product of powers of the sizes, memory as a sum of multiples of them."""

    def __init__(self, rows: pd.DataFrame) -> None:
        sizes = rows[list(SIZES)].to_numpy(float)
        amount = rows.get("amount", 1.0)
        design = np.column_stack([np.ones(len(rows)), np.log(sizes)])
        spent = np.log(np.maximum(rows["cpu_s"] / amount, 1e-6))
        # Of sizes that always grew together only the sum of the exponents is known: the solution
        # of least norm shares it out evenly.
        self.powers = np.linalg.lstsq(design, spent, rcond=None)[0]
        if (self.powers[1:] < 0).any():
            # More documents, features or labels never take less time: chance alone says so.
            centre, mean = design[:, 1:].mean(axis=0), spent.mean()
            slopes = nnls(design[:, 1:] - centre, np.asarray(spent - mean))[0]
            self.powers = np.append(mean - slopes @ centre, slopes)
        columns = np.column_stack([np.ones(len(rows)), sizes])
        scale = columns.max(axis=0)
        self.megabytes = nnls(columns / scale, rows["peak_mb"].to_numpy(float))[0] / scale

    @property
    def exponents(self) -> dict[str, float]:
        """Of CPU time, by size."""
        return dict(zip(SIZES, self.powers[1:].tolist(), strict=True))

    def price(self, point: Shape) -> tuple[float, float]:
        """CPU seconds (per label where a stage fits only some) and megabytes."""
        sizes = np.array([getattr(point, size) for size in SIZES], float)
        seconds = float(np.exp(self.powers @ np.append(1.0, np.log(sizes))))
        return seconds, float(self.megabytes @ np.append(1.0, sizes))


def law_of(rows: Rows, shape: str, stage: str, below: Shape | None = None) -> Law | None:
    """The law of a stage, from corpora with fewer documents than a given one; None for too few."""
    found = rows.of(shape, stage)
    if below is not None and len(found):
        found = found[found["n_train"] < below.n_train]
    return Law(found) if len(found) >= 2 else None


def print_price(rows: Rows, point: Shape, stages: Sequence[str], threads: int) -> None:
    """What the stages that remain will take, before they start."""
    total = 0.0
    for stage in stages:
        if rows.has(point, stage):
            continue
        law = law_of(rows, point.name, stage, below=point)
        if law is None:
            print(f"    {stage}: no smaller corpora were measured; price unknown")
            continue
        seconds, megabytes = law.price(point)
        words = f"{seconds:,.1f} s"
        if stage == "DiSMEC shard":
            shards = max(1, round(seconds * point.n_labels / threads / SHARD_S))
            words = f"{1e3 * seconds:,.1f} ms per label, {shards:,} shards; one of them"
            seconds = threads * min(SHARD_S, seconds * point.n_labels)
            words += f" {seconds:,.0f} s"
        total += seconds
        print(f"    {stage}: {words} of CPU time, {megabytes:,.0f} MB expected")
    print(f"    together {total / 60:,.0f} min of CPU time, on {threads} threads")


def measure(point: Shape, stage: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a stage in a process of its own; its row, or how it ended."""
    command = [sys.executable, "-m", "benchmarks.speed", "scale", "--child", stage]
    command += ["--sizes", json.dumps([getattr(point, size) for size in (*SIZES, "n_test")])]
    command += ["--shape", point.name, "--folder", str(folder_of(point, options))]
    command += ["--threads", str(options.threads), "--memory-gb", str(options.memory_gb)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.wall_s)
    except subprocess.TimeoutExpired:
        return {"status": f"over {options.wall_s:,.0f} s"}
    if done.returncode:
        if LIMITED in done.stderr:
            return {"status": f"over {options.memory_gb:g} GB"}
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": f"failed: {last}"}
    return {"status": "ok", **json.loads(done.stdout.splitlines()[-1])}


def folder_of(point: Shape, options: argparse.Namespace) -> Path:
    """Where the files of a corpus are kept while it is measured."""
    sizes = "-".join(str(getattr(point, size)) for size in SIZES)
    return Path(options.folder) / f"{point.name}-{sizes}"


def child(options: argparse.Namespace) -> int:
    """Run one stage in this process and print its row."""
    # Private memory: what is mapped from files can be dropped and does not count.
    limit = int(options.memory_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    whole = SHAPES[options.shape[0]]
    n_train, n_features, n_labels, n_test = json.loads(options.sizes)
    given = {"n_train": n_train, "n_features": n_features, "n_labels": n_labels, "n_test": n_test}
    point = Shape(**{**vars(whole), **given})
    shard_s = max(LEAST_SHARD_S, SHARD_S * min(1.0, n_train / whole.n_train))
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    print(run_stage(options.child, Place(point, folder, options.threads, shard_s)))
    return 0


def run_point(rows: Rows, point: Shape, options: argparse.Namespace) -> None:
    """Measure every stage of a corpus that has no row yet."""
    wanted = options.stage or list(STAGES)
    missing = [stage for stage in wanted if options.again or not rows.has(point, stage)]
    if not missing:
        return
    print(
        f"{point.name}: {point.n_train:,} documents x {point.n_features:,} features, "
        f"{point.n_labels:,} labels",
        flush=True,
    )
    print_price(rows, point, missing, options.threads)
    folder = folder_of(point, options)
    for stage in STAGES:
        makes_files = stage not in ("parse", "open", "DiSMEC shard", "evaluate")
        marker = folder / f".{stage.replace(' ', '-')}.done"
        is_wanted = stage in missing
        if not is_wanted and not (makes_files and missing_needs(stage, missing, marker)):
            continue
        facts = measure(point, stage, options)
        if facts["status"] == "ok":
            marker.touch()
            print(
                f"  {stage}: {facts['seconds']:,.1f} s, {facts['cpu_s']:,.1f} s of CPU time, "
                f"{facts['peak_mb']:,.0f} MB",
                flush=True,
            )
        else:
            print(f"  {stage}: {facts['status']}", flush=True)
        if is_wanted:
            rows.add(point, stage, facts)
        if facts["status"] != "ok" and stage in ("write", "prepare"):
            break  # nothing that follows could run
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)


def missing_needs(stage: str, missing: Sequence[str], marker: Path) -> bool:
    """Whether a stage that has its row must be done again for the files that another reads."""
    order = list(STAGES)
    later = [s for s in missing if order.index(s) > order.index(stage)]
    if stage.endswith((" fit", " predict")):
        later = [s for s in later if s == "evaluate" or s.split()[0] == stage.split()[0]]
    return bool(later) and not marker.exists()


def print_laws(rows: Rows, shape: str, out: Path) -> None:
    """Exponents of time and what memory grows with, for each stage; also as a table of its own."""
    laws = []
    for stage in STAGES:
        law = law_of(rows, shape, stage)
        if law is not None:
            powers = {f"time ~ {size}^": round(p, 2) for size, p in law.exponents.items()}
            least, *each = law.megabytes.tolist()
            pairs = zip(SIZES, each, strict=True)
            memory = {f"MB per 1000 {size}": round(1e3 * more, 3) for size, more in pairs}
            laws.append({"shape": shape, "stage": stage, **powers, "MB": round(least), **memory})
    if laws:
        frame = pd.DataFrame(laws)
        print(frame.to_string(index=False))
        write_csv(out.with_name(f"{out.stem}-laws-{shape}.csv"), frame)


def main(argv: list[str]) -> int:
    """Measure what has no row yet; print prices, rows and laws."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed scale", description=__doc__)
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="default: all")
    parser.add_argument("--share", type=float, nargs="*", default=[1.0], help="of the full size")
    parser.add_argument("--sweep", type=float, nargs="*", default=[0.02, 0.05, 0.1])
    parser.add_argument("--stage", action="append", choices=list(STAGES), help="default: all")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", default="results/speed/scale", help="for files; 4 GB at most")
    parser.add_argument("--keep", action="store_true", help="leave the files there at the end")
    parser.add_argument("--again", action="store_true", help="measure what has rows, too")
    parser.add_argument("--memory-gb", type=float, default=16.0, help="of a stage, at most")
    parser.add_argument("--wall-s", type=float, default=5400.0, help="of a stage, at most")
    parser.add_argument("--out", type=Path, default=Path("results/speed/scale.csv"))
    parser.add_argument("--child", choices=list(STAGES), help=argparse.SUPPRESS)
    parser.add_argument("--sizes", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        return child(options)
    rows = Rows(options.out)
    for name in options.shape or SHAPES:
        for point in points(SHAPES[name], options.sweep, options.share):
            run_point(rows, point, options)
        print_laws(rows, name, options.out)
    return 0 if all(row["status"] == "ok" for row in rows.rows.values()) else 1
