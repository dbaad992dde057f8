"""Whether a run follows the authors' program: by its losses, and by the spread of its seeds."""

import pandas as pd
import pytest

from workflow.studies.followed import LAST, LOSS, SCORES, beside, departures, text


def original(losses, first):
    rows = [(epoch + 1, LOSS, value) for epoch, value in enumerate(losses)]
    rows += [(LAST, metric, first) for metric in SCORES]
    return pd.DataFrame(rows, columns=["epoch", "metric", "value"])


def compared(ours, firsts, theirs=(0.02, 0.02, 0.01), first=35.0):
    scores = pd.DataFrame(
        {seed: [value] * len(SCORES) for seed, value in enumerate(firsts)}, SCORES
    )
    seeds = {seed: list(ours) for seed in range(len(firsts))}
    return beside(original(theirs, first), seeds, scores)


def test_a_run_that_follows_has_no_departure_and_its_first_epochs_are_free():
    table = compared([0.5, 0.5, 0.0104], [34.0, 36.0, 37.0])
    assert departures(table.frame) == []
    assert "| loss | 3 | 0.01000 | 0.01040 | 0.01040 | 0.01040 | +4.0 % |" in text(table)


@pytest.mark.parametrize("last", [0.0106, 0.0094])
def test_a_loss_more_than_five_per_cent_off_is_a_departure(last):
    (found,) = departures(compared([0.02, 0.02, last], [34.0, 36.0, 37.0]).frame)
    assert found.startswith("loss of epoch 3: ")


@pytest.mark.parametrize(("first", "n"), [(31.1, 0), (30.9, 1), (39.9, 0), (40.1, 1)])
def test_their_score_may_lie_as_far_outside_our_seeds_as_these_lie_apart(first, n):
    table = compared([0.02, 0.02, 0.01], [34.0, 36.0, 37.0], first=first)
    assert len(departures(table.frame)) == n
