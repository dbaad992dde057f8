"""Whether the files of a prepared folder are still those that were prepared.

Sizes are compared at every open. Contents are digested at the first open of a run, which leaves a
mark beside the folder; later opens of that run compare the files' inodes with the mark. So a
multi-gigabyte dataset is read through once per run, not once per cell. ``verify: full`` in the
configuration digests at every open. Outside of a run a mark holds until a file is touched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from benchmarks.common.atomic import write_json
from benchmarks.common.digests import DIGEST, DamagedError, file_digest, read_object
from benchmarks.common.locks import exclusive

RUN_VARIABLE = "TAILTABLES_RUN"
"""Names a run for all of its processes; the first of them to open a dataset digests it."""
MODE_VARIABLE = "TAILTABLES_VERIFY"
FULL = "full"
_verified: dict[str, Any] = {}
"""Marks of this process, for folders beside which none can be written."""


def remedy(folder: Path) -> str:
    """How a damaged folder is made again."""
    return f"Delete {folder} and run the same command: it is prepared again"


def check_sizes(folder: Path, meta: Mapping[str, Any]) -> None:
    """Raise :class:`DamagedError` unless every file is there and as long as it was written."""
    for name, facts in meta["arrays"].items():
        path = folder / name
        try:
            size = path.stat().st_size
        except OSError as error:
            problem = f"the prepared file cannot be read ({error.strerror})"
            raise DamagedError(path, problem, remedy(folder)) from error
        if size != facts["size"]:
            problem = f"{size:,} bytes instead of the {facts['size']:,} that were prepared"
            raise DamagedError(path, problem, remedy(folder))


def verify(folder: Path, meta: Mapping[str, Any]) -> None:
    """Raise :class:`DamagedError` for the first file that is not what ``meta.json`` says."""
    check_sizes(folder, meta)
    if os.environ.get(MODE_VARIABLE) == FULL:
        _check_contents(folder, meta)
        return
    mark = folder.with_name(f".{folder.name}.verified.json")
    if _is_marked(mark, folder, meta):
        return
    with ExitStack() as stack:
        # Cells start side by side: one of them reads all, the others wait for its mark.
        with suppress(OSError):  # a folder that cannot be written to: each reads for itself
            stack.enter_context(exclusive(folder.with_name(f".{folder.name}.verify.lock")))
        if not _is_marked(mark, folder, meta):
            state = _state(folder, meta)
            _check_contents(folder, meta)
            _verified[str(mark.absolute())] = state
            with suppress(OSError):
                write_json(mark, state)


def _check_contents(folder: Path, meta: Mapping[str, Any]) -> None:
    for name, facts in meta["arrays"].items():
        if file_digest(folder / name) != facts["sha256"]:
            problem = "its content is not what was prepared (sha256 differs from meta.json)"
            raise DamagedError(folder / name, problem, remedy(folder))


def _is_marked(mark: Path, folder: Path, meta: Mapping[str, Any]) -> bool:
    state = json.loads(json.dumps(_state(folder, meta)))
    found = read_object(mark) if mark.exists() else _verified.get(str(mark.absolute()))
    if found is None:
        return False
    if os.environ.get(RUN_VARIABLE) is None:
        state, found = ({**part, "run": None} for part in (state, found))
    return bool(found == state)


def _state(folder: Path, meta: Mapping[str, Any]) -> dict[str, Any]:
    """What a mark holds: the run, the digest of ``meta.json``, the inode of every file.

    The time of an inode's last change cannot be set by programs, so a file that was written to,
    or replaced by ``cp -p``, is digested again.
    """
    files = {}
    for name in meta["arrays"]:
        status = (folder / name).stat()
        files[name] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    return {"run": os.environ.get(RUN_VARIABLE), "meta": meta[DIGEST], "files": files}
