"""The examples of a user's own method and variant are found by their configuration, and work."""

import numpy as np
import pytest
import yaml

from benchmarks.data import load
from benchmarks.evaluation.metrics import score
from methods import get
from methods.registry import assemble
from workflow.config import check, check_pairs, plan


@pytest.fixture(scope="module")
def jobs(root):
    config = check(yaml.safe_load((root / "examples/config.yaml").read_text()), "examples")
    jobs = plan(config, "examples", ["tiny-bow"])
    check_pairs(jobs, "examples", config["misfits"])
    return {(job.cell.base, job.cell.variant): assemble(job.base, job.variants) for job in jobs}


def test_every_cell_beats_guessing_and_survives_saving(jobs, tmp_path):
    train, test = load("tiny-bow")
    assert len(jobs) == 7

    def precision(top):
        return score(top, test.labels, train.labels)["P@1"]

    by_chance = precision(get("random").fit(train).predict(test.inputs, 5))
    for number, method in enumerate(jobs.values()):
        model = method.fit(train, seed=0)
        top = model.predict(test.inputs, 5)
        assert precision(top) > by_chance
        folder = tmp_path / str(number)
        folder.mkdir()
        model.save(folder)
        np.testing.assert_array_equal(
            type(model).load(folder).predict(test.inputs, 5).indices, top.indices
        )


def test_repeated_documents_weigh_more_in_a_centroid(jobs):
    train, _ = load("tiny-bow")
    plain = jobs["NearestCentroid-shrunk", "plain"].fit(train).centroids
    repeated = jobs["NearestCentroid-shrunk", "TailRepeated"].fit(train).centroids
    # Shrinking by a constant costs a label less the more documents it has, repeated ones included.
    rare = np.flatnonzero((train.label_counts() > 0) & (train.label_counts() <= 10))
    lengths = [np.sqrt(m.multiply(m).sum(axis=1)).A1[rare] for m in (plain, repeated)]
    assert (lengths[1] > lengths[0]).all()
