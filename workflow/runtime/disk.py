"""A full disk, told from other errors."""

from __future__ import annotations

import errno

EXIT_CODE = 28
"""Of a cell's process that could not even write down that the disk is full."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException | None) -> bool:
    """Whether an error is, or was caused by, a full disk or a used-up quota."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def reason(phase: str) -> str:
    """What is said of it."""
    return f"no space left on the disk, in {phase}; free some and run the cell again"
