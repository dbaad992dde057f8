"""Encoders and tokenisers from folders: tiny RoBERTa, XLNet and BERT, made here at random."""

import itertools

import numpy as np
import pytest
import torch
from tiny_encoders import TEXTS, bert, roberta, xlnet

from methods.text.pretrained import PretrainedEncoder, Tokeniser


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    found = {}
    for make in (roberta, xlnet, bert):
        found[make.__name__] = tmp_path_factory.mktemp(make.__name__)
        make(found[make.__name__])
    return found


KINDS = ["roberta", "xlnet", "bert"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whoever opens a connection fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("an encoder must not be looked for on the network")

    monkeypatch.setattr("socket.socket.connect", refuse)


@pytest.mark.parametrize("kind", ["roberta", "xlnet"])
def test_tokenisers_put_the_marks_and_cut_long_texts(folders, kind, tmp_path):
    tokeniser = Tokeniser(folders[kind])
    indptr, ids = tokeniser(TEXTS, 12)
    rows = [ids[a:b].tolist() for a, b in itertools.pairwise(indptr)]
    assert max(map(len, rows)) == 12
    for row in rows:
        if kind == "roberta":
            assert (row[0], row[-1]) == (0, 2)
        else:
            assert row[-2:] == [4, 3]
    assert len(rows[2]) == 2, "an empty text is its marks"
    assert tokeniser.padding == {"roberta": 1, "xlnet": 5}[kind]
    tokeniser.save(tmp_path)
    again = Tokeniser(tmp_path)(TEXTS, 12)
    np.testing.assert_array_equal(again[1], ids)


@pytest.mark.parametrize("kind", KINDS)
def test_reading_only_the_opening_of_a_text_changes_no_piece(folders, kind):
    tokeniser = Tokeniser(folders[kind])
    words = " ".join(TEXTS).split()
    texts = [
        " ".join(words * 40),
        "x" * 500,
        f"{words[0]}{' ' * 300}{' '.join(words)}",  # the opening holds fewer pieces than are asked
        "\n\t ".join(words * 40),
    ]
    for max_length in (4, 12):
        indptr, ids = tokeniser(texts, max_length)
        whole = tokeniser._tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
        assert [ids[a:b].tolist() for a, b in itertools.pairwise(indptr)] == whole


def padded(lengths, width=9, vocabulary=60):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(7, vocabulary, (len(lengths), width), generator=generator)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    return torch.where(mask, ids, 1), mask


@pytest.mark.parametrize("kind", KINDS)
def test_two_stages_equal_the_model_in_one_call(folders, kind):
    encoder = PretrainedEncoder.load(folders[kind], trainable=True).eval()
    ids, mask = padded([9, 4, 6])
    states = encoder.encode(encoder.embed(ids), mask)[0]
    whole = encoder.model(input_ids=ids, attention_mask=mask.float()).last_hidden_state
    assert states.shape == (3, 9, encoder.width) == (3, 9, 16)
    torch.testing.assert_close(states[mask], whole[mask])


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(folders, kind):
    encoder = PretrainedEncoder.load(folders[kind], trainable=False)
    ids, mask = padded([9, 4, 6])
    states = encoder.encode(encoder.embed(ids), mask)[0]
    for i, length in enumerate((9, 4, 6)):
        alone = ids[i : i + 1, :length]
        found, _ = encoder.encode(encoder.embed(alone), mask[i : i + 1, :length])
        torch.testing.assert_close(found[0], states[i, :length], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_can_be_changed_between_layers(folders, kind):
    encoder = PretrainedEncoder.load(folders[kind], trainable=False)
    ids, mask = padded([9, 9, 9])
    partner = torch.tensor([1, 2, 0])
    vectors = encoder.embed(ids)
    plain, _ = encoder.encode(vectors, mask)
    same, _ = encoder.encode(vectors, mask, lambda layer, states, mask: (states, mask))
    torch.testing.assert_close(same, plain)

    # All of another document's states after a layer: from there on it is that document.
    def swap(layer, states, mask):
        seen.append((layer, states.shape))
        return (states[partner] if layer == 2 else states), mask

    seen = []
    swapped, _ = encoder.encode(vectors, mask, swap)
    torch.testing.assert_close(swapped, plain[partner])
    assert seen == [(layer, (3, 9, 16)) for layer in (1, 2, 3)]
    assert torch.equal(encoder.encode(vectors, mask)[0], plain), "the hooks are gone"
    other = torch.zeros_like(mask)
    _, left = encoder.encode(vectors, mask, lambda layer, states, mask: (states, other))
    assert left is other


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_encoders_learn_nothing_and_drop_nothing_out(folders, kind):
    ids, mask = padded([9, 4])
    frozen = PretrainedEncoder.load(folders[kind], trainable=False).train()
    one = frozen.encode(frozen.embed(ids), mask)[0]
    assert not one.requires_grad
    torch.testing.assert_close(frozen.encode(frozen.embed(ids), mask)[0], one)
    assert not any(p.requires_grad for p in frozen.parameters())
    trained = PretrainedEncoder.load(folders[kind], trainable=True).train()
    states = trained.encode(trained.embed(ids), mask)[0]
    states.sum().backward()
    assert trained.model.get_input_embeddings().weight.grad is not None
    # What SSMix asks for: the gradient in the word vectors, even of a frozen encoder.
    vectors = frozen.embed(ids).requires_grad_()
    frozen.encode(vectors, mask)[0].square().sum().backward()
    assert (vectors.grad.norm(dim=2)[mask] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_first_layers_alone_and_saving(folders, kind, tmp_path):
    short = PretrainedEncoder.load(folders[kind], trainable=False, layers=2)
    assert short.depth == 2
    ids, mask = padded([9, 4])
    states = short.encode(short.embed(ids), mask)[0]
    short.save(tmp_path)
    again = PretrainedEncoder.load(tmp_path, trainable=False)
    assert again.depth == 2
    torch.testing.assert_close(again.encode(again.embed(ids), mask)[0], states)
    with pytest.raises(ValueError, match="3 layers; 4 cannot"):
        PretrainedEncoder.load(folders[kind], trainable=False, layers=4)


def test_names_that_are_no_folder_are_never_looked_up(tmp_path):
    for name in ("roberta-base", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"holds no encoder"):
            PretrainedEncoder.load(name, trainable=False)
        with pytest.raises(FileNotFoundError, match=r"holds no tokeniser"):
            Tokeniser(name)
