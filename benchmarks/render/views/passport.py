"""The passport of a cell: where its numbers come from and how to make them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.records.cell import KEY, RECORD, Cell
from benchmarks.render.views.numbers import plain, seconds

COMPILING = "warm_up"
LOG_LINES = 8
LINE = 200


def passport(record: Mapping[str, Any], planned: float, command: str) -> dict[str, Any]:
    """What is shown of a cell's ``run.json``, as lists of (name, text).

    ``planned`` are the seconds that the method's law of cost says, NaN where it has none.
    """
    cell = Cell(*(record[key] for key in KEY))
    node, budget = record["node"], record["budget"]
    phases = record["phases"].items()
    facts = {
        "run": f"results/runs/{cell.path}/{RECORD}",
        "status": ": ".join(filter(None, (record["status"], record["reason"]))),
        "commit": f"{record['commit'] or 'unknown'}{_changes(record['dirty'])}",
        "code digest": record["code"],
        "data checksum": record["data"],
        "seed": f"{record['seed']} (given to the method: {record.get('method_seed', '?')})",
        "budget": f"{seconds(float(budget['wall_s']))}, {float(budget['memory_mb']):,.0f} MB, "
        f"{record.get('threads', '?')} thread(s)",
        "device": f"{record.get('device', '?')} · {node['cpu']}, {node['cores']} cores",
        **{_phase(name): _times(times) for name, times in phases},
        "whole process": f"{seconds(record['wall_s'])}, CPU {seconds(record['cpu_s'])}",
        "planned": f"{seconds(planned)} by the method's law of cost" if planned == planned else "",
        "peak memory": f"{plain(record['peak_mb'], 0)} MB",
        "versions": ", ".join(f"{k} {v}" for k, v in record["versions"].items() if v),
        "notes": "; ".join(record.get("notes", [])),
    }
    return {
        "title": str(cell),
        "facts": [(name, text) for name, text in facts.items() if text],
        "params": _flat(record.get("params", {})),
        "log": [line[:LINE] for line in record.get("log_tail", [])[-LOG_LINES:]],
        "command": command,
    }


def _changes(dirty: bool | None) -> str:
    return (
        "" if dirty is None else " with uncommitted changes" if dirty else ", nothing uncommitted"
    )


def _phase(name: str) -> str:
    return "compile" if name == COMPILING else name


def _times(times: Mapping[str, float]) -> str:
    return f"{seconds(times['wall_s'])}, CPU {seconds(times['cpu_s'])}"


def _flat(params: Mapping[str, Mapping[str, Any]]) -> Sequence[tuple[str, str]]:
    return [
        (f"{owner}.{name}", str(value)[:LINE])
        for owner, own in params.items()
        for name, value in own.items()
    ]
