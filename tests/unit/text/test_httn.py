"""HTTN, its ensemble and its baselines as methods: new labels, ablations, networks, samplers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats import mannwhitneyu, norm, rankdata

from benchmarks.data import load
from benchmarks.data.split import Inputs, Split, Tokens
from methods import get
from methods.holdout import hold_out
from methods.text import head_to_tail as h2t
from methods.text.batches import Documents
from methods.text.bbn import BilateralNetwork, ReversedSampler, bilateral_share
from methods.text.document_network import DocumentNetwork, representations
from methods.text.embedding import WordEmbedding
from methods.text.httn import Transfer
from methods.text.ltmcp import term_counts
from methods.text.oltr import MetaNetwork, centroid_loss

CHANCE = 1e-6
"""A label that is ranked by chance passes a test with this probability."""
QUICK = {"epochs": 2, "hidden": 8, "size": 12, "dimensions": 10, "max_length": 30}


@pytest.fixture(scope="module")
def data():
    return load("tiny-text")


@pytest.fixture(scope="module")
def documents(data):
    return Documents.of(data[0].inputs.tokens, 30)


@pytest.fixture(scope="module")
def embedding(data):
    size = len(data[0].inputs.tokens.vocabulary)
    vectors = np.random.default_rng(0).normal(size=(size, 6)).astype(np.float32)
    return WordEmbedding(vectors, trained=True, dropout=0.0)


def without(split: Split, label: int) -> Split:
    """The split with a label taken off all its documents."""
    labels = sparse.lil_matrix(split.labels)
    labels[:, label] = 0
    return Split(split.inputs, sparse.csr_matrix(labels), split.meta)


def test_a_representation_is_eq_3_and_padding_does_not_matter(embedding, documents):
    torch.manual_seed(0)
    network = DocumentNetwork(embedding, 5, 4, 3).eval()
    whole = documents.batch(np.arange(6))
    with torch.no_grad():
        together = network.represent(whole)
        for row in range(6):
            batch = documents.batch(np.array([row]))
            H = network.lstm(embedding(batch), batch.mask)[0]
            e = [float(network.attention.weight_of_word.weight[0] @ h) for h in H]
            weight = np.exp(np.array(e) - max(e))
            mean = (weight / weight.sum()) @ H.numpy()
            expected = network.attention.embed.weight.numpy() @ mean
            np.testing.assert_allclose(together[row], expected, rtol=1e-4, atol=1e-5)


def test_representations_do_not_depend_on_cores(embedding, documents):
    torch.manual_seed(0)
    network = DocumentNetwork(embedding, 5, 4, 3)
    one = representations(network, documents)
    assert torch.equal(one, representations(network, documents, threads=2))


def test_released_representations_have_length_one_and_logits_a_scale(embedding, documents):
    torch.manual_seed(0)
    network = DocumentNetwork(embedding, 5, 4, 3, unit=True).eval()
    batch = documents.batch(np.arange(5))
    with torch.no_grad():
        r = network.represent(batch)
        torch.testing.assert_close(r.norm(dim=1), torch.ones(5))
        torch.testing.assert_close(network(batch), 10.0 * r @ network.classifier.weight.T)


def written(n: int, rng: np.random.Generator) -> Split:
    """Documents of the words of their labels, four words per label; label 8: labels 0 and 1."""
    carried = rng.random((n, 8)) < 0.25
    carried[np.arange(n), rng.integers(8, size=n)] = True
    rows = [
        rng.choice((np.flatnonzero(own)[:, None] * 4 + np.arange(2, 6)).ravel(), 20)
        for own in carried
    ]
    labels = np.column_stack([carried, carried[:, 0] & carried[:, 1]])
    tokens = Tokens(np.arange(n + 1) * 20, np.concatenate(rows).astype(np.int32), list("?" * 34))
    Y = sparse.csr_matrix(labels.astype(np.float32))
    return Split(Inputs(tokens=tokens), Y, {"n_train": n, "n_test": n, "A": 0.55, "B": 1.5})


@pytest.mark.parametrize("base", ["HTTN", "EHTTN"])
def test_a_label_left_out_of_training_is_added_and_predicted(base):
    # So many in test that a label in third place, after labels 0 and 1, is told from chance.
    train, test = (written(n, np.random.default_rng(seed)) for n, seed in ((240, 0), (1000, 1)))
    size = {"hidden": 16, "size": 24, "dimensions": 16, "epochs": 8, "l_tail": 2}
    model = get(base, **size).fit(without(train, 8), seed=0)
    before = model.predict(test.inputs, 9)
    assert not (before.indices == 8).any(), "no document of it was seen"
    carrying = np.flatnonzero(train.labels[:, 8].toarray().ravel())[:5]
    column = model.add_label("0 and 1", train.inputs.take(carrying))
    assert column == 9
    assert model.added == ["0 and 1"]
    after = model.predict(test.inputs, 10).to_sparse(10).toarray()
    np.testing.assert_allclose(after[:, :9], before.to_sparse(9).toarray(), rtol=1e-5)
    true = test.labels[:, 8].toarray().ravel() > 0
    known = [*range(8), column]
    place = len(known) - rankdata(after[:, known], axis=1)[:, -1]  # 0: before all other labels
    assert mannwhitneyu(place[true], place[~true], alternative="less").pvalue < CHANCE
    # A label in a place that is drawn evenly has this mean and variance.
    mean, variance = (len(known) - 1) / 2, (len(known) ** 2 - 1) / 12
    z = (mean - place[true].mean()) / np.sqrt(variance / true.sum())
    assert z > norm.isf(CHANCE), "on the documents that carry it, it is ranked above others"


def test_added_labels_survive_saving_and_faults_are_told(data, tmp_path):
    train, test = data
    model = get("HTTN", **QUICK).fit(train, seed=0)
    few = train.inputs.take(np.arange(2))
    model.add_label("a", few)
    with pytest.raises(ValueError, match="'a' was added before, as 60"):
        model.add_label("a", few)
    with pytest.raises(ValueError, match="needs at least one document"):
        model.add_label("b", train.inputs.take(np.arange(0)))
    model.save(tmp_path)
    loaded = type(model).load(tmp_path)
    assert loaded.add_label("b", few) == 61
    assert (loaded.predict(test.inputs, 5).k, loaded.added) == (5, ["a", "b"])
    with pytest.raises(ValueError, match="'angle' is none of inner product, cosine"):
        get("HTTN", similarity="angle", **QUICK)
    with pytest.raises(ValueError, match="computes no classifiers"):
        get("Imprinting", **QUICK).fit(train, seed=0).add_label("a", few)


def test_the_tail_rows_are_those_of_the_plain_functions(data):
    """H-F-A is eq. 9 and H-F is eq. 11, on the model's own representations."""
    train, _ = data
    model = get("HTTN", "H-F", **QUICK).fit(train, seed=0)
    bare = get("HTTN", "H-F-A", **QUICK).fit(train, seed=0)
    # The fit holds documents out: the same draw of the same documents is made here.
    kept, _ = hold_out(train, 30, 0)
    head, tail = h2t.head_and_tail(kept.label_counts(), 1 / 3)
    R = model.represent(kept.inputs.tokens)
    drawn = h2t.Documents(kept.labels, tail).draw(5, np.random.default_rng([0, 2, 0]))
    P = h2t.prototypes(R, drawn)
    at = torch.from_numpy(tail)
    torch.testing.assert_close(bare.classifiers[0][at], P @ bare.transfer.W.T)
    cosine = get("HTTN").similarity == "cosine"
    expected = h2t.attended(P, model.transfer.P_head, cosine=cosine) @ model.transfer.W.T
    torch.testing.assert_close(model.classifiers[0][at], expected)
    others = torch.from_numpy(head)
    assert torch.equal(model.classifiers[0][others], model.network.classifier.weight.detach())


def test_with_identity_and_no_attention_httn_has_the_rows_of_imprinting(data):
    """Up to their length, on the representations of a fit of Imprinting."""
    train, _ = data
    imprinted = get("Imprinting", **QUICK).fit(train, seed=0)
    kept, _ = hold_out(train, 30, 0)
    _, tail = h2t.head_and_tail(kept.label_counts(), 1 / 3)
    R = imprinted.represent(kept.inputs.tokens)
    every = h2t.Documents(kept.labels, tail).draw(len(kept), np.random.default_rng(0))
    rows = Transfer(torch.eye(R.shape[1]), None).rows(h2t.prototypes(R, every))
    rows = rows / rows.norm(dim=1, keepdim=True)
    torch.testing.assert_close(rows, imprinted.classifiers[0][torch.from_numpy(tail)])


@pytest.mark.parametrize("on", ["drawn", "train"])
def test_fine_tuning_sees_the_tails_documents_or_all(on, data, monkeypatch):
    train, _ = data
    seen, real = [], h2t.fine_tuned
    monkeypatch.setattr(
        h2t, "fine_tuned", lambda M, R, Y, **how: seen.append((R, Y)) or real(M, R, Y, **how)
    )
    model = get("HTTN", fine_tune_on=on, **QUICK).fit(train, seed=0)
    kept, _ = hold_out(train, 30, 0)
    _, tail = h2t.head_and_tail(kept.label_counts(), 1 / 3)
    drawn = h2t.Documents(kept.labels, tail).draw(5, np.random.default_rng([0, 2, 0]))
    rows = np.unique(np.concatenate(drawn)) if on == "drawn" else np.arange(len(kept))
    assert on == "train" or len(rows) < len(kept) / 2
    ((R, Y),) = seen
    torch.testing.assert_close(R, model.represent(kept.inputs.tokens)[torch.from_numpy(rows)])
    assert (Y.numpy() == kept.labels[rows].toarray()).all()


def test_no_documents_of_another_name():
    with pytest.raises(ValueError, match="'some' is none of drawn, train"):
        get("HTTN", fine_tune_on="some")


def test_a_member_is_one_of_the_ensembles_classifiers(data):
    train, test = data
    whole = get("EHTTN", G=3, **QUICK).fit(train, seed=0)
    members = []
    for number in range(3):
        method = get("EHTTN", "httn-setting", variant_params={"member": number}, G=3, **QUICK)
        members.append(method.fit(train, seed=0))
        assert torch.equal(members[-1].classifiers[0], whole.classifiers[number])
    fourth = get("EHTTN", "httn-setting", variant_params={"member": 3}, G=3, **QUICK)
    with pytest.raises(ValueError, match="member 3 is none of the 3 of the ensemble"):
        fourth.fit(train, seed=0)
    mean = sum(m.predict(test.inputs, 60).to_sparse(60).toarray() for m in members) / 3
    np.testing.assert_allclose(whole.predict(test.inputs, 60).to_sparse(60).toarray(), mean, 1e-5)


METHODS = ("Joint", "HTTN", "EHTTN", "DXML", "OLTR", "Imprinting", "BBN", "LTMCP")


@pytest.mark.parametrize("base", METHODS)
def test_every_setting_reaches_the_fit(base, data, monkeypatch):
    """A setting that a fit never reads does nothing, and would better be an error."""
    train, _ = data
    quick = {**QUICK, "epochs": 1, **({"G": 2} if base == "EHTTN" else {})}
    method = get(base, **quick)
    read: set[str] = set()
    kind = type(method)

    def watched(self, name):
        read.add(name)
        return object.__getattribute__(self, name)

    monkeypatch.setattr(kind, "__getattribute__", watched)
    method.fit(train, seed=0)
    if base in ("HTTN", "EHTTN"):
        get(base, transfer="adam", **quick).fit(train, seed=0)
    unread = set(kind.RECIPES["small"]) - read
    assert not unread
    # Read by the loss, and without weights of labels to no effect.
    assert ("normalise_weights" in kind.RECIPES["small"]) == ("loss_weights" in kind.accepts)


@pytest.mark.parametrize(
    ("base", "setting"),
    [
        *(("BBN", name) for name in ("unit", "negatives", "normalise_weights")),
        *(("DXML", name) for name in ("unit", "negatives", "normalise_weights")),
        *(("OLTR", name) for name in ("unit", "negatives", "normalise_weights")),
        *(("Imprinting", name) for name in ("unit", "normalise_weights")),
        ("HTTN", "normalise_weights"),
        ("LTMCP", "normalise_weights"),
    ],
)
def test_a_setting_that_would_do_nothing_is_an_error(base, setting):
    for recipe in ("small", "paper", "as-released"):
        with pytest.raises(ValueError, match=f"no parameter '{setting}'"):
            get(base, recipe=recipe, **{setting: 1})


def test_settings_that_a_base_lacks_are_refused():
    with pytest.raises(ValueError, match="Joint has no setting l_tail"):
        get("Joint", "httn-setting", variant_params={"l_tail": 5})
    with pytest.raises(ValueError, match="LTMCP has no setting S"):
        get("LTMCP", "httn-setting", variant_params={"S": 5})
    assert (
        get("LTMCP", "httn-setting", variant_params={"l_tail": 5}).params()["LTMCP"]["l_tail"] == 5
    )


def test_recipes_name_the_papers_text_and_the_released_code():
    paper, released = (get("HTTN", recipe=recipe) for recipe in ("paper", "as-released"))
    assert (paper.hidden, paper.size, paper.unit, paper.transfer) == (
        300,
        128,
        False,
        "least-squares",
    )
    assert (released.hidden, released.unit, released.transfer) == (150, True, "adam")
    ensemble = get("EHTTN", recipe="as-released")
    assert (ensemble.S, ensemble.G, ensemble.attention, ensemble.fine_tune_epochs) == (
        60,
        30,
        False,
        0,
    )
    assert get("HTTN", recipe="paper", hidden=7).hidden == 7
    with pytest.raises(ValueError, match="no parameter 'hiden'"):
        get("HTTN", hiden=3)
    with pytest.raises(ValueError, match="there are small, paper, as-released"):
        get("HTTN", recipe="nosuch")


def test_as_released_trains_the_classifier_at_ten_times_the_rate(embedding):
    network = DocumentNetwork(embedding, 5, 4, 3, unit=True)
    assert get("HTTN").groups(network) is None
    (slow, one), (fast, ten) = get("HTTN", recipe="as-released").groups(network)
    assert (one, ten) == (1, 10)
    names = {id(p): name for name, p in network.named_parameters() if p.requires_grad}
    assert {names[id(p)] for p in fast} == {
        "attention.embed.weight",
        "attention.embed.bias",
        "classifier.weight",
        "scale",
    }
    assert {id(p) for p in [*slow, *fast]} == names.keys()


def test_as_released_runs_and_learns(data):
    train, test = data
    model = get("HTTN", recipe="as-released", **QUICK).fit(train, seed=0)
    assert model.network.unit
    P = h2t.prototypes(model.represent(train.inputs.tokens), [np.arange(3)], unit=True)
    assert float(P.norm()) == pytest.approx(1)
    assert model.predict(test.inputs, 5).fault(len(test), test.n_labels) is None


def test_bbn_moves_from_the_usual_to_the_rare_branch():
    shares = [bilateral_share(epoch, 10) for epoch in range(10)]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert shares[9] == pytest.approx(1 - 0.81)


def test_bbn_draws_every_label_alike_and_mixes_as_it_predicts(embedding, documents):
    Y = sparse.csr_matrix(np.eye(3, dtype=np.float32)[[0] * 90 + [1] * 9 + [2]])
    rows = ReversedSampler(Y).draw(20_000, np.random.default_rng(0))
    share = np.bincount(Y[rows].indices, minlength=3) / len(rows)
    weight = np.array([1 / 90, 1 / 9, 1])
    np.testing.assert_allclose(share, weight / weight.sum(), atol=0.01)
    torch.manual_seed(0)
    network = BilateralNetwork(embedding, 5, 4, 3, 0.0).eval()
    batch = documents.batch(np.arange(4))
    with torch.no_grad():
        torch.testing.assert_close(network.mixed(batch, batch, 0.5), network(batch))


def test_oltr_takes_from_the_memory_what_its_formulas_say(embedding):
    torch.manual_seed(0)
    plain = DocumentNetwork(embedding, 5, 4, 3)
    network = MetaNetwork(plain, torch.randn(3, 4))
    v = torch.randn(2, 4)
    with torch.no_grad():
        found = network.enriched(v)
        for row in range(2):
            coefficients = torch.softmax(network.hallucinator(v[row]), dim=0)
            feature = sum(c * m for c, m in zip(coefficients, network.memory, strict=True))
            nearest = min(float((v[row] - m).norm()) for m in network.memory)
            expected = 10 / nearest * (v[row] + torch.tanh(network.selector(v[row])) * feature)
            torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=1e-4)
    near = torch.tensor([[1.0, 0, 0, 0]])
    targets = torch.tensor([[1.0, 0.0]])
    centroids = torch.tensor([[1.0, 0, 0, 0], [9.0, 0, 0, 0]])
    assert float(centroid_loss(near, centroids, targets)) == pytest.approx(0, abs=1e-5)
    assert float(centroid_loss(near, centroids.flip(0), targets)) > 30


def test_linear_tail_leaves_the_documents_as_they_are(data):
    _, test = data
    before = test.inputs.tokens.ids.copy()
    counts = term_counts(test.inputs.tokens)
    assert (test.inputs.tokens.ids == before).all()
    word, times = np.unique(next(iter(test.inputs.tokens)), return_counts=True)
    np.testing.assert_allclose(counts[0, word].toarray().ravel(), 1 + np.log(times))
