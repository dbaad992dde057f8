"""Tables and figures of the RankNet+Taug paper from small frames worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers.ranknet_taug import figures as paper


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
    return frame.assign(convention=paper.CONVENTION, bin="all")


def test_table2_holds_the_base_and_the_points_gained() -> None:
    noise = cells().assign(bin="tail", value=-1.0)
    table = paper.table2(pd.concat([cells(), noise]))
    assert len(table) == 1
    row = table.iloc[0]
    assert row["PSP@1"] == pytest.approx(31.5)
    assert row["+PSP@1"] == pytest.approx(2.0)
    assert row["+PSP"] == pytest.approx(2.0)


def test_a_pair_with_a_missing_half_is_left_out() -> None:
    assert paper.table3(cells()).empty


def test_table5_has_a_row_for_each_method() -> None:
    table = paper.table5(cells())
    assert table["method"].tolist() == ["Bonsai", "RankNet Bonsai"]
    assert table["P@1"].diff().iloc[1] == pytest.approx(-1.0)


def test_table6_names_the_baseline() -> None:
    table = paper.table6(cells().replace({"variant": {"RankNet": "Taug-d"}}))
    assert table["method"].tolist() == ["baseline", "Taug-d"]


def test_times_predicted_counts_rows_with_the_label_in_the_top() -> None:
    indices = np.array([[1, 0, 2], [1, 2, -1]])
    assert paper.times_predicted(indices, 4, k=2).tolist() == [1, 2, 1, 0]


def test_correlation_of_norms_and_predictions() -> None:
    keys = {"dataset": "toy", "base": "Bonsai", "variant": "plain"}
    norms = pd.DataFrame(
        {**keys, "label": [0, 1, 2, 3], "norm": [4.0, 3.0, 2.0, 1.0], "count": [1, 2, 3, 4]}
    )
    predicted = pd.DataFrame({**keys, "label": [0, 1, 2], "times": [9, 5, 2]})
    row = paper.norm_correlations(norms, predicted).iloc[0]
    assert row["norm_vs_times"] == pytest.approx(1.0)
    assert row["norm_vs_count"] == pytest.approx(-1.0)


def test_figures_draw_what_they_are_given() -> None:
    rank = np.arange(1, 31)
    norms = pd.concat(
        pd.DataFrame({"variant": v, "rank": rank, "count": 60 // rank, "norm": 3.0 / rank + a})
        for v, a in (("plain", 0.0), ("Taug-ds", 1.0))
    ).assign(dataset="a")
    figure = paper.figure1(norms)
    np.testing.assert_allclose(figure.axes[2].lines[0].get_ydata(), 3.0 / rank + 1.0)

    by_aug = pd.concat(
        pd.DataFrame({"n_aug": n, "rank": rank, "norm": 1.0 + n / rank}) for n in (0, 4)
    ).assign(dataset="a")
    sweep = pd.DataFrame(
        {"dataset": "a", "n_aug": [4, 0], "metric": "PSP@1", "value": [42.0, 40.0]}
    )
    figure = paper.figure2(by_aug, sweep)
    assert len(figure.axes[0].lines) == 2
    assert figure.axes[1].lines[0].get_ydata().tolist() == [40.0, 42.0]

    taus = pd.DataFrame(
        {"dataset": ["a", "a", "b"], "tau": [0.1, 1.0, 0.1], "metric": "PSP@1", "value": [1, 2, 3]}
    )
    figure = paper.figure5(taus)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["a", "b"]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["0.1", "1"]


def test_table4_puts_methods_side_by_side() -> None:
    table = paper.table4(cells())
    assert table["metric"].tolist() == ["PSP@1", "PSP@3", "PSP@5"]
    first = table.iloc[0]
    assert first["RankNet (Bonsai)"] - first["Bonsai"] == pytest.approx(2.0)
    assert np.isnan(first["PfastreXML"])


def test_theorem1_has_a_panel_for_each_dataset_and_base() -> None:
    points = pd.DataFrame(
        {"dataset": ["a", "a", "b"], "base": ["x", "y", "x"], "norm": 1.0, "times": [0, 3, 5]}
    )
    visible = [axis.get_visible() for axis in paper.theorem1(points).axes]
    assert visible == [True, True, True, False]


def test_a_figure_without_data_says_so() -> None:
    empty = pd.DataFrame(columns=["dataset", "tau", "metric", "value"])
    assert paper.figure5(empty).axes[0].texts[0].get_text() == paper.NOTHING
