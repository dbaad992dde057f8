"""Tables and figures of the RankNet+Taug paper from small frames worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.evaluation.conventions import DEFAULT
from benchmarks.papers.ranknet_taug import figures as paper
from benchmarks.papers.ranknet_taug import tables
from benchmarks.records.results import Results, times_predicted
from benchmarks.render.figure import NOTHING


def cells() -> pd.DataFrame:
    """Two seeds; the variant adds 2 points to PSP@1 and takes 1 from P@1."""
    rows = []
    for seed in (0, 1):
        for variant, psp, p in (("plain", 30.0, 80.0), ("RankNet", 32.0, 79.0)):
            for metric, value in (("PSP", psp + seed), ("P", p + seed), ("PSnDCG", psp)):
                for k in (1, 3, 5):
                    rows.append(("toy", "Bonsai", variant, seed, metric, k, value + k))
    frame = pd.DataFrame(
        rows, columns=["dataset", "base", "variant", "seed", "metric", "k", "value"]
    )
    return frame.assign(convention=DEFAULT, bin="all")


def test_table2_holds_the_base_and_the_points_gained() -> None:
    noise = cells().assign(bin="tail", value=-1.0)
    table = tables.improvements(pd.concat([cells(), noise]), "RankNet")
    assert len(table) == 1
    row = table.iloc[0]
    assert row["PSP@1"] == pytest.approx(31.5)
    assert row["+PSP@1"] == pytest.approx(2.0)
    assert row["+PSP"] == pytest.approx(2.0)


def test_a_pair_with_a_missing_half_is_left_out() -> None:
    assert tables.improvements(cells(), "Taug-ds", ("Bonsai",)).empty


def test_table5_has_a_row_for_each_method() -> None:
    table = tables.table5(cells())
    assert table["method"].tolist() == ["Bonsai", "Bonsai, network"]
    assert table["P@1"].diff().iloc[1] == pytest.approx(-1.0)


def test_table6_names_the_baseline() -> None:
    table = tables.table6(cells().replace({"variant": {"RankNet": "Taug-d"}}))
    assert table["method"].tolist() == ["baseline", "Taug-d"]


def test_times_predicted_counts_rows_with_the_label_in_the_top() -> None:
    indices = np.array([[1, 0, 2], [1, 2, -1]])
    assert times_predicted(indices, 4, k=2).tolist() == [1, 2, 1, 0]


def test_correlation_of_norms_and_predictions() -> None:
    keys = {"dataset": "toy", "base": "Bonsai", "variant": "plain"}
    norms = pd.DataFrame(
        {**keys, "label": [0, 1, 2, 3], "norm": [4.0, 3.0, 2.0, 1.0], "count": [1, 2, 3, 4]}
    )
    predicted = pd.DataFrame({**keys, "label": [0, 1, 2], "times": [9, 5, 2]})
    row = paper.norm_correlations(norms, predicted).iloc[0]
    assert row["norm_vs_times"] == pytest.approx(1.0)
    assert row["norm_vs_count"] == pytest.approx(-1.0)


def with_frames(settings=None, **frames: pd.DataFrame) -> Results:
    results = Results(settings=settings)
    vars(results).update(frames)
    return results


def norms(**added: float) -> pd.DataFrame:
    """Norms that fall with the rank, by variant; each adds its own constant."""
    rank = np.arange(1, 31)
    return pd.concat(
        pd.DataFrame(
            {"variant": variant, "rank": rank, "count": 60 // rank, "norm": 3.0 / rank + a}
        )
        for variant, a in added.items()
    ).assign(dataset="toy", base="Bonsai")


def test_figure1_has_the_norms_before_and_after() -> None:
    drawn = paper.figure1(with_frames(norms=norms(**{"plain": 0.0, "Taug-ds": 1.0})))
    after = drawn.drawing.axes[2].lines[0].get_ydata()
    np.testing.assert_allclose(after, 3.0 / np.arange(1, 31) + 1.0)
    assert len(paper.figure1(with_frames(norms=norms(plain=0.0))).frame) == 0


def test_figure2_has_a_line_for_each_number_of_copies() -> None:
    settings = {"plain": {"n_aug": 0, "tau": 0.1}, "RankNet": {"n_aug": 4, "tau": 0.1}}
    found = with_frames(settings, cells=cells(), norms=norms(plain=0.0, RankNet=1.0))
    figure = paper.figure2(found).drawing
    assert len(figure.axes[0].lines) == 2
    lines = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[1].lines}
    assert lines["PSP@1"] == pytest.approx([31.5, 33.5])


def test_figure5_has_a_panel_for_each_dataset() -> None:
    settings = {"plain": {"n_aug": 4, "tau": 0.1}, "RankNet": {"n_aug": 4, "tau": 1.0}}
    both = pd.concat([cells(), cells().assign(dataset="other")])
    figure = paper.figure5(with_frames(settings, cells=both)).drawing
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["toy", "other"]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["0.1", "1"]


def test_table4_puts_methods_side_by_side() -> None:
    table = tables.table4(cells())
    assert table["metric"].tolist() == ["PSP@1", "PSP@3", "PSP@5"]
    first = table.iloc[0]
    assert first["network (Bonsai)"] - first["Bonsai"] == pytest.approx(2.0)
    assert np.isnan(first["PfastreXML"])


def test_theorem1_has_a_panel_for_each_dataset_and_base() -> None:
    keys = {"dataset": ["a", "a", "b"], "base": ["x", "y", "x"], "variant": "plain", "label": 0}
    found = with_frames(
        norms=pd.DataFrame({**keys, "norm": 1.0}), predicted=pd.DataFrame({**keys, "times": 3})
    )
    visible = [axis.get_visible() for axis in paper.theorem1(found).drawing.axes]
    assert visible == [True, True, True, False]


def test_a_figure_without_data_says_so() -> None:
    figure = paper.figure5(with_frames({}, cells=cells()[:0])).drawing
    assert figure.axes[0].texts[0].get_text() == NOTHING
