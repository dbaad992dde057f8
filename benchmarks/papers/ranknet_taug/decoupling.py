"""What Taug does by training head and tail apart, and what by its copies, dataset by dataset."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.papers.ranknet_taug.figures import AUGMENTED, BASE, Settings, at_usual
from benchmarks.papers.run_claims import CHANGE, differences
from benchmarks.records.results import Results
from benchmarks.render.table import Table, with_interval

SHOWN = ("PSP@1", "PSP@3", "PSP@5", "P@1", "P@3", "P@5")


def decoupled_alone(settings: Settings) -> list[str]:
    """The variants of a run that are Taug with no copies at the usual tau."""
    return [name for name, own in at_usual(settings, "tau").items() if own["n_aug"] == 0]


def decoupling(results: Results) -> Table:
    """Changes over the plain base by decoupling alone (n_aug = 0) and with the copies.

    The least number of training documents of a label says whether there is a tail to rescue.
    """
    rows: list[dict[str, Any]] = []
    texts: dict[tuple[int, str], str] = {}
    steps = dict.fromkeys(decoupled_alone(results.settings), "decoupling alone")
    steps[AUGMENTED] = "with copies"
    found = {name: differences(results.intervals, name).sort_index() for name in steps}
    datasets = dict.fromkeys(results.intervals["dataset"])
    for dataset in datasets:
        for name, step in steps.items():
            if (dataset, BASE) not in {key[:2] for key in found[name].index}:
                continue
            changes = found[name].loc[(dataset, BASE)]
            counts = results.training[dataset].label_counts()
            row = {"dataset": dataset, "least docs/label": str(counts[counts > 0].min())}
            row |= {"labels below 5 docs": f"{((counts > 0) & (counts < 5)).sum():,}"}
            for metric in SHOWN:
                texts[len(rows), f"+{metric}"] = with_interval(*changes.loc[metric, CHANGE])
            values = {f"+{metric}": float(changes.loc[metric, "difference"]) for metric in SHOWN}
            rows.append({**row, "Taug": step, **values})
    keys = ["dataset", "least docs/label", "labels below 5 docs", "Taug"]
    columns = [*keys, *(f"+{metric}" for metric in SHOWN)]
    note = (
        "Bonsai; changes in points over the plain base, 95% interval over test documents and "
        "seeds. A dataset whose rarest label has dozens of documents has no tail to rescue."
    )
    return Table("", pd.DataFrame(rows, columns=columns), keys, texts=texts, notes=[note])
