"""What studies that choose settings share: fits on a part of train, scored on the rest of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.data.split import Split
from methods.holdout import hold_out
from methods.interface import Model

Row = dict[str, Any]


class Study:
    """Fits on one part of train, scored on the other; one row per fit.

    The rows are written to ``out`` after each fit; those that are there already, of the same
    dataset, seed and number of documents held out, are not repeated.
    """

    def __init__(self, train: Split, held_out: int, seed: int, out: Path) -> None:
        self.fitted, self.kept_out = hold_out(train, held_out, seed)
        self.seed, self.out = seed, out
        self.of = {"dataset": train.meta["name"], "held_out": held_out, "seed": seed}
        self.rows: list[Row] = pd.read_csv(out).to_dict("records") if out.exists() else []

    def measure(
        self, method: str, fit: Callable[[], Model], scored: Callable[[Model], Row], **named: Any
    ) -> Row:
        """The row of a fit: what is ``named``, what it ``scored`` on the documents held out.

        ``method`` says in words all that the fit depends on, and is how its row is known.
        """
        for row in self.rows:
            if {**row, **self.of, "method": method} == row:
                return row
        started = time.process_time()
        found = scored(fit())
        last = {"cpu_s": round(time.process_time() - started, 1), **self.of, "method": method}
        self.rows.append({**named, **found, **last})
        print({k: v for k, v in self.rows[-1].items() if k != "method"}, flush=True)
        write_csv(self.out, pd.DataFrame(self.rows))
        return self.rows[-1]
