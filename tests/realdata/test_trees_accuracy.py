"""Trees on real data against the authors' own programs on the very same files."""

from __future__ import annotations

import pytest

from benchmarks.data import load
from benchmarks.evaluation.metrics import score
from methods import get

pytestmark = pytest.mark.realdata

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
TOLERANCE = 0.5

# P and PSP @1, 3, 5. Parabel: -t 3 -b 1 -c 1 -m 100 -tcl 0.1 -e 0.0001 -n 20, on EURLex-4K-half
# without the labels that have no training document; Bonsai: -t 3 -w 100 -m 2, the mean of six
# runs, as it cannot be seeded; FastXML: -t 50 -m 10 -l 100; PfastreXML: the same, -g 30 -a 0.8.
AUTHORS = {
    ("Bibtex", "Parabel"): (63.5388, 38.6216, 27.9523, 49.7272, 52.5753, 57.1719),
    ("Bibtex", "Bonsai"): (63.3665, 39.2732, 28.5527, 49.2368, 53.2183, 58.1871),
    ("Bibtex", "FastXML"): (63.4592, 39.5096, 28.7237, 48.2378, 52.6646, 57.7845),
    ("Bibtex", "PfastreXML"): (63.5785, 39.9205, 29.6461, 52.5479, 54.5642, 60.7845),
    ("EURLex-4K-half", "Parabel"): (81.0185, 68.5626, 57.5926, 32.3445, 40.5405, 45.2208),
    ("EURLex-4K-half", "Bonsai"): (81.2720, 68.9227, 57.9123, 32.4340, 40.6956, 45.7263),
    ("EURLex-4K-half", "FastXML"): (74.0079, 57.2751, 47.0767, 26.8532, 30.3652, 33.3671),
    ("EURLex-4K-half", "PfastreXML"): (73.6111, 58.1570, 48.0952, 37.0083, 38.3781, 39.9552),
}

# The forests with seed 0 draw the random numbers of the authors' default run and grow its trees,
# but for rounding; another seed grows others, as the authors' -s does.
FORESTS = {"FastXML", "PfastreXML"}
FOREST_TOLERANCE = 0.25

# Three trees vary more from seed to seed than fifty, and the authors' Bonsai is a mean, too.
SEEDS = {"Parabel": 2, "Bonsai": 3, "FastXML": 1, "PfastreXML": 1}


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    """Datasets by name, prepared once."""
    root = tmp_path_factory.mktemp("data")
    return {name: load(name, root) for name in ("Bibtex", "EURLex-4K-half")}


@pytest.mark.parametrize(("dataset", "base"), AUTHORS)
def test_no_more_than_half_a_point_below_the_authors_program(
    splits, dataset: str, base: str
) -> None:
    train, test = splits[dataset]
    values = dict.fromkeys(METRICS, 0.0)
    for seed in range(SEEDS[base]):
        top = get(base).fit(train, seed=seed, threads=2).predict(test.inputs, 100)
        assert top.fault(len(test), test.n_labels) is None
        scored = score(top, test.labels, train.labels)
        values = {name: values[name] + scored[name] / SEEDS[base] for name in METRICS}
    authors = dict(zip(METRICS, AUTHORS[dataset, base], strict=True))
    tolerance = FOREST_TOLERANCE if base in FORESTS else TOLERANCE
    below = {
        name: round(values[name] - authors[name], 2)
        for name in METRICS
        if values[name] < authors[name] - tolerance
    }
    assert not below


def test_the_authors_default_run_of_fastxml_is_a_lucky_one_on_bibtex(splits) -> None:
    # So says the README, which asks for means over seeds.
    train, test = splits["Bibtex"]
    found = []
    for seed in (0, 20, 40):
        top = get("FastXML").fit(train, seed=seed, threads=2).predict(test.inputs, 5)
        found.append(score(top, test.labels, train.labels)["P@3"])
    assert max(found[1:]) < found[0] - 0.3
