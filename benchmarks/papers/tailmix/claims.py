"""What the TailMix paper claims of its ways to mix, judged on the datasets of a run.

A claim that TailMix beats another variant is judged by the paired differences of the two, one that
it beats its base by those of ``intervals.csv``. Claims about time compare the fits of one run.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.papers.run_claims import Change, about_changes, row
from benchmarks.papers.tailmix.tables import BASES, RIVALS
from benchmarks.papers.verdicts import CONTRADICTED, HOLDS
from benchmarks.records.results import METHOD, Results

PSP = ("PSP@1", "PSP@3", "PSP@5")
PSNDCG = ("PSnDCG@3", "PSnDCG@5")
P = ("P@1", "P@3", "P@5")
NOTE = (
    "TailMix over another variant: the difference of the two on the same test documents, seed by "
    "seed. Times: mean processor time of the fits of this run, without an interval."
)

OVER_PLAIN = (
    Change("TailMix raises PSP@k over the plain base (Table 2)", "TailMix", PSP, 1, BASES),
    Change("TailMix raises PSnDCG@k over the plain base (Table 2)", "TailMix", PSNDCG, 1, BASES),
    Change("TailMix raises P@k over the plain base (sec. 4.2)", "TailMix", P, 1, BASES),
)
OVER_OTHERS = {
    **{
        rival: Change(
            f"TailMix has a higher PSP@k than {rival} (Table 3)", "TailMix", PSP, 1, BASES
        )
        for rival in RIVALS
    },
    "TailMix-nosim": Change(
        "Similarity raises PSP@k of TailMix (Table 4, Sim)", "TailMix", PSP, 1, BASES
    ),
    "TailMix-nolpg": Change(
        "The label proximity graph raises PSP@k of TailMix (Table 4, LPG)", "TailMix", PSP, 1, BASES
    ),
    "TailMix-nosim-nolpg": Change(
        "Both together raise PSP@k of TailMix (Table 4)", "TailMix", PSP, 1, BASES
    ),
}


def judge(results: Results) -> list[dict[str, Any]]:
    """All claims that the run can speak of."""
    found = about_changes(results.intervals, OVER_PLAIN)
    run = set(results.cells["variant"])
    for other, claim in OVER_OTHERS.items():
        if {other, claim.variant} <= run:
            found += about_changes(results.differences_over(other), [claim])
    return [*found, *about_time(results.runs)]


def about_time(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Does TailMix train faster than SSMix, and without the graph more slowly (sec. 4.2)?"""
    if "fit_cpu_s" not in runs:
        return []
    done = runs[runs["status"] == "ok"]
    seconds = done.groupby(METHOD, sort=False)["fit_cpu_s"].mean()
    claims = (
        ("TailMix trains faster than SSMix (Table 3)", "TailMix", "SSMix"),
        ("The label proximity graph saves training time (Table 4)", "TailMix", "TailMix-nolpg"),
    )
    rows = []
    for claim, faster, slower in claims:
        for dataset, base, variant in seconds.index:
            if variant == slower and (dataset, base, faster) in seconds.index:
                one, other = seconds[dataset, base, faster], seconds[dataset, base, slower]
                said = HOLDS if one < other else CONTRADICTED
                text = f"{one / 60:.1f} min against {other / 60:.1f} min"
                rows.append(row(claim, dataset, base, text, said))
    return rows
