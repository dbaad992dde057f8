"""What the RankNet+Taug paper claims, judged on the datasets of a run.

Claims about metrics are judged by intervals, those about weight norms by the medians of the tail
labels, Theorem 1 by a rank correlation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers.ranknet_taug.decoupling import decoupled_alone
from benchmarks.papers.ranknet_taug.figures import (
    AUGMENTED,
    BASE,
    Settings,
    at_usual,
    norm_correlations,
)
from benchmarks.papers.ranknet_taug.tables import BASES
from benchmarks.papers.run_claims import Change, about_changes, row
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS, UNDECIDED
from benchmarks.records.cell import PLAIN
from benchmarks.records.results import METHOD, Results
from benchmarks.render.table import MINUS

PSP = ("PSP@1", "PSP@3", "PSP@5")
P = ("P@1", "P@3", "P@5")

CHANGES = (
    Change("RankNet as F = r f raises PSP@k (Table 2)", "RankNet-simple", PSP, 1, BASES),
    Change("RankNet as F = r f lowers P@k (Table 5)", "RankNet-simple", P, -1, BASES),
    Change("RankNet's network raises PSP@k (sec. 3.2)", "RankNet", PSP, 1, BASES),
    Change("RankNet's network lowers P@k", "RankNet", P, -1, BASES),
    Change("The network, settings chosen here, raises PSP@k", "RankNet-chosen", PSP, 1, BASES),
    Change("The network, settings chosen here, lowers P@k", "RankNet-chosen", P, -1, BASES),
    Change("Taug raises PSP@k (Table 3)", AUGMENTED, PSP, 1, (BASE,)),
    Change("F = r f, Taug raises PSP@k (Table 4)", "RankNet-simple+Taug-ds", PSP, 1, (BASE,)),
    Change("The network, Taug raises PSP@k", "RankNet+Taug", PSP, 1, (BASE,)),
)
NOTE = (
    "Theorem 1 counts as holding from a rank correlation of 0.95 on. The "
    "settings of RankNet that the paper leaves open were chosen once, on held-out training "
    'documents of EURLex-4K-half, and are the same for every dataset; "settings chosen here" is '
    "RankNet with the best of 80 settings on held-out training documents of the row's own "
    "dataset, or none, if each cost more than 1.5 points of P@1 there."
)


def judge(results: Results) -> list[dict[str, Any]]:
    """All claims that the run can speak of."""
    alone = [
        Change("Decoupling alone raises PSP@k (n_aug = 0)", name, PSP, 1, (BASE,))
        for name in decoupled_alone(results.settings)
    ]
    return [
        *about_changes(results.intervals, [*CHANGES, *alone]),
        *about_norms(results.norms, results.settings),
        *about_theorem(norm_correlations(results.norms, results.predicted)),
    ]


def tail_norms(norms: pd.DataFrame, settings: Settings) -> dict[tuple[str, str], dict[int, float]]:
    """The median norm of the tail labels for each n_aug, by dataset and base.

    ``settings`` holds n_aug and tau of every variant that is Taug with both changes; those with
    the tau that most of them share are compared. Tail labels are those beyond floor(tau L).
    """
    kept = at_usual(settings, "tau")
    found: dict[tuple[str, str], dict[int, float]] = {}
    for (dataset, base, variant), part in norms.groupby(METHOD, sort=False):
        if variant in kept:
            n_labels = max(part["label"].max() + 1, part["rank"].max())
            head = np.floor(kept[variant]["tau"] * n_labels)
            median = float(part.loc[part["rank"] > head, "norm"].median())
            found.setdefault((dataset, base), {})[int(kept[variant]["n_aug"])] = median
    return found


def about_norms(norms: pd.DataFrame, settings: Settings) -> list[dict[str, Any]]:
    """Do the norms of tail labels grow with the number of copies (sec. 4.4)?"""
    claim = "Norms of tail labels grow with n_aug (sec. 4.4)"
    rows = []
    for key, medians in tail_norms(norms, settings).items():
        if len(medians) < 2:
            continue
        steps = sorted(medians)
        rising = np.diff([medians[step] for step in steps]) > 0
        said = HOLDS if rising.all() else (UNDECIDED if rising.any() else CONTRADICTED)
        pairs = ", ".join(f"{step}: {medians[step]:.3f}" for step in steps)
        rows.append(row(claim, *key, f"median norm by n_aug: {pairs}", said))
    return rows


def about_theorem(correlations: pd.DataFrame) -> list[dict[str, Any]]:
    """Is the norm proportional to how often a label is predicted (Theorem 1)?

    Proportional quantities have rank correlation 1; what is seen is given, and called "holds"
    only from 0.95 on and "contradicted" where norms and predictions are not even ordered alike.
    """
    claim = "Norm is proportional to times predicted (Theorem 1)"
    rows = []
    for found in correlations.itertuples(index=False):
        value = found.norm_vs_times
        if found.variant == PLAIN and not np.isnan(value):
            said = HOLDS if value >= 0.95 else (CONTRADICTED if value <= 0 else UNDECIDED)
            text = f"rank correlation {value:+.2f}; with the training count "
            text = f"{text}{found.norm_vs_count:+.2f}".replace("-", MINUS)
            rows.append(row(claim, found.dataset, found.base, text, said))
    return rows
