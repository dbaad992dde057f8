"""Run one cell, or one shard of it, and leave its files whatever happened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.atomic import atomic_folder, atomic_path, write_json
from benchmarks.common.digests import DamagedError, read_object
from benchmarks.common.schema import validate
from benchmarks.data.prepared import read_meta
from benchmarks.data.verify import verify
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cell import NORMS, PREDICTIONS
from benchmarks.records.files import cell_file, read_record, write_record
from workflow.runtime import disk, provenance
from workflow.runtime.devices import NoDeviceError, resolve, take
from workflow.runtime.launch import launch
from workflow.runtime.logs import bounded, tail
from workflow.runtime.resume import wait_and_hold
from workflow.runtime.supervisor import Exit
from workflow.runtime.unfinished import NOTHING, work_folder

RUN_SCHEMA = Path(__file__).parents[1] / "schemas" / "run.schema.yaml"
RUN_FORMAT = 1
NOTES = 20


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
    shards: Sequence[Path] = (),
    device: str = "cpu",
    resources: Sequence[Path] = (),
) -> dict[str, Any]:
    """Run a cell and write ``predictions.npz``, ``norms.npz`` and, last, ``run.json``.

    With ``shards``, the fit is there already, in parts: they are put together. ``resources`` are
    the prepared folders of what the method names. Returns the record. A failure of the method is
    a record like any other; only an interruption from outside leaves no record, and the cell is
    then run again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waited = wait_and_hold(folder / ".lock")
    meta = read_meta(data)
    identity = {
        "method_seed": recipe["seed"],
        "recipe": recipe["parts"],
        "top_k": top_k,
        "shards": len(shards) or 1,
        "code": code,
        "data": meta["checksum"],
    }
    if waited and (found := _made_meanwhile(folder, identity)) is not None:
        log.write_text("Made by a process of an earlier run; its log is gone.\n", encoding="utf-8")
        return found
    scratch, checkpoint = folder / ".scratch", folder / ".checkpoint"
    checkpoint.mkdir(exist_ok=True)
    if "unavailable" in meta:
        log.write_text(meta["unavailable"] + "\n", encoding="utf-8")
        first_line = meta["unavailable"].splitlines()[0]
        ended, outcome = _not_started(scratch, f"dataset not available: {first_line}")
    else:
        spec = {
            **_spec(recipe, data, budget, threads, work_folder(checkpoint, identity)),
            "base": cell["base"],
            "top_k": top_k,
            "shards": [str(path.absolute()) for path in shards],
        }
        title = " ".join(map(str, cell.values()))
        ended, outcome = _launch(spec, device, resources, scratch, log, title)
    earlier = outcome.get("spent_before", NOTHING)
    record = {
        "format": RUN_FORMAT,
        **cell,
        "status": outcome["status"],
        "reason": outcome["reason"],
        "notes": [bounded(note) for note in outcome.get("notes", [])[:NOTES]],
        "history": outcome.get("history", {}),
        "phases": outcome.get("phases", {}),
        "wall_s": ended.wall_s + earlier["wall_s"],
        "cpu_s": ended.cpu_s + earlier["cpu_s"],
        "peak_mb": max(ended.peak_mb, outcome.get("shards_peak_mb", 0.0)),
        "peak_gpu_mb": outcome.get("peak_gpu_mb"),
        **identity,
        "params": outcome.get("params", {}),
        "decision_threshold": outcome.get("decision_threshold"),
        "device": outcome.get("device", resolve(device)),
        "threads": threads,
        "budget": dict(budget),
        "node": provenance.node(),
        "versions": provenance.versions(),
        **provenance.commit(),
        "log_tail": tail(log),
    }
    try:
        finish(folder, scratch, record, meta, top_k)
    except OSError as error:
        if not disk.is_full(error):
            raise
        # What was computed is given up, so that there is room for the reason.
        shutil.rmtree(scratch, ignore_errors=True)
        record |= {"status": "error", "reason": disk.reason("writing the results")}
        finish(folder, scratch, record, meta, top_k)
    if record["status"] == "ok":
        shutil.rmtree(checkpoint)
    return record


def _made_meanwhile(folder: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record that another process left in the folder, if it is of this very cell and whole."""
    try:
        record = read_record(folder)
        for name in (PREDICTIONS, NORMS):
            cell_file(folder, name, record)
    except DamagedError:
        return None
    same = all(record.get(key) == value for key, value in json.loads(json.dumps(identity)).items())
    return record if same else None


def run_shard(
    folder: Path,
    *,
    shard: tuple[int, int],
    recipe: Mapping[str, Any],
    data: Path,
    budget: Mapping[str, Any],
    threads: int,
    checkpoint: Path,
    log: Path,
    code: str = "",
    device: str = "cpu",
    resources: Sequence[Path] = (),
) -> None:
    """Fit one part of a cell's labels and leave the folder: the model and ``shard.json``.

    The folder appears whole or not at all; a shard that failed says so in its ``shard.json``.
    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    waited = wait_and_hold(checkpoint / ".lock")
    identity = {**recipe, "shard": list(shard), "code": code, "data": read_meta(data)["checksum"]}
    identity = json.loads(json.dumps(identity))
    if waited and (read_object(folder / "shard.json") or {}).get("of") == identity:
        return
    checkpoint.mkdir(parents=True, exist_ok=True)  # removed by whoever was waited for
    scratch = checkpoint / "scratch"
    spec = {
        **_spec(recipe, data, budget, threads, work_folder(checkpoint, identity)),
        "base": folder.parts[-5],
        "shard": list(shard),
    }
    title = "/".join(folder.parts[-6:])
    ended, outcome = _launch(spec, device, resources, scratch, log, title)
    with atomic_folder(folder) as temporary:
        if outcome["status"] == "ok":
            (scratch / "model").replace(temporary / "model")
        write_json(temporary / "shard.json", {**outcome, "peak_mb": ended.peak_mb, "of": identity})
    shutil.rmtree(scratch)
    if outcome["status"] == "ok":
        shutil.rmtree(checkpoint)


def _spec(
    recipe: Mapping[str, Any],
    data: Path,
    budget: Mapping[str, Any],
    threads: int,
    checkpoint: Path,
) -> dict[str, Any]:
    return {
        **recipe,
        "data": str(data.absolute()),  # a method may change the working folder
        "threads": threads,
        "wall_s": budget["wall_s"],
        "memory_mb": budget["memory_mb"],
        "checkpoint": str(checkpoint.absolute()),
    }


def _launch(
    spec: Mapping[str, Any],
    device: str,
    resources: Sequence[Path],
    scratch: Path,
    log: Path,
    title: str,
) -> tuple[Exit, dict[str, Any]]:
    """Run the child on the device asked for; the outcome says which that was."""
    paths = {}
    for folder in resources:
        meta = read_meta(folder)
        if "unavailable" in meta:
            log.write_text(meta["unavailable"] + "\n", encoding="utf-8")
            reason = f"{spec['base']} needs {folder.name}: {_advice(meta['unavailable'])}"
            return _not_started(scratch, reason)
        try:
            verify(folder, meta)
        except DamagedError as error:
            return _not_started(scratch, str(error), "error")
        paths[folder.name] = meta.get("folder", str(folder.resolve()))
    try:
        with take(device) as granted:
            given = {**spec, "device": granted.device, "card": granted.card, "resources": paths}
            ended, outcome = launch(given, scratch, log, title)
    except NoDeviceError as error:
        log.write_text(f"{error}\n", encoding="utf-8")
        return _not_started(scratch, str(error))
    outcome["reason"] = bounded(outcome["reason"])
    return ended, {**outcome, "device": granted.device}


def _advice(unavailable: str) -> str:
    """Why something is unavailable and how to get it, in one line of a message of several."""
    first, *rest = map(str.strip, unavailable.splitlines())
    remedies = [f"; get it{line.removeprefix('Get it')}" for line in rest if line[:6] == "Get it"]
    return "".join([first.rstrip(".") if remedies else first, *remedies[:1]])


def _not_started(
    scratch: Path, reason: str, status: str = "skipped"
) -> tuple[Exit, dict[str, Any]]:
    """What :func:`launch` gives, for a cell that is skipped without trying."""
    scratch.mkdir(parents=True, exist_ok=True)
    ended = Exit(code=0, stopped_for=None, wall_s=0.0, cpu_s=0.0, peak_mb=0.0)
    return ended, {"status": status, "reason": reason}


def finish(
    folder: Path, scratch: Path, record: dict[str, Any], meta: Mapping[str, Any], k: int
) -> None:
    """Write a cell's files: its record, and what is in ``scratch`` or, if it failed, nothing."""
    validate(record, RUN_SCHEMA, f"the record of {folder}")
    if record["status"] == "ok":
        for name in ("predictions.npz", "norms.npz"):
            (scratch / name).replace(folder / name)
    else:
        # A cell without predictions says so in the same shape as any other.
        nothing = TopK.empty(meta.get("n_test", 0), k)
        with atomic_path(folder / "predictions.npz") as temporary:
            np.savez_compressed(temporary, indices=nothing.indices, scores=nothing.scores)
        with atomic_path(folder / "norms.npz") as temporary:
            np.savez_compressed(
                temporary, norms=np.full(meta.get("n_labels", 0), np.nan, np.float32)
            )
    write_record(folder, record)
    shutil.rmtree(scratch, ignore_errors=True)
