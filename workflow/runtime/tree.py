"""Which code a run uses: this tree's, installed or not."""

from __future__ import annotations

import os


def export_tree(root: str) -> None:
    """Let the processes of jobs and their scripts import this tree's packages."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([root, *filter(None, inherited)]))
