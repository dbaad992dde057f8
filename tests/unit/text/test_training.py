"""The training loop: the same weights whatever interrupts it, and however many cores there are."""

import numpy as np
import pytest
import torch
from scipy import sparse

from benchmarks.data import load
from methods.hooks import Hooks
from methods.hooks.loss_weights import LabelWeights
from methods.interface import Clock, FitContext
from methods.registry import get
from methods.text import training
from methods.text.loss import BinaryCrossEntropy, Sample, cross_entropy, mean_one
from methods.text.network import log_odds
from methods.text.optimiser import AdaptiveClip, DenseSparseAdam, WeightAverage
from methods.variants.pw import PW, PWcb

SMALL = {
    "dimensions": 8,
    "hidden": 6,
    "head": (5,),
    "max_length": 20,
    "batch_size": 40,
    "epochs": 4,
    "swa_from": 1,
    "evaluate_every": 3,
}


@pytest.fixture(scope="module")
def corpus():
    return load("tiny-text")


def weights(model):
    return {k: v.clone() for k, v in model.network.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


class KilledError(Exception):
    pass


@pytest.mark.parametrize("stop_at", [1, 8, 20])
def test_a_fit_that_was_killed_goes_on_to_the_same_weights(corpus, stop_at, tmp_path, monkeypatch):
    train, _ = corpus
    whole = get("AttentionXML", **SMALL).fit(train, seed=3)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY_S", -1.0)
    done = []

    def die(step, steps, what):
        done.append(step)
        if step == stop_at:
            raise KilledError

    with pytest.raises(KilledError):
        get("AttentionXML", **SMALL).fit(train, seed=3, checkpoint=tmp_path, progress=die)
    seen = []
    again = get("AttentionXML", **SMALL).fit(
        train, seed=3, checkpoint=tmp_path, progress=lambda step, *_: seen.append(step)
    )
    assert seen[0] == stop_at, "it went on where the last checkpoint was"
    assert_same(weights(whole), weights(again))
    assert whole.history == again.history
    assert len(whole.fit_history["loss"]) == SMALL["epochs"], "what run.json keeps"
    assert len(whole.fit_history["step"]) == len(whole.fit_history["dev nDCG@5"]) > 0


def test_cores_change_no_weight(corpus):
    train, test = corpus
    one = get("AttentionXML", **SMALL).fit(train, seed=3, threads=1)
    two = get("AttentionXML", **SMALL).fit(train, seed=3, threads=3)
    assert_same(weights(one), weights(two))
    assert (one.predict(test.inputs, 5).scores == two.predict(test.inputs, 5).scores).all()
    other = get("AttentionXML", **SMALL).fit(train, seed=4)
    assert not torch.equal(one.network.attention.vectors, other.network.attention.vectors)


def test_a_budget_that_ends_in_mid_training_keeps_the_best_weights_and_says_so(corpus):
    train, test = corpus
    clock = Clock(1e9)

    def run_out(step, steps, what):
        if step == 10:
            clock.deadline = 0.0

    method = get("AttentionXML", **{**SMALL, "epochs": 1000})
    model = method.fit(train, seed=3, clock=clock, progress=run_out)
    (note,) = model.notes
    assert note.startswith("the time budget ended training at step 10 of 7000; weights of step ")
    best_step, best = max(model.history.scores, key=lambda pair: (pair[1], -pair[0]))
    assert f"weights of step {best_step} " in note
    top = model.predict(test.inputs, 5)
    assert top.fault(len(test), test.n_labels) is None
    assert best == max(value for _, value in model.history.scores)


def test_weights_are_chosen_on_the_dev_split(corpus):
    """The kept weights score the best of all dev scores, by the averaged weights of that step."""
    from benchmarks.evaluation.metrics import score
    from methods.holdout import hold_out

    train, _ = corpus
    method = get("AttentionXML", **SMALL)
    model = method.fit(train, seed=3)
    rest, dev = hold_out(train, method.dev_size(train.meta), 3)
    value = score(model.predict(dev.inputs, 5), dev.labels, rest.labels, ks=(5,))["nDCG@5"]
    assert value == pytest.approx(max(v for _, v in model.history.scores))


def test_averaged_weights_are_the_mean():
    parameter = torch.nn.Parameter(torch.tensor([1.0, 5.0]))
    average = WeightAverage([parameter])
    for value in ([2.0, 1.0], [6.0, 0.0]):
        parameter.data = torch.tensor(value)
        average.add([parameter])
    average.swap([parameter])
    torch.testing.assert_close(parameter.data, torch.tensor([3.0, 2.0]))
    torch.testing.assert_close(average.mean[0], torch.tensor([6.0, 0.0]))


def test_clipping_is_the_original_rule():
    """At most 5 times the largest of the last five norms; a norm counts as at most 1."""
    clip = AdaptiveClip(5.0)
    parameter = torch.nn.Parameter(torch.zeros(1))

    def clipped(gradient):
        parameter.grad = torch.tensor([gradient])
        clip([parameter])
        return float(parameter.grad)

    assert clipped(0.1) == pytest.approx(0.1)  # the first is never clipped
    assert list(clip.norms) == [float("inf"), pytest.approx(0.1)]
    for _ in range(4):
        clipped(0.1)
    assert float("inf") not in clip.norms
    assert clipped(3.0) == pytest.approx(0.5, rel=1e-4)
    assert clip.norms[-1] == pytest.approx(0.2)  # twice the largest before
    assert clipped(-9.0) == pytest.approx(-1.0, rel=1e-4)


def test_sparse_rows_move_as_in_dense_adam():
    """A row that every step touches: the sparse and the dense update agree."""
    sparse_one = torch.nn.Embedding(3, 2, sparse=True)
    dense_one = torch.nn.Embedding(3, 2)
    with torch.no_grad():
        dense_one.weight.copy_(sparse_one.weight)
    ours = DenseSparseAdam([([sparse_one.weight], 2.0)], [sparse_one.weight], 0.05)
    theirs = torch.optim.Adam(dense_one.parameters(), lr=0.1)
    ids = torch.tensor([0, 2, 2])
    for step in range(4):
        for module in (sparse_one, dense_one):
            module.zero_grad()
            (module(ids) * (step + 1)).square().sum().backward()
        ours.step()
        theirs.step()
    torch.testing.assert_close(sparse_one.weight, dense_one.weight)


def test_weights_average_to_one():
    """PW eq. 24, over the labels that the network has."""
    weights = np.array([1.0, 9.0, 4.0, 2.0])
    assert mean_one(weights).mean() == pytest.approx(1.0)
    assert mean_one(weights)[1] / mean_one(weights)[3] == pytest.approx(4.5)
    hooks = Hooks(LabelWeights(weights, np.ones(4)))
    loss = cross_entropy(hooks, np.array([0, 1, 3]), True, "cpu")
    np.testing.assert_allclose(loss.positive.numpy(), [0.25, 2.25, 0.5])
    assert cross_entropy(hooks, np.array([0]), False, "cpu").positive is None, "a weight of 1"


def test_weighted_cross_entropy_is_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 4, generator=generator)
    targets = (torch.rand(5, 4, generator=generator) < 0.3).float()
    positive, negative = np.array([2.0, 0.5, 3.0, 1.0]), np.array([1.0, 2.0, 1.0, 4.0])
    plain = torch.nn.functional.binary_cross_entropy_with_logits
    torch.testing.assert_close(BinaryCrossEntropy()(logits, targets), plain(logits, targets))
    rows = (torch.from_numpy(w).float() for w in (positive, negative))
    by_hand = -(
        next(rows) * targets * torch.sigmoid(logits).log()
        + next(rows) * (1 - targets) * torch.sigmoid(-logits).log()
    )
    ours = BinaryCrossEntropy(positive, negative)(logits, targets)
    torch.testing.assert_close(ours, by_hand.mean())


def test_unbiased_cross_entropy_has_the_expectation_of_the_complete_labels():
    """PW eq. 13: over what goes missing, the mean loss is that on the complete labels."""
    p = np.array([0.25, 0.5])
    logits = torch.tensor([[0.3, -1.2]])
    complete = torch.tensor([[1.0, 1.0]])
    unbiased = BinaryCrossEntropy(scale=1 / p)
    expected = 0.0
    for first in (0, 1):
        for second in (0, 1):
            chance = (p[0] if first else 1 - p[0]) * (p[1] if second else 1 - p[1])
            observed = torch.tensor([[float(first), float(second)]])
            expected += chance * float(unbiased(logits, observed))
    assert expected == pytest.approx(float(BinaryCrossEntropy()(logits, complete)))


def test_a_sample_of_labels_has_the_expectation_of_all():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 30, generator=generator)
    targets = torch.zeros(3, 30)
    targets[0, 4] = targets[2, 7] = 1.0
    loss = BinaryCrossEntropy(positive=np.linspace(1, 2, 30))
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(2000):
        sample = Sample.draw(targets, 6, rng)
        assert {4, 7} <= set(sample.columns.tolist())
        assert len(set(sample.columns.tolist())) == 8
        columns = sample.columns
        drawn.append(float(loss(logits[:, columns], targets[:, columns], sample)))
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert abs(np.mean(drawn) - float(loss(logits, targets))) < 4 * error
    assert Sample.draw(targets, 28, rng) is None, "as many as there are: no sample"


def test_nothing_of_the_training_is_tied_to_a_device(root):
    for path in (root / "methods/text").glob("*.py"):
        assert ".cuda(" not in path.read_text(), path


def test_targets_are_the_rows_of_the_labels():
    labels = sparse.csr_matrix(np.array([[0, 1, 0], [1, 0, 1]], np.float32))
    examples = training.Examples(None, labels)
    assert examples.targets(np.array([1, 0]), "cpu").tolist() == [[1, 0, 1], [0, 1, 0]]


def test_a_context_without_hooks_trains_plain_cross_entropy():
    loss = cross_entropy(FitContext().hooks, np.arange(3), True, "cpu")
    assert (loss.positive, loss.negative, loss.scale) == (None, None, None)


@pytest.mark.parametrize("change", [None, PW(), PWcb()])
def test_labels_start_where_the_loss_of_a_constant_is_smallest(corpus, change):
    """There, the gradient of each label's logit is 0 over the training documents."""
    train, _ = corpus
    labels = np.flatnonzero(train.label_counts())
    hooks = Hooks(change.weights(train)) if change else Hooks()
    method = get("AttentionXML")
    shares = method.starting_shares(train, labels, FitContext(seed=0, hooks=hooks))
    start = log_odds(shares).float().requires_grad_()
    targets = torch.from_numpy(train.labels[:, labels].toarray())
    loss = cross_entropy(hooks, labels, method.normalise_weights, "cpu")
    loss(start.expand(len(train), -1), targets).backward()
    torch.testing.assert_close(start.grad, torch.zeros_like(start), atol=1e-7, rtol=0.0)
