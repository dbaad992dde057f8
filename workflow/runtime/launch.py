"""Start the child of a cell or of a shard under supervision, and say in words how it ended."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.common.atomic import write_json
from benchmarks.common.digests import read_object
from workflow.runtime import disk
from workflow.runtime.resume import held_locks
from workflow.runtime.supervisor import Exit, supervise

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def launch(
    spec: Mapping[str, Any], scratch: Path, log: Path, title: str
) -> tuple[Exit, dict[str, Any]]:
    """Run the child on a spec in a new scratch folder; how it ended, and its outcome in words."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    scratch = scratch.absolute()  # a method may change the working folder
    log.parent.mkdir(parents=True, exist_ok=True)
    write_json(scratch / "spec.json", spec)
    with closing(_Bar(scratch, title)) as bar:
        ended = supervise(
            [sys.executable, "-m", "workflow.runtime.child", str(scratch / "spec.json")],
            wall_s=spec["wall_s"],
            memory_mb=spec["memory_mb"],
            log=log,
            environment=_environment(spec["threads"], spec["card"]),
            refuse_allocations=spec["device"] != "cuda",
            on_poll=bar.update,
            locks=held_locks(),
        )
    return ended, _explain(ended, scratch, spec)


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
        if ended.code == disk.EXIT_CODE:
            return {"status": "error", "reason": disk.reason(phase)}
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


def _environment(threads: int, card: str) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    counts = dict.fromkeys(THREAD_VARIABLES, str(threads))
    # Without a card of its own, a cell sees none: what ran on the CPU is not helped by a GPU.
    own = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": card}
    return {**os.environ, **counts, **own}


def _progress(scratch: Path) -> dict[str, Any]:
    path = scratch / "progress.json"
    if not path.exists():
        return {}
    return read_object(path) or {}  # empty where the disk was full


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
