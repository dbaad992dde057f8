"""Verdicts of a comparison on small made-up runs: each kind of verdict, and none missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.evaluation.conventions import CONVENTIONS, interchangeable
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.evaluation.statistics import SUMMARY_METRICS, mean_relative_change
from benchmarks.papers.compare import compare, tally
from benchmarks.papers.compare_page import render_comparison, write_comparison
from benchmarks.papers.measurements import Measurements, MissingError
from benchmarks.papers.spec import load_paper, paper_folders
from benchmarks.papers.verdicts import OUTCOMES
from benchmarks.records.cell import Cell, Setup

METRICS = [f"{m}@{k}" for m in ("P", "nDCG", "PSP", "PSnDCG") for k in (1, 3, 5)]
N = 400


def cell_rows(
    dataset, base, variant, values, *, seed=0, status="ok", reason=None, convention="xc-matlab"
):
    rows = [
        {"metric": name.partition("@")[0], "k": int(name.partition("@")[2]), "value": value}
        for name, value in values.items()
    ] or [{"metric": None, "k": None, "value": np.nan}]
    return pd.DataFrame(rows).assign(
        dataset=dataset, base=base, variant=variant, seed=seed, status=status, reason=reason,
        convention=convention, bin="all",
    ).astype({"k": "Int64"})  # fmt: skip


def evaluation(values, seed=1):
    """Points that average to the values, scattered a little."""
    noise = np.random.default_rng(seed).normal(scale=0.05, size=N)
    noise -= noise.mean()
    numerators = {name: value / 100 + noise for name, value in values.items()}
    return Evaluation("xc-matlab", N, numerators, {name: np.ones(N) for name in values})


def published(paper, table, dataset, base, variant):
    rows = load_paper(paper).select([table, dataset, base, variant, "*"])
    values = {r.our_metric: float(r.value) for r in rows.itertuples() if r.role == "value"}
    values.setdefault("nDCG@1", values.get("P@1"))
    values.setdefault("PSnDCG@1", values.get("PSP@1"))
    return {name: value for name, value in values.items() if value is not None}


def run_of(*cells):
    """Frame and instances of cells given as (dataset, base, variant, values)."""
    frames = [cell_rows(*cell) for cell in cells]
    store = {Cell(d, b, v, 0): evaluation(values) for d, b, v, values in cells}
    return pd.concat(frames, ignore_index=True), store.get


def nothing(cell):
    return None


EMPTY = cell_rows("demo-bow", "DiSMEC", "plain", {"P@1": 50.0})


@pytest.mark.parametrize("paper", paper_folders())
def test_every_value_and_claim_has_a_verdict_whatever_ran(paper):
    frame = compare(paper, EMPTY, nothing)
    loaded = load_paper(paper)
    assert (frame.kind == "value").sum() == len(loaded.values)
    assert (frame.kind == "claim").sum() == len(loaded.claims)
    assert set(frame.outcome) <= {"not run", "not applicable"}
    assert (frame.reason.str.len() > 5).all()
    assert frame.verdict.str.match(r"(not run|not applicable): .+").all()


def test_a_run_that_gives_the_printed_values_reproduces_them():
    cells = [
        ("EURLex-4K", "Bonsai", "plain", published("ranknet_taug", "5", "EUR-Lex", "Bonsai", "base")
         | published("ranknet_taug", "2", "EUR-Lex", "Bonsai", "w/o RankNet")),
    ]  # fmt: skip
    plain = cells[0][3]
    deltas = load_paper("ranknet_taug").select(["2", "EUR-Lex", "Bonsai", "delta w/ RankNet", "*"])
    gains = {r.our_metric: float(r.value) for r in deltas.itertuples() if r.role == "delta"}
    vanilla = published("ranknet_taug", "5", "EUR-Lex", "Bonsai", "RankNet")
    ranked = plain | vanilla | {m: plain[m] + gain for m, gain in gains.items()}
    cells.append(("EURLex-4K", "Bonsai", "RankNet-simple", ranked))
    frame = compare("ranknet_taug", *run_of(*cells))
    mine = frame[(frame.our_dataset == "EURLex-4K") & (frame.our_base == "Bonsai")]
    assert set(mine.loc[mine.our_metric != "n_train", "outcome"]) == {"reproduced"}
    assert len(mine) == 24  # 6 values, 6 deltas, 2 averages, 2 x 5 vanilla values
    claim = frame[frame.metric == "ranknet-bonsai-eurlex"].iloc[0]
    assert claim.outcome == "holds"
    change = mine[(mine.table == "5") & (mine.variant == "RankNet") & (mine.metric == "P@1")].iloc[
        0
    ]
    assert change.change_ours == pytest.approx(change.change_printed, abs=0.1)
    assert change.change_low < change.change_ours < change.change_high
    assert change.runs == "EURLex-4K/Bonsai/RankNet-simple/seed0"


def verdict_of_pwcb(psp1_plain, psp1_variant):
    """PW Table 3, EURLex-4K, PW-cb, PSP@1: 43.48 over 41.20."""
    plain, changed = (dict.fromkeys(METRICS, 50.0) for _ in range(2))
    plain["PSP@1"], changed["PSP@1"] = psp1_plain, psp1_variant
    cells, instances = run_of(
        ("EURLex-4K", "DiSMEC", "plain", plain), ("EURLex-4K", "DiSMEC", "PW-cb", changed)
    )
    frame = compare("pw", cells.assign(convention="dismec-java"), instances, resamples=100)
    rows = frame[(frame.table == "3") & (frame.dataset == "EURLex-4K") & (frame.metric == "PSP@1")]
    return rows.set_index("variant").loc["PW-cb"]


def test_verdicts_by_tolerance_and_direction():
    close = verdict_of_pwcb(41.0, 43.0)
    assert (close.outcome, close.tolerance_from) == ("reproduced", "band")
    assert close.tolerance == 1.0
    assert verdict_of_pwcb(30.0, 33.0).outcome == "same direction"
    wrong = verdict_of_pwcb(33.0, 30.0)
    assert wrong.outcome == "contradicted"
    assert wrong.change_high < 0
    assert wrong.p < wrong.p_holm <= 1
    assert verdict_of_pwcb(30.0, 30.0).outcome == "outside tolerance"


def test_the_sign_comes_before_the_band():
    """Printed 43.48 over 41.20, ours 43.4 over 43.8: near, but certainly the other way."""
    fell = verdict_of_pwcb(43.8, 43.4)
    assert abs(fell.ours - 43.48) < fell.tolerance
    assert (fell.change_high < 0, fell.outcome) == (True, "contradicted")
    assert fell.reason == "within tolerance, but the change has the other sign"
    assert verdict_of_pwcb(43.4, 43.4).outcome == "reproduced"  # no change: no certain sign


@pytest.mark.parametrize(
    ("ours", "spread", "outcome"),
    [(-0.04, 0.3, "contradicted"), (-0.04, 3.0, "reproduced"), (0.04, 0.3, "reproduced")],
)
def test_the_sign_of_a_printed_difference_comes_before_the_band(ours, spread, outcome):
    """Printed +0.95 points; ours is 0.91 points away from it at most, in a band of 1 point."""
    cells = cell_rows("Wiki10-31K", "FastXML", "plain", {"PSP@1": 9.76})
    changed = cell_rows("Wiki10-31K", "FastXML", "RankNet-simple", {"PSP@1": 9.76 + ours})

    def saved(cell):
        found = evaluation({"PSP@1": 9.76})
        if cell.variant == "RankNet-simple":
            step = spread * np.where(np.arange(N) % 2, 1, -1) + ours
            found.numerators["PSP@1"] = found.numerators["PSP@1"] + step / 100
        return found

    paper = load_paper("ranknet_taug")
    one = paper.select(["2", "Wiki10-31K", "FastXML", "*", "PSP@1"])
    frame = compare(replace(paper, values=one, claims=[]), pd.concat([cells, changed]), saved)
    row = frame.set_index("variant").loc["delta w/ RankNet"]
    assert (row.printed, row.outcome) == ("0.95", outcome)
    assert (row.ours_low > 0 or row.ours_high < 0) == (spread < 1)


def test_an_interval_over_several_seeds_has_their_spread():
    """P@1 rises by 1, 2 and 6 points with three seeds: s = 2.6458, t = 4.3027."""
    gains = {0: 1.0, 1: 2.0, 2: 6.0}
    frames = [cell_rows("D", "B", "plain", {"P@1": 50.0}, seed=s) for s in gains]
    frames += [cell_rows("D", "B", "PW", {"P@1": 50.0 + g}, seed=s) for s, g in gains.items()]

    def saved(cell):
        return evaluation({"P@1": 50.0 + (gains[cell.seed] if cell.variant == "PW" else 0.0)})

    ours = Measurements(pd.concat(frames), saved, resamples=100)
    pair = (Setup("D", "B", "plain"), Setup("D", "B", "PW"))
    change = ours.change(*pair, "P@1", "xc-matlab", relative=False)
    assert (change.value, len(change.seeds)) == (3.0, 3)
    # The gain is the same at each point: nothing but the seeds makes the interval.
    assert change.high - 3.0 == pytest.approx(4.302653 * 2.645751 / np.sqrt(3), rel=1e-5)
    assert change.low < 0 < change.p
    assert change.p > 0.05
    value = ours.measured(pair[1], "P@1", "xc-matlab")
    alone = Measurements(frames[3], saved, resamples=100).measured(pair[1], "P@1", "xc-matlab")
    assert value.half_width**2 == pytest.approx(alone.half_width**2 + 6.5725**2, rel=1e-3)


def test_the_tolerance_is_the_largest_of_three():
    values = dict.fromkeys(METRICS, 50.0) | {"PSP@1": 37.0}
    cells = cell_rows("EURLex-4K", "Bonsai", "plain", values)
    wide = evaluation(values)
    wide.numerators["PSP@1"] = wide.numerators["PSP@1"] + 20 * (wide.numerators["P@1"] - 0.5)
    frame = compare("ranknet_taug", cells, lambda cell: wide)
    row = frame[(frame.table == "2") & (frame.base == "Bonsai") & (frame.metric == "PSP@1")].iloc[0]
    assert row.tolerance_from == "interval"
    assert row.tolerance == pytest.approx((row.ours_high - row.ours_low) / 2)
    assert row.tolerance > 1


def test_summaries_follow_equation_30():
    plain = {m: 50.0 + i for i, m in enumerate(METRICS)}
    changed = {m: value * 1.1 for m, value in plain.items()}
    cells, instances = run_of(
        ("EURLex-4K", "DiSMEC", "plain", plain), ("EURLex-4K", "DiSMEC", "PW", changed)
    )
    frame = compare("pw", cells.assign(convention="dismec-java"), instances, resamples=50)
    frame = frame[(frame.table == "3") & (frame.dataset == "EURLex-4K")]
    row = frame[frame.metric == "summary_PS"].set_index("variant")
    assert row.loc["PW", "ours"] == pytest.approx(mean_relative_change(plain, changed, "PS"))
    assert row.loc["Original", "outcome"] == "not applicable"
    assert len(SUMMARY_METRICS["PS"]) == 6


def test_a_change_needs_a_common_seed_and_equal_terms():
    one = cell_rows("D", "B", "plain", {"P@1": 50.0}, seed=0)
    two = cell_rows("D", "B", "PW", {"P@1": 60.0}, seed=1)
    with pytest.raises(MissingError, match="no seed in common"):
        Measurements(pd.concat([one, two]), nothing).change(
            Setup("D", "B", "plain"), Setup("D", "B", "PW"), "P@1", "xc-matlab", relative=True
        )
    two = two.assign(seed=0)
    runs = pd.DataFrame(
        {"dataset": "D", "base": "B", "variant": ["plain", "PW"], "seed": 0, "data": ["x", "y"]}
    )
    with pytest.raises(MissingError, match="same data and budget"):
        Measurements(pd.concat([one, two]), nothing, runs).change(
            Setup("D", "B", "plain"), Setup("D", "B", "PW"), "P@1", "xc-matlab", relative=True
        )
    runs = runs.assign(data="x", device=["cpu", "cuda"])
    with pytest.raises(MissingError, match=r"they differ in device \(cpu, cuda\)"):
        Measurements(pd.concat([one, two]), nothing, runs).change(
            Setup("D", "B", "plain"), Setup("D", "B", "PW"), "P@1", "xc-matlab", relative=True
        )
    fair = Measurements(pd.concat([one, two]), nothing, runs.assign(device="cpu")).change(
        Setup("D", "B", "plain"), Setup("D", "B", "PW"), "P@1", "xc-matlab", relative=True
    )
    assert fair.value == pytest.approx(20.0)


def outcome_for(cells, base="Bonsai", metric="PSP@1"):
    paper = load_paper("ranknet_taug")
    one = paper.select(["2", "EUR-Lex", base, "w/o RankNet", metric])
    return compare(replace(paper, values=one, claims=[]), cells, nothing).iloc[0]


def test_reasons():
    half = cell_rows("EURLex-4K-half", "Bonsai", "plain", {"PSP@1": 36.91})
    row = outcome_for(half)
    assert row.outcome == "not run"
    assert "EURLex-4K-half is, but it is another split" in row.verdict
    other = cell_rows("EURLex-4K", "Parabel", "plain", {"PSP@1": 36.0})
    assert outcome_for(other).verdict == "not run: Bonsai was not run on EURLex-4K"
    variant = cell_rows("EURLex-4K", "Bonsai", "PW", {"PSP@1": 36.0})
    assert "Bonsai with plain was not run" in outcome_for(variant).verdict
    for status, reason, expected in (
        ("oom", "over 4 GB", "failed: oom: over 4 GB"),
        ("skipped", "needs a GPU", "not run: needs a GPU"),
        ("skipped", "not applicable: no loss to weight", "not applicable: no loss to weight"),
    ):
        bad = cell_rows("EURLex-4K", "Bonsai", "plain", {}, status=status, reason=reason)
        assert outcome_for(bad).verdict == expected
    java = cell_rows("EURLex-4K", "Bonsai", "plain", {"PSP@1": 36.9}, convention="dismec-java")
    assert "scored under dismec-java, the table uses xc-matlab" in outcome_for(java).verdict
    same = cell_rows("EURLex-4K", "Bonsai", "plain", {"PSP@1": 36.9}, convention="attentionxml")
    assert outcome_for(same).outcome == "reproduced"
    dense = compare("ranknet_taug", same, nothing)
    assert dense[dense.table == "3"].reason.str.contains("dense embeddings").any()
    rival = dense[(dense.table == "4") & (dense.base == "ProXML")]
    assert rival.verdict.str.match("not applicable: ProXML: .* this project does not run it").all()
    built = cell_rows("EURLex-4K", "ProXML", "plain", {"PSP@1": 45.2})  # a user's own, say
    ran = compare("ranknet_taug", built, nothing)
    assert (ran[(ran.table == "4") & (ran.base == "ProXML")].outcome == "reproduced").sum() == 1


def test_conventions_that_mean_the_same():
    assert interchangeable("PSnDCG@3", "xc-matlab", "attentionxml")
    assert not interchangeable("PSnDCG@3", "xc-matlab", "pyxclib")
    assert interchangeable("PSP@3", "xc-matlab", "pyxclib")
    assert interchangeable("PSP@3", "xc-matlab", "aplc")
    assert not interchangeable("nDCG@3", "xc-matlab", "aplc")
    assert not interchangeable("PSP@1", "xc-matlab", "glas")
    assert all(interchangeable("nDCG@5", c, c) for c in CONVENTIONS)


def test_dataset_counts_are_compared_with_the_preparation():
    meta = {"n_train": 15539, "n_test": 3808, "n_labels": 3993}
    meta |= {"documents_per_label": 25.73, "labels_per_document": 5.39}
    frame = compare("pw", EMPTY, nothing, facts=lambda d: meta if d == "EURLex-4K" else None)
    rows = frame[(frame.table == "2") & (frame.dataset == "EURLex-4K")].set_index("metric")
    assert rows.loc["n_train", "outcome"] == "reproduced"
    assert rows.loc["n_test", "outcome"] == "outside tolerance"
    assert (
        rows.loc["n_features", "verdict"] == "not run: n_features is not counted in our preparation"
    )
    assert (rows.loc["APpL", "printed"], rows.loc["ALpP", "printed"]) == ("25.7", "5.3")
    assert rows.loc["APpL", ["outcome", "reason"]].tolist() == [
        "reproduced",
        "counted in our preparation",
    ]
    assert rows.loc["ALpP", "outcome"] == "reproduced"
    assert rows.loc["ALpP", "reason"].endswith("; cut, not rounded")


def test_claims_on_ours():
    """Three of PW's claims on made-up cells of every dataset they speak of."""
    datasets = set(load_paper("pw").select(["3", "*", "*", "*", "*"]).our_dataset)
    plain = dict.fromkeys(METRICS, 50.0)
    cells = []
    for i, dataset in enumerate(sorted(datasets)):
        changed = {m: v * (1.04 + 0.015 * i) for m, v in plain.items()}
        cells += [(dataset, "DiSMEC", "plain", plain), (dataset, "DiSMEC", "PW", changed)]
    frame, instances = run_of(*cells)
    result = compare("pw", frame.assign(convention="dismec-java"), instances, resamples=50)
    claims = result[result.kind == "claim"].set_index("metric")
    assert claims.loc["dismec-pw-ps-least", "outcome"] == "holds"  # 4.0 for 3.9
    assert claims.loc["dismec-pw-vanilla-least", "outcome"] == "contradicted"  # +4 for -1.5
    assert claims.loc["dismec-pw-vanilla-most", "outcome"] == "contradicted"  # +11.5 for +16.75
    assert claims.loc["dismec-pw-vanilla-most", "reason"].endswith("the amount is not")
    assert claims.loc["dismec-pwcb-ps-least", "outcome"] == "not run"


@pytest.mark.parametrize(("change", "outcome"), [(0.3, "contradicted"), (-0.3, "holds")])
def test_the_sign_of_a_claimed_change_comes_before_the_band(change, outcome):
    """Claimed -1.5 %, in a band of 2: a certain rise by 0.3 % is near, but no cost."""
    paper = load_paper("pw")
    claim = next(c for c in paper.claims if c["id"] == "dismec-pw-vanilla-least")
    plain = dict.fromkeys(METRICS, 50.0)
    changed = {m: v * (1 + change / 100) for m, v in plain.items()}
    cells = [
        (dataset, "DiSMEC", variant, values)
        for dataset in set(paper.select(["3", "*", "*", "*", "*"]).our_dataset)
        for variant, values in (("plain", plain), ("PW", changed))
    ]
    frame, instances = run_of(*cells)
    frame = frame.assign(convention="dismec-java")
    result = compare(replace(paper, claims=[claim]), frame, instances, resamples=50)
    assert result[result.kind == "claim"].iloc[0].outcome == outcome


OWN, SHARED = (1, 2), (1, 1)
"""Whether the documents on which two runs do well are other ones, or the same."""


@pytest.mark.parametrize(
    ("change", "documents", "outcome"),
    [
        (0.2, OWN, "holds"),
        (-0.2, OWN, "undecided"),
        (-0.2, SHARED, "contradicted"),
        (-9.0, OWN, "contradicted"),
    ],
)
@pytest.mark.parametrize("kind", ["inequality", "rises"])
def test_a_failed_inequality_is_undecided_while_the_difference_may_be_zero(
    kind, change, documents, outcome
):
    """Ours are 40 and 40 + change, each known to half a point, the difference perhaps better."""
    paper = load_paper("pw")
    claim = next(c for c in paper.claims if c["id"] == "attentionxml-pwcb-amazon-psp1")
    if kind == "rises":
        rises = {"cells": claim["left"]["cell"], "over": "Original"}
        claim = {"id": "up", "where": "", "says": "up", "rises": rises}
    values = {"plain": 40.0, "PW-cb": 40.0 + change}
    seeds = dict(zip(values, documents, strict=True))
    setup = ("Amazon-670K-text", "AttentionXML")
    frame = pd.concat([cell_rows(*setup, v, {"PSP@1": x}) for v, x in values.items()])
    result = compare(
        replace(paper, claims=[claim]),
        frame.assign(convention="attentionxml"),
        lambda cell: evaluation({"PSP@1": values[cell.variant]}, seeds[cell.variant]),
        resamples=100,
    )
    row = result[result.kind == "claim"].iloc[0]
    assert row.outcome == outcome
    if kind == "rises":
        assert ("1 of 1 cells do not rise" in row.reason) == (change < 0)
        assert ("Amazon-670K, PW-cb, PSP@1 -" in row.reason) == (change < 0)


def test_tally_and_page(tmp_path):
    values = published("ranknet_taug", "2", "EUR-Lex", "Bonsai", "w/o RankNet")
    cells, instances = run_of(("EURLex-4K", "Bonsai", "plain", values))
    frame = write_comparison(
        "ranknet_taug", cells, instances, tmp_path / "c.csv", tmp_path / "c.html"
    )
    counts = tally({"ranknet_taug": frame}).set_index("kind")
    assert counts.loc["value", "printed"] == 477
    assert counts.loc["value", "measured"] == 6
    assert counts.loc["value", "in words"].startswith("6 of 6 measured values reproduced")
    assert counts.loc["value", list(OUTCOMES)].sum() == 477
    assert len(pd.read_csv(tmp_path / "c.csv")) == len(frame)
    page = (tmp_path / "c.html").read_text()
    assert "6 of 6 measured values reproduced; 6 of 168 measured" in page
    assert page == render_comparison(load_paper("ranknet_taug"), frame)


def test_a_recipe_of_the_paper_stands_for_its_row_where_it_was_run():
    """PW Table 4 is of ensembles, trained as config/paper.yaml says; others stay as mapped."""
    plain, changed = (dict.fromkeys(METRICS, value) for value in (50.0, 55.0))
    cells, instances = run_of(
        ("EURLex-4K-text", "AttentionXML-PW", "ensemble", plain),
        ("EURLex-4K-text", "AttentionXML-PW", "ensemble+PW", changed),
        ("EURLex-4K-text", "AttentionXML", "PW-cb", changed),
    )
    frame = compare("pw", cells.assign(convention="attentionxml"), instances, resamples=100)
    rows = frame[(frame.table == "4") & (frame.dataset == "EURLex-4K") & (frame.metric == "P@1")]
    rows = rows.set_index("variant")
    ours = rows[["our_base", "our_variant", "ours"]].apply(tuple, axis=1).to_dict()
    assert ours == {
        "Original": ("AttentionXML-PW", "ensemble", 50.0),
        "PW": ("AttentionXML-PW", "ensemble+PW", 55.0),
        "PW-cb": ("AttentionXML", "PW-cb", 55.0),
    }
    # The change is over the row that the paper prints as plain, whatever it is called here.
    assert rows.loc["PW", "change_ours"] == pytest.approx(10.0)
    assert np.isnan(rows.loc["Original", "change_ours"])
    assert load_paper("pw").mapped is None, "the paper itself is left as it was"
