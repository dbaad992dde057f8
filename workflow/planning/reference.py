"""The shipped reference runs: what laws of cost know before anything has run here."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.common.schema import load_yaml
from benchmarks.data.cards import all_cards
from benchmarks.records.cells import RUN_FACTS, read_runs
from workflow.planning.facts import facts_in
from workflow.planning.observed import Observed, observed
from workflow.reference import references


def reference_runs(results: Path | None = None) -> tuple[list[Observed], list[str]]:
    """The runs of all files, and what was left out; names mean what they meant in each file's own
    configuration. Datasets that ``results`` has prepared are known better than by their cards."""
    shipped = references()
    frames = _with_sizes([read_runs(each.runs) for each in shipped])
    found, left_out = [], []
    for each, frame in zip(shipped, frames, strict=True):
        define = load_yaml(each.config).get("define", {})
        named = {kind: define.get(kind, {}) for kind in ("bases", "variants")}
        runs, skipped = observed(frame, facts_in(results, all_cards(define.get("datasets"))), named)
        found += runs
        left_out += [f"{each.runs.name}: {line}" for line in skipped]
    return found, left_out


def _with_sizes(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Rows of before sizes were recorded take those of another row on the very same data."""
    sized = [frame[frame["n_train"].notna()] for frame in frames if "n_train" in frame]
    if not sized:
        return frames
    sizes = pd.concat(sized).drop_duplicates("data").set_index("data")[list(RUN_FACTS)]
    found = []
    for frame in frames:
        frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, *RUN_FACTS])))
        lacking = frame["n_train"].isna() & frame["data"].isin(sizes.index)
        of_same_data = sizes.reindex(frame.loc[lacking, "data"]).to_numpy()
        frame.loc[lacking, list(RUN_FACTS)] = of_same_data
        found.append(frame)
    return found
