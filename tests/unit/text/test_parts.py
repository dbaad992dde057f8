"""The parts of deep text models against plain renderings of them."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from methods.text.attention import LabelAttention, _by_operations, fused_logits
from methods.text.head import SharedHead
from methods.text.lstm import BiLSTM


def some_hidden(n=3, T=7, d=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    mask = torch.arange(T) < torch.tensor([7, 4, 1])[:n, None]
    return hidden, mask


def by_loops(hidden, mask, vectors):
    """Contexts by the formula, label by label and token by token."""
    n, T, d = hidden.shape
    contexts = torch.zeros(n, len(vectors), d, dtype=hidden.dtype)
    for i in range(n):
        for label, vector in enumerate(vectors):
            weights = [float(torch.exp(hidden[i, t] @ vector)) for t in range(T) if mask[i, t]]
            for t in range(len(weights)):
                contexts[i, label] += weights[t] / sum(weights) * hidden[i, t]
    return contexts


@pytest.mark.parametrize("match", [0.0, 0.7])
@pytest.mark.parametrize("kept_numbers", [10**9, 50, 1])
def test_label_attention_is_a_loop_over_labels_and_tokens(kept_numbers, match):
    hidden, mask = some_hidden()
    torch.manual_seed(1)
    attention = LabelAttention(5, 6, scale=3.0).double()
    head = SharedHead(6, (4, 3), match).double()
    contexts = attention(hidden, mask)
    expected = by_loops(hidden, mask, attention.vectors.detach())
    torch.testing.assert_close(contexts.all().detach(), expected)
    some = torch.tensor([4, 0])
    torch.testing.assert_close(contexts.of(1, some).detach(), expected[1, some])
    logits = contexts.logits(head, kept_numbers=kept_numbers)
    torch.testing.assert_close(logits, head(expected, attention.vectors))
    of_products = torch.einsum("nld,ld->nl", expected, attention.vectors)
    without = SharedHead(6, (4, 3)).double()
    without.load_state_dict(head.state_dict())
    torch.testing.assert_close(logits, contexts.logits(without) + match * of_products)


@pytest.mark.parametrize("match", [0.0, 0.7])
@pytest.mark.parametrize("cached", [10**6, 1])
@pytest.mark.parametrize("kept_numbers", [10**9, 50, 1])
def test_chunks_of_labels_change_no_gradient(kept_numbers, cached, match, monkeypatch):
    monkeypatch.setattr("methods.text.attention.CACHED_NUMBERS", cached)
    hidden, mask = some_hidden()
    torch.manual_seed(1)
    attention, head = LabelAttention(150, 6, 3.0).double(), SharedHead(6, (4, 3), match).double()
    wanted = [hidden.requires_grad_(), attention.vectors, *head.parameters()]

    def gradients(logits):
        return torch.autograd.grad(logits.sin().sum(), wanted)

    scores = torch.einsum("ntd,ld->nlt", hidden, attention.vectors)
    weights = torch.softmax(scores.masked_fill(~mask[:, None], -torch.inf), dim=-1)
    plain = gradients(head(weights @ hidden, attention.vectors))
    ours = gradients(fused_logits(hidden, mask, attention.vectors, head, kept_numbers))
    first = head.first()
    projected = torch.nn.functional.linear(hidden, first.weight, first.bias)
    on_a_card = _by_operations(hidden, mask, attention.vectors, projected, head, kept_numbers)
    for a, b, c in zip(ours, plain, gradients(on_a_card), strict=True):
        torch.testing.assert_close(a, b)
        torch.testing.assert_close(c, b)


@pytest.mark.parametrize("match", [0.0, 0.7])
def test_changed_contexts_give_the_logits_of_their_pairs_and_no_others(match):
    hidden, mask = some_hidden()
    attention, head = LabelAttention(5, 6).double(), SharedHead(6, (4,), match).double()
    contexts = attention(hidden, mask)
    vectors = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    rows, labels = torch.tensor([2, 0]), torch.tensor([1, 3])
    logits = contexts.with_changed(rows, labels, vectors).logits(head)
    expected = contexts.logits(head).detach().clone()
    expected[rows, labels] = head(vectors, attention.vectors[labels]).detach()
    torch.testing.assert_close(logits.detach(), expected)
    logits.sum().backward()
    assert (vectors.grad != 0).any()


def test_the_lstm_is_that_of_packed_sequences():
    torch.manual_seed(0)
    ours = BiLSTM(4, 3, dropout=0.0)
    torch.nn.init.normal_(ours.start)
    packed = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, value in ours.onward.named_parameters():
            getattr(packed, name).copy_(value)
        for name, value in ours.backward_.named_parameters():
            getattr(packed, f"{name}_reverse").copy_(value)
    x = torch.randn(3, 5, 4)
    lengths = torch.tensor([5, 3, 1])
    start = ours.start.detach()
    hidden, cell = (start[:, part, None].expand(2, 3, 3).contiguous() for part in (0, 1))
    states, _ = packed(pack_padded_sequence(x, lengths, batch_first=True), (hidden, cell))
    expected, _ = pad_packed_sequence(states, batch_first=True)
    mask = torch.arange(5) < lengths[:, None]
    torch.testing.assert_close(ours(x, mask), expected)
