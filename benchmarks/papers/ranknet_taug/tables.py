"""Tables 2 to 6 of the RankNet+Taug paper, from the collected cells of a run.

``cells`` is the long frame of results: dataset, base, variant, seed, metric, k, convention, bin,
value. Seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.papers.run_claims import differences
from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import wide
from benchmarks.render.table import Table, with_interval

BASES = ("FastXML", "Bonsai", "Parabel")
PROPENSITY_SCORED = ("PSP@1", "PSP@3", "PSP@5", "PSnDCG@1", "PSnDCG@3", "PSnDCG@5")
PLAIN_METRICS = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5")
ABLATION = ("PSP@1", "PSP@3", "PSP@5", "PSnDCG@3", "PSnDCG@5")
FOR_THE_TAIL = {
    "PfastreXML": ("PfastreXML", PLAIN),
    "Bonsai": ("Bonsai", PLAIN),
    "F = r f (Bonsai)": ("Bonsai", "RankNet-simple"),
    "F = r f, Taug (Bonsai)": ("Bonsai", "RankNet-simple+Taug-ds"),
    "network (Bonsai)": ("Bonsai", "RankNet"),
    "network, Taug (Bonsai)": ("Bonsai", "RankNet+Taug"),
}
"""Columns of Table 4 that can be run, RankNet in both of its forms, beside the plain base."""
OWN = tuple(FOR_THE_TAIL)[2:]


def improvements(cells: pd.DataFrame, variant: str, bases: Sequence[str] = BASES) -> pd.DataFrame:
    """Tables 2 and 3: each base's PSP@k and PSnDCG@k, and by how many points a variant moves them.

    Columns: dataset, base, ``<metric>``, ``+<metric>``, and the mean change over the metrics of
    each family (``+PSP``, ``+PSnDCG``), as the paper's column "Avg.". Pairs of which one half is
    missing are left out.
    """
    table = wide(cells)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        for base in bases:
            plain, changed = (dataset, base, PLAIN), (dataset, base, variant)
            if plain not in table.index or changed not in table.index:
                continue
            before = table.loc[plain].reindex(PROPENSITY_SCORED)
            changes = table.loc[changed].reindex(PROPENSITY_SCORED) - before
            row = {"dataset": dataset, "base": base, **before, **changes.add_prefix("+")}
            for family in ("PSP", "PSnDCG"):
                row[f"+{family}"] = changes[changes.index.str.startswith(f"{family}@")].mean()
            rows.append(row)
    return pd.DataFrame(rows)


def gains(
    cells: pd.DataFrame, intervals: pd.DataFrame, variant: str, bases: Sequence[str] = BASES
) -> Table:
    """:func:`improvements` with the interval of every change."""
    frame = improvements(cells, variant, bases)
    bounds = differences(intervals, variant)
    texts = {}
    for number, row in enumerate(frame.to_dict("records")):
        for column in frame.columns:
            key = (row["dataset"], row["base"], column.removeprefix("+"))
            if column.startswith("+") and key in bounds.index:
                low, high = bounds.loc[key, ["difference_low", "difference_high"]]
                texts[number, column] = with_interval(row[column], low, high)
    signed = {column: "+.2f" for column in frame.columns if column.startswith("+")}
    note = "Changes in points; brackets: 95% interval over test documents and seeds."
    # PSnDCG@1 is PSP@1: printed once.
    hidden = ["PSnDCG@1", "+PSnDCG@1"]
    return Table("", frame, ["dataset", "base"], signed, texts, notes=[note], hidden=hidden)


def table4(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 4: PSP@k of the methods for the tail, a column each; a row per dataset and k."""
    table = wide(cells)
    rows = []
    for dataset in dict.fromkeys(table.index.get_level_values("dataset")):
        there = {
            name: table.loc[(dataset, *key)]
            for name, key in FOR_THE_TAIL.items()
            if (dataset, *key) in table.index
        }
        # A comparison needs one of the paper's own and something beside it.
        if len(there) < 2 or not any(name in OWN for name in there):
            continue
        for metric in PROPENSITY_SCORED[:3]:
            found = {name: values.get(metric, np.nan) for name, values in there.items()}
            rows.append({"dataset": dataset, "metric": metric, **found})
    return pd.DataFrame(rows, columns=["dataset", "metric", *FOR_THE_TAIL])


def table5(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 5: P@k and nDCG@k of each base with and without re-ranking, row by row."""
    methods = {
        (base, variant): f"{base}{suffix}"
        for base in BASES
        for variant, suffix in {
            PLAIN: "",
            "RankNet-simple": ", F = r f",
            "RankNet": ", network",
        }.items()
    }
    return _by_method(cells, methods, PLAIN_METRICS)


def table6(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 6: dropout and swap apart and together, on Bonsai."""
    methods = {("Bonsai", PLAIN): "baseline"}
    methods |= {("Bonsai", variant): variant for variant in ("Taug-d", "Taug-s", "Taug-ds")}
    return _by_method(cells, methods, ABLATION)


def _by_method(
    cells: pd.DataFrame, methods: dict[tuple[str, str], str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Metrics of the (base, variant) that were run; columns dataset, method, metrics."""
    table = wide(cells).reindex(columns=list(metrics))
    rows = [
        {"dataset": dataset, "method": name, **table.loc[(dataset, *key)]}
        for dataset in dict.fromkeys(table.index.get_level_values("dataset"))
        for key, name in methods.items()
        if (dataset, *key) in table.index
    ]
    return pd.DataFrame(rows)
