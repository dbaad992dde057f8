"""Run one cell under supervision and leave its three files, whatever happened."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.atomic import atomic_path, write_json
from benchmarks.data.prepared import read_meta
from benchmarks.schema import validate
from methods.interface import TopK
from workflow.runtime import provenance
from workflow.runtime.resume import hold
from workflow.runtime.supervisor import Exit, supervise

RUN_SCHEMA = Path(__file__).parents[1] / "schemas" / "run.schema.yaml"
RUN_FORMAT = 1
LOG_TAIL_LINES = 20
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def run_cell(
    folder: Path,
    *,
    cell: Mapping[str, Any],
    recipe: Mapping[str, Any],
    data: Path,
    budget: Mapping[str, Any],
    threads: int,
    top_k: int,
    code: str,
    log: Path,
    device: str = "cpu",
) -> dict[str, Any]:
    """Run a cell and write ``predictions.npz``, ``norms.npz`` and, last, ``run.json``.

    Returns the record. A failure of the method is a record like any other; only an interruption
    from outside leaves no record, and the cell is then run again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hold(folder / ".lock")  # the job of a killed run may be dying still
    scratch = folder / ".scratch"
    checkpoint = folder / ".checkpoint"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    checkpoint.mkdir(exist_ok=True)
    spec = {
        **recipe,
        "data": str(data),
        "top_k": top_k,
        "threads": threads,
        "wall_s": budget["wall_s"],
        "memory_mb": budget["memory_mb"],
        "device": device,
        "checkpoint": str(checkpoint),
    }
    write_json(scratch / "spec.json", spec)
    log.parent.mkdir(parents=True, exist_ok=True)
    meta = read_meta(data)
    if "unavailable" in meta:
        log.write_text(meta["unavailable"] + "\n", encoding="utf-8")
        ended = Exit(code=0, stopped_for=None, wall_s=0.0, cpu_s=0.0, peak_mb=0.0)
        first_line = meta["unavailable"].splitlines()[0]
        outcome = {"status": "skipped", "reason": f"dataset not available: {first_line}"}
    else:
        with closing(_Bar(scratch, " ".join(str(value) for value in cell.values()))) as bar:
            ended = supervise(
                [sys.executable, "-m", "workflow.runtime.child", str(scratch / "spec.json")],
                wall_s=budget["wall_s"],
                memory_mb=budget["memory_mb"],
                log=log,
                environment=_environment(threads),
                on_poll=bar.update,
            )
        outcome = _explain(ended, scratch, budget)
    record = {
        "format": RUN_FORMAT,
        **cell,
        "status": outcome["status"],
        "reason": outcome["reason"],
        "notes": outcome.get("notes", []),
        "phases": outcome.get("phases", {}),
        "wall_s": ended.wall_s,
        "cpu_s": ended.cpu_s,
        "peak_mb": ended.peak_mb,
        "peak_gpu_mb": None,
        "method_seed": recipe["seed"],
        "recipe": recipe["parts"],
        "params": outcome.get("params", {}),
        "device": device,
        "threads": threads,
        "budget": dict(budget),
        "node": provenance.node(),
        "versions": provenance.versions(),
        **provenance.commit(),
        "code": code,
        "data": meta["checksum"],
        "log_tail": _tail(log) if outcome["status"] != "ok" else [],
    }
    validate(record, RUN_SCHEMA, f"the record of {folder}")
    _write(
        folder,
        scratch,
        record,
        n_test=meta.get("n_test", 0),
        n_labels=meta.get("n_labels", 0),
        k=top_k,
    )
    shutil.rmtree(scratch)
    if outcome["status"] == "ok":
        shutil.rmtree(checkpoint)
    return record


def _write(
    folder: Path, scratch: Path, record: dict[str, Any], *, n_test: int, n_labels: int, k: int
) -> None:
    if record["status"] == "ok":
        for name in ("predictions.npz", "norms.npz"):
            (scratch / name).replace(folder / name)
    else:
        # A cell without predictions says so in the same shape as any other.
        nothing = TopK.empty(n_test, k)
        with atomic_path(folder / "predictions.npz") as temporary:
            np.savez_compressed(temporary, indices=nothing.indices, scores=nothing.scores)
        with atomic_path(folder / "norms.npz") as temporary:
            np.savez_compressed(temporary, norms=np.full(n_labels, np.nan, np.float32))
    write_json(folder / "run.json", record)


def _explain(ended: Exit, scratch: Path, budget: Mapping[str, Any]) -> dict[str, Any]:
    """Status and reason in words; the words hold no pids or times, so that reruns agree."""
    phase = _progress(scratch).get("phase", "start")
    if ended.stopped_for == "timeout":
        return {"status": "timeout", "reason": f"over {budget['wall_s']:g} s, stopped in {phase}"}
    if ended.stopped_for == "memory":
        reason = f"over {budget['memory_mb']:g} MB, stopped in {phase}"
        return {"status": "oom", "reason": reason}
    if ended.signal is not None:
        reason = f"killed by {ended.signal.name} in {phase}"
        if ended.signal.name == "SIGKILL":
            reason += ", perhaps by the system for want of memory"
        return {"status": "error", "reason": reason}
    outcome_path = scratch / "outcome.json"
    if not outcome_path.exists():
        return {"status": "error", "reason": f"exited with code {ended.code} in {phase}"}
    outcome: dict[str, Any] = json.loads(outcome_path.read_text(encoding="utf-8"))
    if outcome["status"] == "oom":
        outcome["reason"] += f"; its limit is {budget['memory_mb']:g} MB"
    elif outcome["status"] == "ok" and ended.left_behind:
        # Work that goes on elsewhere is not in the measured times, so they cannot be reported.
        outcome["status"] = "error"
        outcome["reason"] = (
            f"left {len(ended.left_behind)} process(es) behind, which were ended: "
            f"{'; '.join(ended.left_behind)}"
        )
    return outcome


def _environment(threads: int) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    counts = dict.fromkeys(THREAD_VARIABLES, str(threads))
    return {**os.environ, **counts, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def _tail(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace")
    return text.splitlines()[-LOG_TAIL_LINES:]


def _progress(scratch: Path) -> dict[str, Any]:
    path = scratch / "progress.json"
    if not path.exists():
        return {}
    state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return state


class _Bar:
    """A progress bar on the terminal; tqdm's ``disable=None`` keeps it out of logs."""

    def __init__(self, scratch: Path, title: str) -> None:
        self.scratch = scratch
        self.bar = tqdm(desc=title, disable=None, leave=False, file=sys.stderr)

    def update(self) -> None:
        if self.bar.disable:
            return
        state = _progress(self.scratch)
        self.bar.total = state.get("total") or None
        self.bar.n = state.get("done", 0)
        self.bar.set_postfix_str(f"{state.get('phase', '')} {state.get('what', '')}".strip())

    def close(self) -> None:
        self.bar.close()
