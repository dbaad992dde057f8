"""Which form of RankNet made the paper's Tables 2 and 5: every reading against print.

The paper describes a network (sec. 3.2), whose settings and training scores it leaves open, and at
the end of the section "a simple instantiation" without training, F = r f. It does not say which of
them its tables show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers.ranknet_taug.tables import BASES
from benchmarks.papers.run_claims import CHANGE, differences
from benchmarks.papers.spec import Paper, load_paper
from benchmarks.records.cell import PLAIN
from benchmarks.records.cells import wide
from benchmarks.records.results import Results
from benchmarks.render.table import Table, with_interval

READINGS = {
    "RankNet-simple": "F = r f",
    "RankNet": "network, out-of-fold scores",
    "RankNet-overfitted": "network, in-sample scores",
    "RankNet-chosen": "network, out-of-fold, settings chosen here",
}
"""What each variant of a run is a reading of. In-sample: trained on scores of documents that the
base was fitted on."""
SHOWN = ("PSP@1", "PSP@3", "PSP@5", "P@1", "P@3", "P@5")
MEAN = "mean"


def printed_changes(paper: Paper) -> pd.DataFrame:
    """What RankNet changes by print: dataset, base, metric, table, before, change.

    Table 2 prints changes, Table 5 values; PSnDCG@1, which is PSP@1, is left out.
    """
    values = paper.values[paper.values["our_base"].isin(BASES)]
    key = ["our_dataset", "our_base", "our_metric"]
    rows = []
    for table, role in (("2", "delta"), ("5", "value")):
        own = values[(values["table"] == table) & (values["our_metric"] != "PSnDCG@1")]
        plain = own[(own["our_variant"] == PLAIN) & (own["role"] == "value")].set_index(key)
        changed = own[(own["our_variant"] != PLAIN) & (own["role"] == role)]
        for entry in changed.itertuples():
            place = (entry.our_dataset, entry.our_base, entry.our_metric)
            before = float(plain.loc[place, "value"])
            change = float(entry.value) - (before if role == "value" else 0.0)
            rows.append((*place, table, before, change))
    return pd.DataFrame(rows, columns=["dataset", "base", "metric", "table", "before", "change"])


def distances(cells: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """A row per dataset, base and reading of the run: how far from print it lies, in points.

    ``table 2`` and ``table 5``: mean |our change - printed change| over the table's metrics;
    ``changes``: over both; ``values``: mean |our value - printed value| of the re-ranked rows.
    """
    measured = wide(cells)
    rows = []
    for (dataset, base), own in printed.groupby(["dataset", "base"], sort=False):
        own = own.set_index("metric")
        for variant, reading in READINGS.items():
            if any((dataset, base, v) not in measured.index for v in (PLAIN, variant)):
                continue
            before, after = (measured.loc[(dataset, base, v), own.index] for v in (PLAIN, variant))
            off = ((after - before) - own["change"]).abs()
            rows.append(
                {
                    "dataset": dataset,
                    "base": base,
                    "variant": variant,
                    "reading": reading,
                    "table 2": off[own["table"] == "2"].mean(),
                    "table 5": off[own["table"] == "5"].mean(),
                    "changes": off.mean(),
                    "values": (after - own["before"] - own["change"]).abs().mean(),
                    "n_printed": len(own),
                }
            )
    columns = ["dataset", "base", "variant", "reading", "table 2", "table 5", "changes", "values"]
    return pd.DataFrame(rows, columns=[*columns, "n_printed"])


def means(found: pd.DataFrame) -> pd.DataFrame:
    """Each reading's mean distances over the pairs of dataset and base that it has.

    ``shared`` is its mean distance of changes over the pairs that the nearest reading of all, and
    it, both have; ``nearest`` the same of that reading: with unequal pairs only these compare.
    """
    numbers = ["table 2", "table 5", "changes", "values"]
    groups = found.groupby(["variant", "reading"], sort=False)
    average = groups[numbers].mean().join(groups["n_printed"].sum()).reset_index()
    if average.empty:
        return average
    pair = ["dataset", "base"]
    by = found.set_index([*pair, "variant"])["changes"].unstack()
    best = average.sort_values(["changes"])["variant"].iloc[0]
    both = {v: by[[v, best]].dropna() if v != best else by[[v]].dropna() for v in by}
    average["shared"] = [both[v][v].mean() for v in average["variant"]]
    average["nearest"] = [both[v][best].mean() for v in average["variant"]]
    average["pairs"] = [len(both[v]) for v in average["variant"]]
    return average


def sentence(found: pd.DataFrame) -> str:
    """Which reading lies nearest to print, and how far the others are."""
    average = means(found)
    if len(average) < 2:
        return "Fewer than two readings were run."
    average = average.sort_values("changes")
    first, *others = average.itertuples()
    parts = [
        f"{row.reading} {row.shared:.2f} against {row.nearest:.2f} on {row.pairs}" for row in others
    ]
    bases = found.groupby(["dataset", "base"], sort=False)["changes"].idxmin()
    nearest = found.loc[bases, "variant"]
    wins = int((nearest == first.variant).sum())
    return (
        f"Tables 2 and 5 were made with {first.reading}, as far as {first.n_printed} printed "
        f"changes tell: its mean distance from them is {first.changes:.2f} points. The others, on "
        f"the pairs of dataset and base that they share with it: {'; '.join(parts)}. It is the "
        f"nearest on {wins} of {len(nearest)} pairs."
    )


def readings(results: Results) -> Table:
    """Every reading with what it gains in PSP and costs in P, beside print, and its distances."""
    printed = printed_changes(load_paper("ranknet_taug"))
    found = distances(results.cells, printed)
    rows: list[dict[str, Any]] = []
    texts: dict[tuple[int, str], str] = {}
    bounds = {v: differences(results.intervals, v).sort_index() for v in READINGS}
    seeds = results.cells.groupby(["dataset", "base", "variant"])["seed"].nunique()
    for (dataset, base), own in found.groupby(["dataset", "base"], sort=False):
        names = {"dataset": dataset, "base": base}
        here = printed[(printed["dataset"] == dataset) & (printed["base"] == base)]
        changes = here.set_index("metric")["change"]
        rows.append({**names, "reading": "as printed", **_shown(changes)})
        for entry in own.to_dict("records"):
            change = bounds[entry["variant"]].loc[(dataset, base)]
            for metric in SHOWN:
                texts[len(rows), f"+{metric}"] = with_interval(*change.loc[metric, CHANGE])
            count = seeds[(dataset, base, entry["variant"])]
            rows.append(
                {**entry, "seeds": str(count), **_shown(change["difference"])},
            )
    for entry in means(found).to_dict("records") if len(found) else []:
        rows.append({**entry, "dataset": MEAN, "base": ""})
    columns = ["dataset", "base", "reading", "seeds", *(f"+{metric}" for metric in SHOWN)]
    columns += ["table 2", "table 5", "changes", "values"]
    frame = pd.DataFrame(rows, columns=columns).fillna({"seeds": ""})
    note = (
        "Changes in points over the plain base, brackets: 95% interval over test documents and "
        "seeds. The last four columns are mean distances from print in points: of the changes "
        "that each table prints, of all of them, and of the re-ranked rows' values."
    )
    signed = {f"+{metric}": "+.2f" for metric in SHOWN}
    keys = ["dataset", "base", "reading", "seeds"]
    return Table("", frame, keys, signed, texts, notes=[sentence(found), note])


def _shown(changes: pd.Series) -> dict[str, float]:
    return {f"+{metric}": float(changes.get(metric, np.nan)) for metric in SHOWN}
