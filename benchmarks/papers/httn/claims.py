"""What the HTTN paper claims, judged on the datasets of a run.

Claims about a setting are judged by the paired intervals of variants against their base. Those
that compare two methods resample the test documents of both cells' predictions, of one seed each.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import paired_bootstrap
from benchmarks.papers.httn import rows
from benchmarks.papers.run_claims import differences, row, verdict
from benchmarks.records.cell import PLAIN
from benchmarks.records.results import Results
from benchmarks.render.table import MINUS

F1, RANKED = "microF1", "nDCG@5"
JUDGED = (F1, "batchF1", RANKED)
"""batchF1 is the paper's averaging of F1: the mean over batches of 90 documents."""
NOTE = (
    "Tail labels are the rarest third of those that occur in training; their F1 is the micro-F1 "
    "over these labels at probability 0.5, and their nDCG@5 that of a ranking of these labels "
    "alone, where every label was ranked. The best member is the best of the members that were "
    "run, chosen on the same test documents it is judged on. Comparisons of two methods rest on "
    "one seed each: another seed may move them by more than the interval."
)


def judge(results: Results) -> list[dict[str, Any]]:
    """All claims that the run can speak of."""
    return [
        *about_tail(results),
        *about_head(results),
        *about_members(results),
        *about_ablation(results.intervals),
        *about_draws(results),
    ]


def about_tail(results: Results) -> list[dict[str, Any]]:
    """Does HTTN beat Joint and BBN on tail labels (Fig. 4)? In F1, as printed, and in ranking."""
    tails: dict[str, dict[str, Evaluation]] = {}
    cut: set[str] = set()
    for cell, top in results.rankings():
        method = rows.method_of(cell.base)
        if method is not None and cell.variant == PLAIN:
            train, test = results.training[cell.dataset], results.testing[cell.dataset]
            found = rows.tail_evaluation(top, train, test, rows.tail_labels(train))
            tails.setdefault(cell.dataset, {})[method] = found
            if top.k < train.n_labels:
                cut.add(cell.dataset)
    judged = []
    for dataset, by_method in tails.items():
        for method in ("HTTN", "EHTTN"):
            for other in ("Joint", "BBN"):
                if {method, other} <= by_method.keys():
                    pair = paired_bootstrap(by_method[other], by_method[method])
                    changes = pair.set_index("metric")
                    for claim, metric in (
                        (f"{method} beats {other} on tail labels (Fig. 4)", F1),
                        (f"{method} ranks tail labels better than {other} (not printed)", RANKED),
                    ):
                        # Tail labels that a shorter ranking leaves out are not the worst ranked.
                        if metric == F1 or dataset not in cut:
                            name = f"tail {metric}"
                            judged.append(
                                _judged(claim, dataset, method, changes.loc[metric], name)
                            )
    return judged


def about_head(results: Results) -> list[dict[str, Any]]:
    """Do more head labels, so a shorter tail, help (sec. 4.2)?"""
    judged = []
    for variant, size in rows.only("l_tail", results.settings).items():
        for (dataset, base, metric), change in differences(results.intervals, variant).iterrows():
            method = rows.method_of(base)
            usual = len(rows.tail_labels(results.training[dataset]))
            if method in ("HTTN", "EHTTN") and metric in JUDGED and size < usual:
                claim = f"More head labels help {method} (sec. 4.2)"
                name = f"{metric}, l_tail {usual} to {size:g},"
                judged.append(_judged(claim, dataset, base, change, name))
    return judged


def about_members(results: Results) -> list[dict[str, Any]]:
    """Does the ensemble beat its best member (Fig. 6)?"""
    members = rows.only("member", results.settings)
    changes = {variant: differences(results.intervals, variant) for variant in members}
    keys = dict.fromkeys(key for found in changes.values() for key in found.index)
    judged = []
    for dataset, base, metric in keys:
        if metric not in JUDGED:
            continue
        key = (dataset, base, metric)
        own = [found.loc[key] for found in changes.values() if key in found.index]
        best = max(own, key=lambda change: change["difference"])
        name = f"{metric}, best of {len(own)} members against the ensemble,"
        claim = "The ensemble beats its best member (Fig. 6)"
        judged.append(_judged(claim, dataset, base, best, name, sign=-1))
    return judged


def about_ablation(intervals: pd.DataFrame) -> list[dict[str, Any]]:
    """Do fine-tuning and attention help (Fig. 3)?"""
    claims = {
        "H-F": "Fine-tuning helps: without it HTTN is worse (Fig. 3)",
        "H-F-A": "Attention and fine-tuning help: without them HTTN is worse (Fig. 3)",
    }
    return [
        _judged(claim, dataset, base, change, metric, sign=-1)
        for variant, claim in claims.items()
        for (dataset, base, metric), change in differences(intervals, variant).iterrows()
        if metric in JUDGED
    ]


def about_draws(results: Results) -> list[dict[str, Any]]:
    """Is a transfer learner from 5 draws worse than from the base's 30 (Fig. 5)?"""
    judged = []
    for variant, S in rows.only("S", results.settings).items():
        if S == 5:
            for key, change in differences(results.intervals, variant).iterrows():
                dataset, base, metric = key
                if metric == F1:
                    claim = "Few draws of head prototypes cost F1 (Fig. 5)"
                    name = f"{metric}, S = 5 against the base's,"
                    judged.append(_judged(claim, dataset, base, change, name, sign=-1))
    return judged


def _judged(
    claim: str, dataset: str, base: str, change: pd.Series, name: str, sign: int = 1
) -> dict[str, Any]:
    value, low, high = (
        float(change[column]) for column in ("difference", "difference_low", "difference_high")
    )
    text = f"{name} {value:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", MINUS)
    return row(claim, dataset, base, text, verdict(low, high, sign))
