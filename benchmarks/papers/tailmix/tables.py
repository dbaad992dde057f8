"""Tables 2 to 4 of the TailMix paper, from the collected cells of a run, with training time.

``cells`` is the long frame of results and ``runs`` the frame of times; seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import wide
from benchmarks.records.results import METHOD

BASES = (
    "AttentionXML",
    "AttentionXML-matched",
    "LaRoBERTa",
    "LaMiniLM",
    "LaMiniLM-short",
)
"""Models with label attention, which TailMix changes. LaMiniLM is not among the paper's;
AttentionXML-matched and LaMiniLM-short are this paper's run's names for small ones."""
RIVALS = ("wordMix", "hiddenMix", "TMix", "SSMix")
OTHERS = ("DiSMEC", "Parabel", "Bonsai", "XML-CNN", "XML-CNN-glove")
PARTS = {
    "TailMix-nosim-nolpg": ("-", "-"),
    "TailMix-nosim": ("-", "+"),
    "TailMix-nolpg": ("+", "-"),
    "TailMix": ("+", "+"),
}
"""Sim and LPG of Table 4."""
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "PSnDCG@3", "PSnDCG@5")
HOURS = "training (CPU h)"


def table2(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2: other methods, each base, and TailMix on it, on the datasets that have TailMix."""
    rows = [(other, PLAIN) for other in OTHERS]
    rows += [(base, variant) for base in BASES for variant in (PLAIN, "TailMix")]
    return _selected(cells, runs, rows, _with_tailmix(cells))


def table3(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Table 3: ways to mix on each base, the plain base above them."""
    rows = [(base, variant) for base in BASES for variant in (PLAIN, *RIVALS, "TailMix")]
    return _selected(cells, runs, rows, _with_tailmix(cells))


def table4(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Table 4: TailMix without its parts."""
    rows = [(base, variant) for base in BASES for variant in PARTS]
    found = _selected(cells, runs, rows, _with_tailmix(cells))
    found.insert(2, "Sim", [PARTS[variant][0] for variant in found["variant"]])
    found.insert(3, "LPG", [PARTS[variant][1] for variant in found["variant"]])
    pairs = ["dataset", "base"]
    alone = found.groupby(pairs)["variant"].transform("size") == 1
    return found[~alone].drop(columns="variant").reset_index(drop=True)


def _with_tailmix(cells: pd.DataFrame) -> list[str]:
    done = cells[(cells["variant"] == "TailMix") & (cells["status"] == "ok")]
    return list(dict.fromkeys(done["dataset"]))


def _selected(
    cells: pd.DataFrame,
    runs: pd.DataFrame,
    rows: Sequence[tuple[str, str]],
    datasets: Sequence[str],
) -> pd.DataFrame:
    """Metrics and hours of the (base, variant) that were run, datasets one after the other."""
    metrics = wide(cells).reindex(columns=list(METRICS)) if len(cells) else pd.DataFrame()
    hours = runs.groupby(METHOD)["fit_cpu_s"].mean() / 3600 if "fit_cpu_s" in runs else {}
    found = [
        {
            **dict(zip(METHOD, (dataset, *row), strict=True)),
            **metrics.loc[(dataset, *row)],
            HOURS: hours.get((dataset, *row)),
        }
        for dataset in datasets
        for row in rows
        if (dataset, *row) in metrics.index
    ]
    return pd.DataFrame(found, columns=[*METHOD, *METRICS, HOURS])
