"""LaRoBERTa, LaMiniLM, APLC-XLNet and APLC-MiniLM on tiny encoders drawn at random."""

import numpy as np
import pytest
import tiny_encoders
import torch

from benchmarks.data import load
from methods.registry import get
from methods.text.batches import Documents
from methods.text.encoded import EncodedDocuments, encoded
from methods.text.pretrained import PretrainedEncoder, Tokeniser
from methods.text.transformers import tokenised

KINDS = {
    "LaRoBERTa": ("RoBERTa-base", tiny_encoders.roberta),
    "LaMiniLM": ("all-MiniLM-L6-v2", tiny_encoders.bert),
    "APLC-XLNet": ("XLNet-base-cased", tiny_encoders.xlnet),
    "APLC-MiniLM": ("all-MiniLM-L6-v2", tiny_encoders.bert),
}
SHORT = {"epochs": 2, "max_length": 24, "batch_size": 30, "evaluate_every": 5, "layers": 1}


@pytest.fixture(scope="module")
def data():
    train, test = load("tiny-text")
    return train.take(np.arange(90)), test.take(np.arange(30))


@pytest.fixture(scope="module")
def resources(tmp_path_factory, data):
    found = {}
    for name, make in KINDS.values():
        if name not in found:
            found[name] = tmp_path_factory.mktemp(name)
            make(found[name], data[0].inputs.texts, 400, 2)
    return found


def fitted(base, data, resources, variant=None, **more):
    params = {key: more.pop(key) for key in list(more) if key not in ("threads", "checkpoint")}
    method = get(base, variant, **{**SHORT, **params})
    return method.fit(data[0], seed=1, resources=resources, **more)


@pytest.mark.parametrize("base", KINDS)
def test_a_base_names_its_encoder_and_trains_frozen_or_not(base, data, resources, tmp_path):
    assert get(base).resources == {KINDS[base][0]}
    frozen = fitted(base, data, resources, trainable=False)
    trained = fitted(base, data, resources, trainable=True)
    tops = [model.predict(data[1].inputs, 5) for model in (frozen, trained)]
    assert (tops[0].scores != tops[1].scores).any()
    original = PretrainedEncoder.load(resources[KINDS[base][0]], trainable=False, layers=1)
    for model, same in ((frozen, True), (trained, False)):
        pairs = zip(model.network.encoder.parameters(), original.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs) == same
    trained.save(tmp_path)
    again = type(trained).load(tmp_path).predict(data[1].inputs, 5)
    assert (again.indices == tops[1].indices).all()
    assert (again.scores == tops[1].scores).all()
    assert np.isfinite(trained.label_norms()).any()


def test_states_computed_once_are_the_encoders(data, resources, tmp_path):
    folder = resources["all-MiniLM-L6-v2"]
    encoder = PretrainedEncoder.load(folder, trainable=False)
    documents = tokenised(data[1].inputs, Tokeniser(folder), 24)
    made = encoded(documents, encoder, folder=tmp_path, name="dev", threads=2)
    rows = np.array([3, 29, 0])
    batch, states = documents.batch(rows), made.batch(rows)
    found, _ = encoder.encode(encoder.embed(batch.ids), batch.mask)
    assert (states.mask == batch.mask).all()
    torch.testing.assert_close(states.ids[batch.mask], found[batch.mask], atol=2e-3, rtol=2e-3)
    # What is there is not made again, and blocks are joined without a seam.
    stamp = (tmp_path / "dev-0.npy").stat().st_mtime_ns
    again = encoded(documents, encoder, folder=tmp_path, name="dev")
    assert (tmp_path / "dev-0.npy").stat().st_mtime_ns == stamp
    assert torch.equal(again.batch(rows).ids, states.ids)


def test_blocks_of_encoded_documents_have_no_seam(monkeypatch):
    monkeypatch.setattr("methods.text.encoded.BLOCK", 2)
    lengths = np.array([2, 1, 3, 1, 2])
    flat = np.arange(9, dtype=np.float16)[:, None]
    made = EncodedDocuments(lengths, [flat[:3], flat[3:7], flat[7:]])
    batch = made.batch(np.arange(5))
    rows = [batch.ids[i, :n, 0].tolist() for i, n in enumerate(lengths)]
    assert rows == [[0, 1], [2], [3, 4, 5], [6], [7, 8]]
    assert isinstance(made, Documents)
    assert len(made) == 5


def test_kept_states_and_the_encoder_in_every_step_train_alike(data, resources, monkeypatch):
    """A frozen encoder's states from memory give the same training as the encoder itself."""
    more = {"trainable": False, "dropout": 0.0}
    once = fitted("LaMiniLM", data, resources, **more)
    monkeypatch.setattr(
        "methods.text.transformers.TransformerMethod._encodes_once", lambda self, context: False
    )
    each = fitted("LaMiniLM", data, resources, **more)
    np.testing.assert_allclose(once.history.losses, each.history.losses, rtol=1e-3)


@pytest.mark.parametrize("variant", ["TailMix", "wordMix", "TMix", "SSMix", "PW"])
def test_variants_of_laroberta(variant, data, resources):
    plain = fitted("LaRoBERTa", data, resources)
    changed = fitted("LaRoBERTa", data, resources, variant)
    assert np.isfinite(changed.history.losses).all()
    # The first half of the epochs is plain training, but for the weights of PW.
    alike = changed.history.losses[0] == pytest.approx(plain.history.losses[0], rel=1e-4)
    assert alike == (variant != "PW")
    assert changed.history.losses[1] != plain.history.losses[1]


def test_pw_on_clusters_by_cluster_and_by_eq_24(data, resources):
    losses = {
        how: fitted(
            "APLC-XLNet", data, resources, "PW", weights=how, trainable=False
        ).history.losses
        for how in ("cluster", "eq24")
    }
    plain = fitted("APLC-XLNet", data, resources, trainable=False).history.losses
    assert losses["cluster"][0] > losses["eq24"][0]
    assert len({losses["cluster"][0], losses["eq24"][0], plain[0]}) == 3
    with pytest.raises(ValueError, match="cluster or eq24"):
        get("APLC-XLNet", weights="mean")
    with pytest.raises(ValueError, match="summary is one of"):
        get("APLC-XLNet", summary="middle")


def test_cores_change_nothing(data, resources):
    one, two = (
        fitted("LaRoBERTa", data, resources, trainable=True, threads=threads).predict(
            data[1].inputs, 5
        )
        for threads in (1, 2)
    )
    assert (one.scores == two.scores).all()


def test_a_missing_encoder_is_named(data):
    with pytest.raises(ValueError, match="LaRoBERTa needs the resources RoBERTa-base"):
        get("LaRoBERTa").fit(data[0])
