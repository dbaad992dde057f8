"""PW Table 3 on EURLex-4K comes out of the release's own steps, its fault included."""

import pytest

from benchmarks.data import load
from workflow.studies import pw_table3 as study

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


def test_the_rows_of_pw_and_pwcb_are_reproduced_to_a_tenth_of_a_point(tmp_path):
    """PW with its label ids right, PW-cb with those of its last batch rotated."""
    train, test = (study.with_labels(split) for split in load("EURLex-4K", tmp_path))
    frame = study.compared(study.readings(train, test, "released", 2, ("PW", "PW-cb")))
    frame = frame.set_index(["variant", "labels", "ranking"])[["vanilla off", "PS off"]]
    assert (frame.loc[("PW", "right", "re-ranked"), :] < 0.15).all()
    assert (frame.loc[("PW-cb", "rotated", "re-ranked"), :] < 0.15).all()
    # The other way round they are not: what is tested can fail.
    assert frame.loc[("PW", "rotated", "re-ranked"), "PS off"] > 0.8
    assert frame.loc[("PW-cb", "right", "re-ranked"), "PS off"] > 0.8
