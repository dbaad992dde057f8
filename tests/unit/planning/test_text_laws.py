"""The laws of cost of deep text models count what their training does."""

import pytest

from methods.registry import Recipe, assemble, base_recipe

META = {"n_train": 1000, "n_test": 200, "n_labels": 60, "tokens_per_document": 150.0}


def terms_of(base, meta=META, **params):
    recipe = base_recipe(base)
    method = assemble(Recipe(recipe.target, {**recipe.params, **params}), [])
    cost = method.cost(meta)
    return {name: term.amount for name, term in cost.terms.items()}


def test_given_vectors_have_their_own_length():
    own, given = terms_of("Joint"), terms_of("Joint", word_vectors="GloVe-6B-100d")
    assert own == terms_of("Joint", word_vectors=None, dimensions=50)
    assert given == terms_of("Joint", dimensions=100)
    assert given["vector"] == 2 * own["vector"]
    # A user's own vectors are of unknown length.
    assert terms_of("Joint", word_vectors="my-vectors") == own
    assert terms_of("Joint", train_embeddings=False)["vector"] == 0.0


@pytest.mark.parametrize("batch_size", [20, 40])
def test_words_wait_in_each_piece_of_a_batch(batch_size):
    whole = terms_of("Joint", batch_size=batch_size, piece=20)
    halves = terms_of("Joint", batch_size=batch_size, piece=10)
    assert halves["turn"] == 2 * whole["turn"]
    assert halves["step"] == whole["step"]
    assert terms_of("XML-CNN")["turn"] == 0.0


def test_methods_that_see_more_documents_cost_more():
    joint = terms_of("Joint", epochs=6)
    assert terms_of("BBN", epochs=6)["step"] == 2 * joint["step"]
    assert terms_of("OLTR", epochs=6, meta_epochs=3)["step"] == 1.5 * joint["step"]


def test_each_member_of_httn_is_tuned_on_the_documents_of_its_setting():
    settings = {"fine_tune_epochs": 4, "fine_tune_on": "train", "batch_size": 10}
    one, five = (terms_of("EHTTN", G=G, **settings) for G in (1, 5))
    assert one["tuning-step"] == 4 * 1000 / 10
    assert five["tuning-step"] == 5 * one["tuning-step"]
    assert five["step"] == one["step"]
    assert terms_of("EHTTN", G=5, member=2, **settings) == one
    few = terms_of("EHTTN", G=1, **{**settings, "fine_tune_on": "drawn"}, t=2, l_tail=10)
    assert few["tuning-step"] == 4 * 20 / 10
