"""Every deep text model of the demo, with its settings there, reads: it clearly beats a guess."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.data import load
from benchmarks.data.errors import DataError
from benchmarks.data.prepare import ensure
from benchmarks.evaluation.metrics import score
from methods import get
from methods.registry import assemble
from workflow.config import check, derive_seed, plan

ROOT = Path(__file__).resolve().parents[2]
CORPUS = "demo-text"
CLEARLY = 10.0
"""Points of P@1 above popularity."""


def jobs():
    config = check(yaml.safe_load((ROOT / "config/config.yaml").read_text()), "the demo")
    found = plan(config, "the demo", ["demo-bow", CORPUS])
    reads = (job for job in found if job.cell.dataset == CORPUS)
    return [job for job in reads if assemble(job.base, job.variants).needs & {"tokens", "texts"}]


JOBS = {f"{job.cell.base} {job.cell.variant}": job for job in jobs()}


@cache
def part():
    """A quarter of the corpus with a tenth of its labels: a fit takes seconds."""
    train, test = load(CORPUS)
    kept = np.sort(np.argsort(-train.label_counts(), kind="stable")[:40])

    def cut(split, n):
        some = split.take(np.arange(n)).observed()
        meta = {**split.meta, "n_train": 750, "n_test": 300, "n_labels": len(kept)}
        return replace(some, labels=some.labels[:, kept], meta=meta)

    return cut(train, 750), cut(test, 300)


def precision(model):
    train, test = part()
    return score(model.predict(test.inputs, 5), test.labels, train.labels)["P@1"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("resources")


@pytest.mark.parametrize("name", JOBS)
def test_a_deep_text_model_of_the_demo_beats_popularity_clearly(name, folder):
    job = JOBS[name]
    method = assemble(job.base, job.variants)
    try:
        resources = {need: ensure(need, folder) for need in method.resources}
    except DataError as error:
        pytest.skip(str(error))
    train, _ = part()
    model = method.fit(train, seed=derive_seed(job.cell), resources=resources)
    assert precision(model) > precision(get("popularity").fit(train)) + CLEARLY


def test_the_demo_has_the_deep_text_models():
    """What it skips for want of weights is trained on tiny encoders in the tests of all methods."""
    found = {job.cell.base.removesuffix("-short") for job in JOBS.values()}
    assert {"AttentionXML", "AttentionXML-tree", "XML-CNN", "LaMiniLM", "APLC-MiniLM"} <= found
    assert {"HTTN", "EHTTN", "Joint", "DXML", "OLTR", "Imprinting", "BBN", "LTMCP"} <= found
    changed = {job.cell.variant for job in JOBS.values()}
    assert {"PW", "PW-cb", "unbiased-bce", "TailMix", "wordMix", "hiddenMix", "SSMix"} <= changed
