"""Dataset tables and figures against values worked out by hand or by numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import write_meta
from benchmarks.data.split import Inputs, Split
from benchmarks.papers.artefacts import all_artefacts, write_artefacts
from benchmarks.papers.dataset_counts import CUT, compare, judge, table
from benchmarks.papers.httn import artefacts as httn
from benchmarks.papers.pw import artefacts as pw
from benchmarks.papers.spec import load_paper, load_papers
from benchmarks.papers.verdicts import NOT_RUN, OUTSIDE, REPRODUCED
from benchmarks.records.results import Results


@pytest.mark.parametrize(
    ("printed", "value", "verdict", "remark"),
    [
        ("15539", 15539, REPRODUCED, ""),
        ("5.31", 5.3112, REPRODUCED, ""),
        ("5.3", 5.3499, REPRODUCED, ""),
        ("448.5", 448.57, REPRODUCED, CUT),
        ("448.6", 448.57, REPRODUCED, ""),
        ("12920", 15539, OUTSIDE, ""),
        ("0.5", 0.5, REPRODUCED, ""),
        ("3.18", None, NOT_RUN, "not known here"),
    ],
)
def test_printed_values_are_judged_at_their_own_precision(
    printed: str, value: float | None, verdict: str, remark: str
) -> None:
    assert judge(printed, value) == (verdict, remark)


def test_known_slips_of_the_papers_are_found_and_explained(tmp_path: Path) -> None:
    """From the cards alone, no data at hand."""

    def explained(paper: str, dataset: str, quantity: str) -> str:
        frame = compare(load_paper(paper), tmp_path)
        row = frame[(frame["dataset"] == dataset) & (frame["quantity"] == quantity)].iloc[0]
        assert row["verdict"] == OUTSIDE
        return str(row["explanation"])

    assert "is Delicious's" in explained("glas", "EURLEX-4K", "n_train")
    assert "is Delicious's" in explained("glas", "EURLEX-4K", "n_test")
    swapped = explained("ranknet_taug", "Amazon-670K", "labels_per_document")
    assert "is this dataset's documents_per_label: swapped" in swapped
    assert "490,449" in explained("pw", "Amazon-670K", "n_train")


def test_every_printed_value_is_in_the_comparison(tmp_path: Path) -> None:
    lines = {"pw": 48, "ranknet_taug": 24, "tailmix": 18, "glas": 36, "httn": 24}
    for paper in load_papers():
        assert len(compare(paper, tmp_path)) == lines[paper.id]
    frame = compare(load_paper("httn"), tmp_path)
    row = frame[(frame["dataset"] == "RCV1") & (frame["quantity"] == "documents_per_label")]
    assert "its own N x labels/document / L is 714.70" in row.iloc[0]["explanation"]


def test_prepared_data_outweigh_the_card(tmp_path: Path) -> None:
    folder = tmp_path / "EURLex-4K"
    folder.mkdir()
    write_meta(folder, {"n_train": 15539, "n_test": 1, "labels_per_document": 5.39})
    made = table(load_paper("pw"), tmp_path)
    assert made.caption.startswith("PW Table 2: ")
    rows = made.frame[made.frame["dataset"] == "EURLex-4K"].set_index("quantity")
    found = rows[["found", "from", "verdict", "explanation"]]
    assert found.loc["n_train"].tolist() == ["15539", "data", REPRODUCED, ""]
    assert found.loc["n_test"].tolist() == ["1", "data", OUTSIDE, ""]
    assert found.loc["labels_per_document"].tolist() == ["5.39", "data", REPRODUCED, CUT]
    assert found.loc["n_labels"].tolist() == ["3993", "card", REPRODUCED, ""]
    assert {(row, "printed") for row in np.flatnonzero(made.frame["verdict"] == OUTSIDE)} == {
        cell for cell in made.bold if cell[1] == "printed"
    }


def make_split(labels: np.ndarray) -> Split:
    Y = sparse.csr_matrix(labels.astype(np.float32))
    bow = sparse.csr_matrix(np.eye(len(labels), dtype=np.float32))
    return Split(Inputs(bow=bow), Y, {"A": 0.55, "B": 1.5})


def test_label_correlation_is_numpys() -> None:
    dense = np.random.default_rng(0).random((60, 7)) < np.linspace(0.1, 0.6, 7)
    order = np.argsort(-dense.sum(axis=0), kind="stable")
    ours = httn.label_correlation(sparse.csr_matrix(dense, dtype=np.float32), order)
    expected = np.corrcoef(dense[:, order].T)
    off = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose(ours[off], expected[off], atol=1e-12)


def test_grouped_correlation_is_the_mean_over_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httn, "HEATMAP_LABELS", 5)
    monkeypatch.setattr(httn, "HEATMAP_GROUPS", 3)
    dense = np.random.default_rng(1).random((50, 9)) < 0.4
    ours = httn.label_correlation(sparse.csr_matrix(dense, dtype=np.float32), np.arange(9))
    full = np.corrcoef(dense.T)
    np.fill_diagonal(full, np.nan)
    expected = [
        [np.nanmean(full[3 * i : 3 * i + 3, 3 * j : 3 * j + 3]) for j in range(3)] for i in range(3)
    ]
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_power_law_is_recovered() -> None:
    counts = np.round(1e6 * np.arange(1, 2001) ** -0.8)
    scale, beta = pw.power_law(counts)
    assert beta == pytest.approx(0.8, abs=1e-3)
    assert scale == pytest.approx(1e6, rel=1e-2)


@pytest.mark.parametrize("prepared", [(), ("tiny-bow",)])
def test_what_needs_only_data_is_drawn_from_any_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in prepared:
        ensure(name)
    results = Results("results")
    for declared in all_artefacts().values():
        wanted = [artefact for artefact in declared if not artefact.needs_cells]
        write_artefacts(wanted, results)
        assert all(Path(path).stat().st_size for artefact in wanted for path in artefact.files)
    for figure in ("label_frequencies", "label_distributions", "inverse_propensities"):
        rows = Path(f"figures/{figure}.csv").read_text().splitlines()[1:]
        assert {row.partition(",")[0] for row in rows} == set(prepared)
    overview = Path("results/tables/datasets.md").read_text()
    assert ("tiny-bow" in overview) == bool(prepared)


def test_frequencies_count_training_documents() -> None:
    split = make_split(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0]]))
    data = pw.frequency_data({"x": split})
    assert data["count"].tolist() == [3, 2], "a label without documents is not drawn"
    assert data["cumulative"].tolist() == [0.6, 1.0]
