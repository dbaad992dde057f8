"""What the HTTN paper claims, judged on the datasets of a run.

Claims about a setting are judged by the paired intervals of variants against their base. Those
that compare two methods resample the test documents of both cells' predictions, seed by seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchmarks.papers.httn import rows
from benchmarks.papers.httn.comparison import RANKING, TAIL, WHOLE, Measured, difference, measured
from benchmarks.papers.run_claims import about_change, differences
from benchmarks.records.results import Results

F1, RANKED = "microF1", "nDCG@5"
JUDGED = (F1, RANKED)
"""Not batchF1, the paper's averaging of F1: the documents of a batch share one value, so resampling
documents makes its intervals far too narrow."""
NOTE = (
    "Tail labels are the rarest third of those that occur in training; their F1 is the micro-F1 "
    "over these labels at probability 0.5, and their nDCG@5 that of a ranking of these labels "
    "alone over the documents that carry one, where every label was ranked. The best member is "
    "the best of the members that were run, chosen on the same test documents it is judged on. "
    "Another seed may move a comparison of two methods that was run with one "
    "by more than the interval."
)

Compared = Mapping[str, Mapping[str, Measured]]


def judge(results: Results) -> list[dict[str, Any]]:
    """All claims that the run can speak of."""
    compared = measured(results)
    return [
        *about_tail(compared),
        *about_rivals(compared),
        *about_head(results),
        *about_members(results),
        *about_ablation(results.intervals),
        *about_draws(results),
    ]


def about_rivals(compared: Compared) -> list[dict[str, Any]]:
    """Does HTTN beat each rival over all labels (Tables 2 to 4)?"""
    judged = []
    for other in rows.METHODS[:-2]:
        claim = f"HTTN beats {other} over all labels (Tables 2 to 4)"
        for dataset, by_method in compared.items():
            if {"HTTN", other} <= by_method.keys():
                for metric in ("P@1", RANKED, F1):
                    pair = by_method[other], by_method["HTTN"]
                    judged += _compared(claim, dataset, "HTTN", *pair, WHOLE, metric)
    return judged


def about_tail(compared: Compared) -> list[dict[str, Any]]:
    """Does HTTN beat Joint and BBN on tail labels (Fig. 4)? In F1, as printed, and in ranking."""
    judged = []
    for dataset, by_method in compared.items():
        for method, other in itertools.product(("HTTN", "EHTTN"), ("Joint", "BBN")):
            if {method, other} <= by_method.keys():
                pair = by_method[other], by_method[method]
                claim = f"{method} beats {other} on tail labels (Fig. 4)"
                judged += _compared(claim, dataset, method, *pair, TAIL, F1)
                claim = f"{method} ranks tail labels better than {other} (not printed)"
                judged += _compared(claim, dataset, method, *pair, RANKING, RANKED)
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
                judged.append(about_change(claim, dataset, base, change, name))
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
        judged.append(about_change(claim, dataset, base, best, name, sign=-1))
    return judged


def about_ablation(intervals: pd.DataFrame) -> list[dict[str, Any]]:
    """Do fine-tuning and attention help (Fig. 3)?"""
    claims = {
        "H-F": "Fine-tuning helps: without it HTTN is worse (Fig. 3)",
        "H-F-A": "Attention and fine-tuning help: without them HTTN is worse (Fig. 3)",
    }
    return [
        about_change(claim, dataset, base, change, metric, sign=-1)
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
                    judged.append(about_change(claim, dataset, base, change, name, sign=-1))
    return judged


def _compared(
    claim: str, dataset: str, method: str, base: Measured, own: Measured, part: str, metric: str
) -> list[dict[str, Any]]:
    """The claim judged on two methods' predictions; nothing where the part was not measured."""
    found = difference(base, own, part, metric)
    name = metric if part == WHOLE else f"tail {metric}"
    return [] if found is None else [about_change(claim, dataset, method, found, name)]
