"""The one vocabulary of verdicts: what is said of a printed value, of a claim, of a print itself.

Values: ``contradicted`` (the change over the base has not the printed sign, and its interval
excludes zero; this comes first), ``reproduced`` (within tolerance), ``same direction`` (outside it,
but with the printed sign), ``outside tolerance`` (anything else that was measured). Claims:
``holds``, ``contradicted``, ``undecided`` (it fails, but the interval of the difference holds
zero), ``no change``. Where nothing was measured: ``failed``, ``not run``, ``not applicable``, each
with a reason. Checks of print against print: ``ok`` and the findings beside it, the gravest first.
"""

from __future__ import annotations

REPRODUCED = "reproduced"
SAME_DIRECTION = "same direction"
OUTSIDE = "outside tolerance"
CONTRADICTED = "contradicted"
HOLDS = "holds"
UNDECIDED = "undecided"
NO_CHANGE = "no change"
FAILED = "failed"
NOT_RUN = "not run"
NOT_APPLICABLE = "not applicable"

OF_VALUES = (REPRODUCED, SAME_DIRECTION, OUTSIDE, CONTRADICTED)
OF_CLAIMS = (HOLDS, CONTRADICTED, UNDECIDED, NO_CHANGE)
MEASURED = tuple(dict.fromkeys((*OF_VALUES, *OF_CLAIMS)))
MISSING = (FAILED, NOT_RUN, NOT_APPLICABLE)
OUTCOMES = (*MEASURED, *MISSING)

IMPOSSIBLE = "impossible"
DOES_NOT_FOLLOW = "does not follow"
DISAGREES = "disagrees"
ODD = "odd"
NOTE = "note"
OK = "ok"
OF_PRINT = (IMPOSSIBLE, DOES_NOT_FOLLOW, DISAGREES, ODD, NOTE, OK)

MEANING = {
    IMPOSSIBLE: "no set of predictions can give these values",
    DOES_NOT_FOLLOW: "the print does not follow from the cells it rests on",
    DISAGREES: "one quantity is printed as two",
    ODD: "possible, but out of line with everything around it",
    NOTE: "holds under one reading only, or worth knowing",
}
"""What a finding means, for its reader."""
