"""Make the files of an ensemble's cell from those of its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.prepared import read_meta
from benchmarks.evaluation.topk import TopK
from benchmarks.records.cell import NORMS, PREDICTIONS
from benchmarks.records.files import cell_file, read_record
from methods.variants.ensemble import average, mean_norms
from workflow.runtime import provenance
from workflow.runtime.cell import RUN_FORMAT, finish
from workflow.runtime.resume import wait_and_hold


def ensemble_cell(
    folder: Path,
    *,
    cell: Mapping[str, Any],
    recipe: Mapping[str, Any],
    data: Path,
    members: Sequence[Path],
    top_k: int,
    code: str,
    log: Path,
) -> dict[str, Any]:
    """Average the members' predictions and norms; the record, as :func:`run_cell` writes it.

    Times are sums over the members, memory is the largest. Without all of its members there is no
    ensemble: the first that failed is the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wait_and_hold(folder / ".lock")
    scratch = folder / ".scratch"
    scratch.mkdir(exist_ok=True)
    records = [read_record(member) for member in members]
    status, reason = _outcome(records)
    if status == "ok":
        tops = []
        for member, of in zip(members, records, strict=True):
            with np.load(cell_file(member, PREDICTIONS, of)) as stored:
                tops.append(TopK(stored["indices"], stored["scores"]))
        top = average(tops, top_k)
        np.savez_compressed(scratch / "predictions.npz", indices=top.indices, scores=top.scores)
        paths = [cell_file(m, NORMS, of) for m, of in zip(members, records, strict=True)]
        norms = mean_norms([np.load(path)["norms"] for path in paths])
        np.savez_compressed(scratch / "norms.npz", norms=norms)
    seeds = [record["seed"] for record in records]
    said = f"mean of the seeds {', '.join(map(str, seeds))}" if status == "ok" else reason
    log.write_text(said + "\n", encoding="utf-8")
    meta = read_meta(data)
    record = {
        "format": RUN_FORMAT,
        **cell,
        "status": status,
        "reason": reason,
        "notes": list(dict.fromkeys(note for r in records for note in r.get("notes", []))),
        "phases": _sums([r["phases"] for r in records]),
        **{key: sum(r[key] for r in records) for key in ("wall_s", "cpu_s")},
        "peak_mb": max(r["peak_mb"] for r in records),
        "peak_gpu_mb": max(r.get("peak_gpu_mb") or 0.0 for r in records) or None,
        "method_seed": recipe["seed"],
        "recipe": recipe["parts"],
        "params": {**records[0]["params"], "ensemble": {"members": len(seeds), "seeds": seeds}},
        "device": ", ".join(sorted({r["device"] for r in records})),
        "top_k": top_k,
        "threads": max(r["threads"] for r in records),
        "shards": max(r["shards"] for r in records),
        "budget": records[0]["budget"],
        "node": provenance.node(),
        "versions": provenance.versions(),
        **provenance.commit(),
        "code": code,
        "data": meta["checksum"],
        "log_tail": [] if status == "ok" else [reason],
    }
    finish(folder, scratch, record, meta, top_k)
    return record


def _outcome(records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    for record in records:
        if record["status"] == "skipped":
            return "skipped", record["reason"]  # as it would be for the ensemble itself
        if record["status"] != "ok":
            failure = f"{record['status']}: {record['reason']}"
            return "error", f"member seed {record['seed']}: {failure}"
    return "ok", ""


def _sums(phases: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    total: dict[str, dict[str, float]] = {}
    for member in phases:
        for phase, times in member.items():
            kept = total.setdefault(phase, dict.fromkeys(times, 0.0))
            for unit, seconds in times.items():
                kept[unit] += seconds
    return total
