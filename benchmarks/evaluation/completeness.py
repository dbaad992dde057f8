"""The true metric beside its propensity-scored estimate, where complete labels are known.

Only synthetic data know every label a document should carry. There the promise of the PS metrics
can be checked: weighting each observed hit by 1 / p makes its expectation that of the complete
labels (PW eqs. 4-6), if the propensities are right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.evaluation.metrics import Ranking, evaluate
from benchmarks.evaluation.propensity import DEFAULT_A, DEFAULT_B


def true_beside_estimate(
    top: Ranking,
    labels: sparse.csr_matrix,
    complete: sparse.csr_matrix,
    train_labels: sparse.csr_matrix,
    *,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    ks: Sequence[int] = (1, 3, 5),
) -> pd.DataFrame:
    """One row for each k, in percent, of precision seen three ways, and of the printed PSP.

    ``observed``: P@k on the labels as observed. ``estimate``: P@k with hits weighted by inverse
    propensity and no normaliser, which estimates ``true``: P@k on the complete labels.
    ``normalised``: PSP@k as the field prints it, over its ideal; ``true_normalised``: the true
    P@k over the best a ranking could reach on the complete labels.
    """
    if labels.shape != complete.shape:
        raise ValueError(f"observed labels are {labels.shape}, complete ones {complete.shape}")
    if (labels > complete).nnz:
        raise ValueError("an observed label is missing from the complete labels")
    observed = evaluate(top, labels, train_labels, A=A, B=B, ks=ks)
    truth = evaluate(top, complete, train_labels, A=A, B=B, ks=ks)
    n = labels.shape[0]
    n_true = np.diff(complete.indptr)
    rows = []
    for k in sorted(set(ks)):
        true = truth.values()[f"P@{k}"]
        reachable = 100.0 * float(np.minimum(n_true, k).sum()) / (n * k)
        rows.append(
            {
                "metric": "P",
                "k": k,
                "observed": observed.values()[f"P@{k}"],
                "estimate": 100.0 * float(observed.numerators[f"PSP@{k}"].sum()) / (n * k),
                "true": true,
                "normalised": observed.values()[f"PSP@{k}"],
                "true_normalised": 100.0 * true / reachable if reachable else float("nan"),
            }
        )
    return pd.DataFrame(rows)
