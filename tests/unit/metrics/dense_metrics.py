"""A plain, dense implementation of every metric and convention, by loops over lists.

Written from the definitions and sharing no code with the package, to be compared with it.
"""

from __future__ import annotations

import math

CONVENTIONS = {
    "xc-matlab": {},
    "pyxclib": {"psndcg_rows": True},
    "attentionxml": {},
    "dismec-java": {"psndcg_rows": True, "drop_empty": True, "rerank": True},
    "aplc": {"fixed": True},
    "httn": {"batch": 90},
    "glas": {"test_propensity": True},
}


def weights(truth: list[list[int]], A: float, B: float, drop_empty: bool) -> list[float]:
    """Inverse propensity of each column of a dense 0/1 matrix."""
    N = sum(1 for row in truth if any(row) or not drop_empty)
    C = (math.log(N) - 1) * (B + 1) ** A
    return [1 + C * (sum(column) + B) ** -A for column in zip(*truth, strict=True)]


def rerank(ranked: list[int], scores: dict[int, float], w: list[float]) -> list[int]:
    """DiSMEC's second ranking of the top 5."""
    left, out = ranked[:5], []
    while left:
        pick = left[0]
        for label in left[1:]:
            if scores[label] > 0 and w[label] > w[pick]:
                pick = label
        left.remove(pick)
        out.append(pick)
    return out + ranked[5:]


def metrics(
    ranked: list[list[int]],
    scores: list[dict[int, float]],
    truth: list[list[int]],
    train: list[list[int]],
    A: float,
    B: float,
    ks: tuple[int, ...],
    convention: str,
) -> dict[str, float]:
    """Every ranking metric in percent; NaN where a denominator is 0."""
    how = CONVENTIONS[convention]
    w = weights(truth if how.get("test_propensity") else train, A, B, bool(how.get("drop_empty")))
    rows = list(range(len(truth)))
    if how.get("drop_empty"):
        rows = [i for i in rows if any(truth[i])]
    batch = how.get("batch")
    if batch and len(rows) >= batch:
        rows = rows[: len(rows) // batch * batch]
    out: dict[str, float] = {}
    for k in ks:
        totals = {"P": 0.0, "R": 0.0, "nDCG": 0.0}
        ps = {"PSP": [0.0, 0.0], "PSnDCG": [0.0, 0.0]}
        found, occurring = set(), set()
        for i in rows:
            true = [label for label, y in enumerate(truth[i]) if y]
            occurring |= set(true)
            top = ranked[i][:k]
            gains = [1.0 if label in true else 0.0 for label in top]
            found |= set(top) & set(true)
            dcg = sum(g / math.log2(j + 2) for j, g in enumerate(gains))
            places = k if how.get("fixed") else min(k, len(true))
            best = sum(1 / math.log2(j + 2) for j in range(places))
            totals["P"] += sum(gains) / k
            totals["R"] += sum(gains) / len(true) if true else 0.0
            totals["nDCG"] += dcg / best if true else 0.0
            ps_top = (rerank(ranked[i], scores[i], w) if how.get("rerank") else ranked[i])[:k]
            ideal = sorted((w[label] for label in true), reverse=True)[:k]
            norm = 1.0
            if how.get("psndcg_rows") and true:
                norm = sum(1 / math.log2(j + 2) for j in range(min(k, len(true))))
            for j, label in enumerate(ps_top):
                if label in true:
                    ps["PSP"][0] += w[label]
                    ps["PSnDCG"][0] += w[label] / math.log2(j + 2) / norm
            ps["PSP"][1] += sum(ideal)
            ps["PSnDCG"][1] += sum(g / math.log2(j + 2) for j, g in enumerate(ideal)) / norm
        for name, total in totals.items():
            out[f"{name}@{k}"] = 100 * total / len(rows) if rows else math.nan
        for name, (top_sum, best_sum) in ps.items():
            out[f"{name}@{k}"] = 100 * top_sum / best_sum if best_sum else math.nan
        out[f"Cov@{k}"] = 100 * len(found) / len(occurring) if occurring else math.nan
    return out
