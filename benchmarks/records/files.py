"""A cell's files, bound together: what is read is what was written, of this cell, or an error.

``run.json`` holds the digests of the predictions and norms, and one of itself; ``evaluation.json``
those of the metrics, and says which ``run.json`` they are of. Readers come here for a path, so
that a file that was cut, changed or taken from another cell is named and never becomes a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.atomic import write_json
from benchmarks.common.digests import (
    DIGEST,
    DamagedError,
    file_digest,
    is_intact,
    read_object,
    signed,
)
from benchmarks.records.cell import (
    EVALUATION,
    INSTANCE,
    KEY,
    METRICS,
    NORMS,
    PREDICTIONS,
    RECORD,
    Cell,
)

OF_RECORD = (PREDICTIONS, NORMS)
OF_EVALUATION = (METRICS, INSTANCE)


def write_record(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``run.json`` beside the predictions and norms that it is the record of; returns it."""
    there = [name for name in OF_RECORD if (folder / name).exists()]
    files = {name: file_digest(folder / name) for name in there}
    written = signed({**record, "files": files})
    write_json(folder / RECORD, written)
    return written


def read_record(folder: str | Path) -> dict[str, Any]:
    """The ``run.json`` of a cell's folder; :class:`DamagedError` unless it is whole and its own."""
    folder = Path(folder)
    record = _read(folder / RECORD, folder / RECORD)
    found, wanted = Cell(*(record[key] for key in KEY)), Cell.from_path(folder)
    if found != wanted:
        raise _damaged(folder / RECORD, f"the record of another cell ({found})", folder / RECORD)
    return record


def write_evaluation(record: Mapping[str, Any], metrics: Path, instance: Path) -> None:
    """Write ``evaluation.json`` beside the metrics that were made from a record's predictions."""
    files = {METRICS: file_digest(metrics), INSTANCE: file_digest(instance)}
    facts = {**{key: record[key] for key in KEY}, "record": record[DIGEST], "files": files}
    write_json(metrics.with_name(EVALUATION), signed(facts))


def cell_file(folder: str | Path, name: str, record: Mapping[str, Any] | None = None) -> Path:
    """The path of one of a cell's files, after its content proved to be the one recorded.

    ``record`` is the cell's :func:`read_record`, where the caller has it already.
    """
    folder = Path(folder)
    record = read_record(folder) if record is None else record
    path = folder / name
    if name in OF_RECORD:
        holder, remedy, files = RECORD, folder / RECORD, record["files"]
    else:
        holder, remedy = EVALUATION, folder / METRICS
        evaluation = _read(folder / EVALUATION, remedy)
        if evaluation["record"] != record[DIGEST]:
            problem = "the metrics are of another run.json than the one beside it"
            raise _damaged(folder / EVALUATION, problem, remedy)
        files = evaluation["files"]
    if not path.is_file():
        raise _damaged(path, "there is no such file", remedy)
    if file_digest(path) != files.get(name):
        raise _damaged(path, f"its content is not what {holder} records", remedy)
    return path


def _read(path: Path, remedy: Path) -> dict[str, Any]:
    if not path.is_file():
        raise _damaged(path, "there is no such file", remedy)
    document = read_object(path)
    if document is None:
        raise _damaged(path, "no JSON object", remedy)
    if not is_intact(document):
        raise _damaged(path, "its content is not what was written", remedy)
    return document


def _damaged(path: Path, problem: str, remedy: Path) -> DamagedError:
    command = f"Make it again: the same snakemake command with --forcerun {remedy}"
    return DamagedError(path, problem, command)
