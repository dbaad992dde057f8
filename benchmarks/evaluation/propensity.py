"""The propensity model of Jain et al. (PW eq. 3): how likely a true label is to be observed."""

from __future__ import annotations

import numpy as np

DEFAULT_A = 0.55
DEFAULT_B = 1.5
LEAST_DOCUMENTS = 3


def inverse_propensity(
    counts: np.ndarray, n_train: int, A: float = DEFAULT_A, B: float = DEFAULT_B
) -> np.ndarray:
    """1 / p of each label from its number of training documents (PW eq. 3, natural log).

    ``n_train`` counts all training rows, those without labels included. The constant
    C = (ln N - 1)(B + 1)^A is negative for N < e, where the model is undefined.
    """
    if n_train < LEAST_DOCUMENTS:
        raise ValueError(
            f"the propensity model needs at least {LEAST_DOCUMENTS} documents, not {n_train}"
        )
    C = (np.log(n_train) - 1.0) * (B + 1.0) ** A
    return 1.0 + C * (np.asarray(counts, dtype=np.float64) + B) ** (-A)
