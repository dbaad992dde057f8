"""Mixers inside a network's forward pass: what they change, what they cost, when they start."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from benchmarks.data import load
from methods.hooks import Hooks
from methods.interface import FitContext
from methods.registry import MisfitError, get
from methods.text.batches import Documents
from methods.text.embedding import WordEmbedding
from methods.text.loss import BatchLoss, BinaryCrossEntropy
from methods.text.network import BiLSTMAttention
from methods.text.training import Examples, Schedule, Trainer
from methods.variants.interpolation import draw_share, interpolated_targets
from methods.variants.mixup import HiddenStateMixer, SpanMixer, TailMixer, WordMixer
from methods.variants.tailmix_pairs import EveryOtherLabel, LabelGraph, Rule, mixed_targets, select

N, L, WORDS = 12, 9, 30


def small(seed=0, match=0.0):
    """Examples of a few documents and an untrained network without dropout for them."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 12, N)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    documents = Documents(indptr, rng.integers(2, WORDS, indptr[-1]), 20)
    labels = sparse.csr_matrix((rng.random((N, L)) < 0.35).astype(np.float32))
    torch.manual_seed(seed)
    words = WordEmbedding(rng.normal(size=(WORDS, 6)).astype(np.float32), False, 0.0)
    return Examples(documents, labels), BiLSTMAttention(words, 4, (5,), L, 0.0, 1.0, match)


def whole(examples):
    rows = np.arange(N)
    return examples.documents.batch(rows), examples.targets(rows, "cpu")


def loss_with(mixer, examples, network, seed=5):
    batch, targets = whole(examples)
    objective = BatchLoss.of(Hooks(mixer), BinaryCrossEntropy())
    return objective(network, batch, targets, 0, np.random.default_rng(seed))


@pytest.mark.parametrize("match", [0.0, 0.7])
@pytest.mark.parametrize("lpg", [True, False])
def test_tailmix_trains_on_the_mixed_contexts_and_targets(lpg, match):
    examples, network = small(match=match)
    batch, targets = whole(examples)
    graph = LabelGraph.of(examples.labels) if lpg else EveryOtherLabel(L)
    inverse_p, rule = np.linspace(1, 6, L), Rule(3, 0.4)
    found = loss_with(TailMixer(graph, inverse_p, rule), examples, network)
    # By hand: every context made, pairs replaced one after the other, the head on all of them.
    with torch.no_grad():
        contexts = network.contexts(*network.encode(network.embed(batch), batch.mask)).all()
        rng = np.random.default_rng(5)
        lookup = lambda rows, labels: contexts[rows, labels]  # noqa: E731
        pairs = select(np.nonzero(targets.numpy()), lookup, graph, inverse_p, rule, rng)
        assert len(pairs.rows) > N
        for row, target, partner, share, _ in zip(*pairs, strict=True):
            mixed = share * contexts[row, target] + (1 - share) * contexts[row, partner]
            contexts[row, target] = mixed
        logits = network.head(contexts, network.attention.vectors)
        expected = BinaryCrossEntropy()(logits, mixed_targets(targets, pairs))
    torch.testing.assert_close(found.detach(), expected)


def test_the_hook_on_some_columns_is_that_of_these_labels():
    examples, _ = small()
    mixer = TailMixer(LabelGraph.of(examples.labels), np.arange(L) + 1.0, Rule(3, 0.4))
    columns = np.array([7, 2, 4])
    part = mixer.of_labels(columns)
    again = LabelGraph.of(sparse.csr_matrix(examples.labels[:, columns]))
    np.testing.assert_array_equal(part.graph.indptr, again.indptr)
    np.testing.assert_array_equal(part.graph.indices, again.indices)
    np.testing.assert_array_equal(part.inverse_p, [8, 3, 5])
    every = replace(mixer, graph=EveryOtherLabel(L)).of_labels(columns)
    assert every.graph == EveryOtherLabel(3)


def test_hidden_mix_interpolates_states_and_targets():
    examples, network = small()
    batch, targets = whole(examples)
    found = loss_with(HiddenStateMixer(0.4), examples, network)
    rng = np.random.default_rng(5)
    share = draw_share(0.4, rng)
    partner = torch.from_numpy(rng.permutation(N))
    with torch.no_grad():
        hidden, mask = network.encode(network.embed(batch), batch.mask)
        mixed = share * hidden + (1 - share) * hidden[partner]
        logits = network.logits(network.contexts(mixed, mask | mask[partner]))
        expected = BinaryCrossEntropy()(logits, interpolated_targets(targets, partner, share))
    torch.testing.assert_close(found.detach(), expected)


def test_ssmix_adds_the_loss_of_whole_documents():
    examples, network = small()
    batch, targets = whole(examples)
    plain = BinaryCrossEntropy()(network(batch), targets)
    found = loss_with(SpanMixer(0.3), examples, network)
    mixed = float((2 * found - plain).detach())
    assert mixed > 0
    assert mixed != pytest.approx(float(plain.detach()))
    found.backward()
    assert network.attention.vectors.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("mixer", "passes"),
    [
        (TailMixer(EveryOtherLabel(L), np.ones(L), Rule(3, 0.4)), 1),
        (WordMixer(0.4), 1),
        (HiddenStateMixer(0.4), 1),
        (SpanMixer(0.1), 2),
    ],
)
def test_only_ssmix_costs_a_second_forward_pass(mixer, passes, monkeypatch):
    examples, network = small()
    encoded = []
    encode = network.encode
    monkeypatch.setattr(network, "encode", lambda *args: encoded.append(1) or encode(*args))
    loss_with(mixer, examples, network).backward()
    assert len(encoded) == passes


def test_weights_are_chosen_among_those_after_mixing_began():
    examples, network = small()
    starts = BatchLoss.of(Hooks(WordMixer(0.4, start=2)), BinaryCrossEntropy())
    assert [starts.begins(epoch) for epoch in range(4)] == [False, False, True, False]
    always = BatchLoss.of(Hooks(WordMixer(0.4, start=0)), BinaryCrossEntropy())
    assert not any(always.begins(epoch) for epoch in range(4))
    schedule = Schedule(4, 4, 1e-3, evaluate_every=3)
    trainer = Trainer(network, starts, examples, schedule, FitContext(), dev=examples)
    seen = []
    evaluate = trainer._evaluate
    trainer._evaluate = lambda pool: (seen.append(trainer.best), evaluate(pool))
    trainer.run()
    assert [best[0] for best in seen].count(-1.0) == 2, "at the start, and when mixing began"
    assert trainer.best[1] > 6, "a step of the second half"


def test_where_variants_fit():
    with pytest.raises(MisfitError, match="between the layers of a transformer"):
        get("AttentionXML", "TMix")
    with pytest.raises(MisfitError, match="APLC-XLNet takes no context mixer"):
        get("APLC-XLNet", "TailMix")
    assert get("LaMiniLM", "TMix").variant == "TMix"
    assert get("AttentionXML", "TailMix+PW").variant == "TailMix+PW"
    with pytest.raises(ValueError, match="no rule 'mine'"):
        get("AttentionXML", "TailMix", variant_params={"rule": "mine"})


def test_tailmix_by_the_rule_of_the_code_trains():
    train, _ = load("tiny-text")
    method = get(
        "AttentionXML",
        "TailMix",
        variant_params={"rule": "code", "plain_share": 0.0},
        epochs=1,
        hidden=4,
        dimensions=8,
    )
    model = method.fit(train.take(np.arange(60)), seed=0)
    assert np.isfinite(model.history.losses).all()
