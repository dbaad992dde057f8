"""The supervised side of a cell: load, fit, predict, write; ``python -m`` with a spec file.

Whatever happens here ends as ``outcome.json`` in the scratch folder, or as a death that the
supervisor explains. Compiling (warm_up), fit and predict are timed apart.
"""

from __future__ import annotations

import faulthandler
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.atomic import write_json
from benchmarks.common.loading import load_class, target_of
from benchmarks.data.prepared import open_prepared
from benchmarks.data.split import Split
from benchmarks.evaluation.propensity import LEAST_DOCUMENTS
from benchmarks.evaluation.topk import TopK
from methods.controls import Oracle
from methods.interface import Clock, DivergedError, Method, Model, Resources
from methods.registry import MisfitError, Recipe, assemble
from workflow.runtime import disk
from workflow.runtime.logs import bounded
from workflow.runtime.unfinished import NOTHING, Seconds, Spent

PROGRESS_EVERY_S = 0.5
LONGEST_ARRAY = 1000
"""Numbers of an array-valued hyper-parameter that are recorded one by one."""


class Journal:
    """What the supervisor can read while the child runs, and what it times."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.phases: dict[str, dict[str, float]] = {}
        self.phase = "load"
        self._last_report = 0.0
        self._report(0.0, 0.0, "")
        self.spent_before = NOTHING
        self._spent: Spent | None = None
        self._started = time.monotonic(), _cpu_seconds()

    @contextmanager
    def timed(self, phase: str, work: Path | None = None) -> Iterator[None]:
        """Wall and CPU seconds of a phase, the CPU time of child processes included.

        Of a phase that may go on from unfinished ``work`` the time of earlier processes counts too.
        """
        self.phase = phase
        self._report(0.0, 0.0, "")
        self._started = time.monotonic(), _cpu_seconds()
        self._spent = None if work is None else Spent(work)
        if self._spent is not None:
            self.spent_before = self._spent.before
        yield
        own = self._seconds()
        self.phases[phase] = own if self._spent is None else self._spent.total(own)
        print("{}: {wall_s:.2f} s, CPU {cpu_s:.2f} s".format(phase, **self.phases[phase]))

    def progress(self, done: float, total: float, what: str = "") -> None:
        """The ``progress`` that methods are given."""
        if time.monotonic() - self._last_report >= PROGRESS_EVERY_S or done >= total:
            self._report(done, total, what)
        if self._spent is not None:
            self._spent.note(self._seconds())

    def _seconds(self) -> Seconds:
        wall, cpu = self._started
        return {"wall_s": time.monotonic() - wall, "cpu_s": _cpu_seconds() - cpu}

    def _report(self, done: float, total: float, what: str) -> None:
        self._last_report = time.monotonic()
        state = {"phase": self.phase, "done": done, "total": total, "what": what[:200]}
        temporary = self.scratch / "progress.tmp"
        temporary.write_text(json.dumps(state), encoding="utf-8")
        temporary.replace(self.scratch / "progress.json")


def run(spec: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Run the cell of a spec; what came of it, files written into the scratch folder."""
    journal = Journal(scratch)
    try:
        reason = _no_card(spec["device"])
        if reason is not None:
            return {"status": "skipped", "reason": reason, "phases": {}}
        outcome = _run(spec, scratch, journal)
        return {
            "peak_gpu_mb": _peak_gpu_mb(),
            "spent_before": journal.spent_before,
            **outcome,
            "phases": journal.phases,
        }
    except MisfitError as misfit:
        return {"status": "skipped", "reason": f"not applicable: {misfit}", "phases": {}}
    except DivergedError as diverged:
        return {"status": "diverged", "reason": str(diverged), "phases": journal.phases}
    except MemoryError as error:
        _print_traceback()
        reason = f"memory ran out in {journal.phase} ({error or 'MemoryError'})"
        return {"status": "oom", "reason": reason, "phases": journal.phases}
    except Exception as error:
        # The border of the cell: any failure of a method is a result, told in words.
        _print_traceback()
        reason = f"{type(error).__name__} in {journal.phase}: {_said(error)}"
        if disk.is_full(error):
            reason = disk.reason(journal.phase)
            free(scratch)
        return {"status": "error", "reason": reason, "phases": journal.phases}


def _run(spec: dict[str, Any], scratch: Path, journal: Journal) -> dict[str, Any]:
    clock = Clock(spec["wall_s"])
    train, test = open_prepared(spec["data"])
    with_labels = int((np.diff(train.labels.indptr) > 0).sum())
    if with_labels < LEAST_DOCUMENTS:
        has = f"train has {with_labels} documents with labels"
        return {
            "status": "skipped",
            "reason": f"{has}; metrics need {LEAST_DOCUMENTS} or more",
        }
    base, *variants = (Recipe(part["class"], part["params"]) for part in spec["parts"])
    method: Method = assemble(base, variants)
    resources = Resources(spec["threads"], spec["memory_mb"], spec["wall_s"], spec["device"])
    reason = method.skip(train.meta, resources)
    if reason is not None:
        return {"status": "skipped", "reason": reason}
    if isinstance(method, Oracle):
        method = method.given(test.labels)
    ok: dict[str, Any] = {"status": "ok", "reason": "", "params": plain(method.params())}
    print(f"{spec['data']}: {len(train)} + {len(test)} documents, {train.n_labels} labels")
    print(f"parameters: {json.dumps(ok['params'], default=str)}", flush=True)
    with journal.timed("warm_up"):
        method.warm_up(train.observed())
    if "shard" in spec:
        model = _fit(method, train, spec, journal, clock, shard=tuple(spec["shard"]))
        (scratch / "model").mkdir()
        model.save(scratch / "model")
        return {**ok, "model": target_of(model)}
    if spec["shards"]:
        parts = [json.loads((Path(p) / "shard.json").read_text()) for p in spec["shards"]]
        for number, part in enumerate(parts):
            if part["status"] != "ok":
                reason = f"shard {number} of {len(parts)}: {part['reason']}"
                return {"status": part["status"], "reason": reason}
        ok["shards_peak_mb"] = max(part["peak_mb"] for part in parts)
        ok["peak_gpu_mb"] = max(part["peak_gpu_mb"] or 0.0 for part in parts) or None
        journal.phases["fit"] = {
            unit: sum(part["phases"]["fit"][unit] for part in parts) for unit in ("wall_s", "cpu_s")
        }
        with journal.timed("merge"):
            model = _merged(parts, [Path(p) / "model" for p in spec["shards"]])
    else:
        model = _fit(method, train, spec, journal, clock)
    with journal.timed("predict"):
        top = model.predict(test.inputs, spec["top_k"])
    fault: str | None = f"a {type(top).__name__}, not a TopK"
    if isinstance(top, TopK):
        fault = top.fault(len(test), test.n_labels, spec["top_k"])
    if fault is not None:
        return {"status": "error", "reason": f"the predictions are not valid: {fault}"}
    indices, scores = top.indices.astype(np.int32), top.scores.astype(np.float32)
    np.savez_compressed(scratch / "predictions.npz", indices=indices, scores=scores)
    np.savez_compressed(scratch / "norms.npz", norms=_norms(model, train))
    print(f"the best {top.indices.shape[1]} labels of {len(test)} documents are written")
    return {
        **ok,
        "notes": [_printable(str(note)) for note in model.notes],
        "decision_threshold": _finite(model.decision_threshold),
        "history": {name: list(map(float, values)) for name, values in model.fit_history.items()},
    }


def _fit(
    method: Method,
    train: Split,
    spec: dict[str, Any],
    journal: Journal,
    clock: Clock,
    shard: tuple[int, int] | None = None,
) -> Model:
    resources = {name: Path(path) for name, path in spec["resources"].items()}
    work = Path(spec["checkpoint"])
    with journal.timed("fit", work):
        return method.fit(
            train.observed(),
            seed=spec["seed"],
            device=spec["device"],
            threads=spec["threads"],
            shard=shard,
            checkpoint=work,
            clock=clock,
            resources=resources,
            progress=journal.progress,
        )


def _merged(parts: list[dict[str, Any]], folders: list[Path]) -> Model:
    cls = load_class(parts[0]["model"], Model)  # type: ignore[type-abstract]
    return cls.merge([cls.load(folder) for folder in folders])


def _norms(model: Model, train: Split) -> np.ndarray:
    norms = model.label_norms()
    if norms is None:
        return np.full(train.n_labels, np.nan, np.float32)
    if norms.shape != (train.n_labels,):
        raise ValueError(f"label_norms has shape {norms.shape}, not ({train.n_labels},)")
    return norms.astype(np.float32)


def free(scratch: Path) -> None:
    """Remove what a failed cell has no use for, so that there is room to say why it failed."""
    for name in ("predictions.npz", "norms.npz"):
        (scratch / name).unlink(missing_ok=True)
    shutil.rmtree(scratch / "model", ignore_errors=True)


def plain(value: Any) -> Any:
    """A hyper-parameter as JSON can hold it: arrays as lists, anything odd by its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        if value.size > LONGEST_ARRAY:
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
            return f"{value.dtype}{list(value.shape)}, sha256 {digest}..."
        return plain(value.tolist())
    if isinstance(value, str):
        return _printable(value)
    if value is None or isinstance(value, int | float):  # bool is an int
        return value
    return bounded(repr(value), 200)


def _finite(threshold: float | None) -> float | None:
    """A declared threshold; one that no score can be compared with is none."""
    return None if threshold is None or not np.isfinite(threshold) else float(threshold)


def _printable(text: str) -> str:
    """Text that every file takes: halves of surrogate pairs by their number."""
    return text.encode("utf-8", "backslashreplace").decode()


def _said(error: Exception) -> str:
    """The text of an exception, even of one that fails to give any."""
    try:
        return _printable(str(error))
    except Exception as worse:
        return f"(its text could not be had: {type(worse).__name__})"


def _print_traceback() -> None:
    """The exception being handled, in the log behind what the method printed before it."""
    sys.stdout.flush()
    traceback.print_exc()


def _no_card(device: str) -> str | None:
    """Why a CUDA cell cannot start: only torch knows whether the card it was given works."""
    if device != "cuda" or importlib.util.find_spec("torch") is None:
        return None
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        return None
    return "no CUDA device here that torch can use; set device: cpu in the budget"


def _peak_gpu_mb() -> float | None:
    """Most memory that torch held on the card at a time; None where no card was used."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return float(torch.cuda.max_memory_allocated()) / 2**20


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main(argv: list[str]) -> int:
    """Run the cell of the spec file given, beside which everything is written."""
    faulthandler.enable()
    # On the first, polite signal the log gets the stack: where the time went.
    faulthandler.register(signal.SIGTERM, chain=True)
    spec_path = Path(argv[0])
    spec = json.loads(spec_path.read_text(encoding="utf-8"))
    try:
        write_json(spec_path.parent / "outcome.json", run(spec, spec_path.parent))
    except OSError as error:
        if not disk.is_full(error):
            raise
        print(f"{error}: what came of the cell cannot be written", flush=True)
        return disk.EXIT_CODE
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
