"""The papers as data: they load, are complete, and their summaries follow from their cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.common.schema import InvalidDocumentError
from benchmarks.data.cards import all_cards
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import read_meta
from benchmarks.data.synthetic import NAMES as SYNTHETIC
from benchmarks.evaluation.conventions import CONVENTIONS
from benchmarks.evaluation.metrics import evaluate
from benchmarks.evaluation.statistics import mean_relative_change
from benchmarks.evaluation.topk import TopK
from benchmarks.papers import spec as papers
from benchmarks.papers.claims import judge, printed_value
from benchmarks.papers.printed import Interval, mean, printed, relative_change
from benchmarks.papers.spec import (
    load_paper,
    load_papers,
    paper_folders,
    read_published,
    sources,
)
from methods.registry import ALIASES, BASES, VARIANTS, canonical

finite = st.floats(-1e3, 1e3)


def test_every_published_value_is_there():
    counts = {paper.id: len(paper.values) for paper in load_papers()}
    assert counts == {"pw": 624, "ranknet_taug": 477, "tailmix": 650, "glas": 489, "httn": 228}


@pytest.mark.parametrize("name", paper_folders())
def test_every_claim_can_be_judged_on_the_print(name):
    paper = load_paper(name)
    assert len({claim["id"] for claim in paper.claims}) == len(paper.claims) > 0
    for claim in paper.claims:
        for reading in (claim.get("readings") or {"": None}).values():
            judge(paper, claim, printed_value, reading)


def test_all_64_summaries_of_pw_follow_with_at_1_counted_twice():
    paper = load_paper("pw")
    checked = {"six terms": 0, "five terms": 0}
    for _, summary in paper.values[paper.values.role == "mean_change"].iterrows():
        if summary.variant == summary.over:
            continue
        place = [summary.table, summary.dataset, summary.base]
        values = {
            variant: {
                row.our_metric: float(row.value)
                for row in paper.select([*place, variant, "*"]).itertuples()
                if row.role == "value"
            }
            for variant in (summary.over, summary.variant)
        }
        base, changed = values[summary.over], values[summary.variant]
        kind = summary.terms[0]
        six = mean_relative_change(base, changed, kind)
        assert six == pytest.approx(float(summary.value), abs=0.0101), summary.tolist()
        checked["six terms"] += 1
        family = ("PSP", "PSnDCG") if kind == "PS" else ("P", "nDCG")
        five = [m for m in base if m.partition("@")[0] in family]
        assert len(five) == 5
        plain = 100 * sum(changed[m] / base[m] - 1 for m in five) / 5
        checked["five terms"] += abs(plain - float(summary.value)) < 0.0101
    assert checked["six terms"] == 64
    assert checked["five terms"] < 10  # the plain mean of the printed columns is not eq. 30


def test_eurlex_4k_is_three_datasets():
    """The bag-of-words split, the text split and HTTN's are different data."""
    assert (
        load_paper("pw").one(["3", "EURLex-4K", "DiSMEC", "PW", "P@1"]).our_dataset == "EURLex-4K"
    )
    text = load_paper("pw").one(["4", "EURLex-4K", "AttentionXML", "PW", "P@1"])
    assert text.our_dataset == "EURLex-4K-text"
    assert load_paper("httn").one(["4", "EUR-Lex", "DXML", "", "P@1"]).our_dataset == "EUR-Lex-HTTN"
    for paper in load_papers():
        assert "EURLex-4K-half" not in set(paper.values.our_dataset)


def metric_names():
    """Every metric that an evaluation with cut-offs and a threshold measures."""
    labels = sparse.csr_matrix(np.tile(np.eye(10, dtype=np.float32), (10, 1)))
    top = TopK(np.tile(np.arange(10, dtype=np.int32), (100, 1)), np.zeros((100, 10), np.float32))
    return set(evaluate(top, labels, labels, threshold=0.5).numerators)


@pytest.mark.parametrize("name", paper_folders())
def test_every_mapped_name_exists_or_carries_a_reason(name):
    """A printed value that is mapped to nothing can never be compared, and no verdict says so."""
    paper = load_paper(name)
    cells = {
        "our_dataset": {*all_cards(), *SYNTHETIC},
        "our_base": set(BASES),
        "our_variant": {"plain", *VARIANTS, *ALIASES},
    }
    printed = {
        column: {part for value in paper.values[column] for part in {value, *value.split("+")}}
        for column in cells
    }
    for column, known in cells.items():
        for value in set(paper.values.loc[paper.values.role != "statistic", column]):
            parts = {value} if value in known else set(value.split("+"))
            assert parts <= known | set(paper.missing), f"{column} {value}"
        stale = printed[column] & known & set(paper.missing)
        assert not stale, f"{stale} exist: they need no reason any more"
    assert set(paper.missing) <= set.union(*printed.values()), "a reason for what is not printed"
    assert all(canonical(variant) == variant for variant in paper.values.our_variant), "an alias"
    scored = paper.values[paper.values.role.isin(["value", "delta"])]
    assert set(scored.our_metric) <= metric_names()
    assert set(paper.values.convention) <= set(CONVENTIONS)


@pytest.fixture(scope="module")
def written_facts(tmp_path_factory):
    """The keys of meta.json, as the preparation of bags of words and of texts writes them."""
    folders = [tmp_path_factory.mktemp("prepared") / name for name in ("tiny-bow", "tiny-text")]
    for folder in folders:
        ensure(folder.name, root=folder.parent)
    return {key for folder in folders for key in read_meta(folder)}


@pytest.mark.parametrize("name", paper_folders())
def test_every_printed_statistic_is_one_that_preparation_counts(name, written_facts):
    values = load_paper(name).values
    statistics = values[values.role == "statistic"]
    assert len(statistics) > 0
    assert set(statistics.our_metric) <= written_facts
    assert set(statistics.our_dataset) <= set(all_cards())


def test_roles():
    paper = load_paper("ranknet_taug")
    delta = paper.one(["2", "EUR-Lex", "Bonsai", "delta w/ RankNet", "PSN@3"])
    assert (delta.role, delta.over, delta.our_variant) == ("delta", "w/o RankNet", "RankNet-simple")
    assert delta.our_metric == "PSnDCG@3"
    average = paper.one(["2", "EUR-Lex", "Bonsai", "delta w/ RankNet", "PSP_avg"])
    assert (average.role, average.terms) == ("mean", ("PSP@1", "PSP@3", "PSP@5"))
    ensemble = load_paper("tailmix").select(["2", "*", "*", "TailMix+baseline ensemble", "*"])
    assert set(ensemble.model) == {"ensemble"}


def test_bad_files_are_named_with_their_line(tmp_path):
    head = "table,dataset,base,variant,metric,value,note\n"
    (tmp_path / "t.csv").write_text(head + "1,D,B,V,P@1,12.3,\n1,D,B,V,P@3,n/a,\n")
    with pytest.raises(ValueError, match=r"t\.csv, line 3: value"):
        read_published(tmp_path / "t.csv")
    with pytest.raises(KeyError, match="there are pw"):
        papers.load_paper("nosuch")
    with pytest.raises(KeyError, match="no value at"):
        load_paper("pw").one(["9", "*", "*", "*", "*"])


def paper_of_ones_own(folder, name="mine", **keys):
    """A paper of one table with one value, written into a folder."""
    (folder / "published").mkdir(parents=True)
    (folder / "published" / "t.csv").write_text(
        "table,dataset,base,variant,metric,value,note\n1,D,DiSMEC,,P@1,12.3,\n"
    )
    table = {"table": "1", "file": "t.csv", "about": "A table", "role": "results"}
    spec = {"id": name, "title": "T", "year": 2026, "venue": "V", "claims": [], **keys}
    spec |= {
        "band": {"points": 1, "change": 1},
        "tables": [{**table, "datasets": {"D": "demo-bow"}}],
    }
    (folder / "paper.yaml").write_text(yaml.safe_dump(spec))
    return folder


def test_papers_are_found_in_order_and_the_users_own_beside_them(tmp_path):
    shipped = list(paper_folders())
    assert shipped == ["pw", "ranknet_taug", "tailmix", "glas", "httn"]
    late = paper_of_ones_own(tmp_path / "a" / "late", "late")
    first = paper_of_ones_own(tmp_path / "b" / "first", "first", order=0)
    extra = {"late": late, "first": str(first)}
    assert list(paper_folders(extra)) == ["first", *shipped, "late"]
    assert [paper.id for paper in load_papers(extra)] == ["first", *shipped, "late"]
    assert load_paper("late", extra).one(["1", "D", "DiSMEC", "", "P@1"]).our_dataset == "demo-bow"
    assert sources("late", extra) == [str(late / "paper.yaml"), str(late / "published" / "t.csv")]
    assert list(paper_folders()) == shipped


def test_folders_that_are_no_papers_are_refused(tmp_path):
    mine = paper_of_ones_own(tmp_path / "mine")
    with pytest.raises(InvalidDocumentError, match=r"holds no paper\.yaml"):
        paper_folders({"mine": tmp_path / "nowhere"})
    with pytest.raises(InvalidDocumentError, match="the id is 'mine', but the paper is named 'o"):
        paper_folders({"other": mine})
    with pytest.raises(InvalidDocumentError, match="'pw' .* has the id of .*papers/pw"):
        paper_folders({"pw": mine})


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("12.34", 12.335, 12.345),
        ("+5.2", 5.15, 5.25),
        ("-0.24", -0.245, -0.235),
        ("\N{MINUS SIGN}1.5", -1.55, -1.45),
        ("70", 69.5, 70.5),
        ("1,186,239", 1186238.5, 1186239.5),
    ],
)
def test_printed_intervals(text, low, high):
    interval = printed(text)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-12)


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not a printed value"):
        printed("1.2.3")


@st.composite
def members(draw):
    """An interval and a member of it."""
    a, b, t = draw(finite), draw(finite), draw(st.floats(0, 1))
    low, high = min(a, b), max(a, b)
    return Interval(low, high), min(max(low + t * (high - low), low), high)


@given(members(), members())
def test_interval_arithmetic_holds_every_member(one, other):
    (a, x), (b, y) = one, other
    for interval, value in ((a + b, x + y), (a - b, x - y), (a * b, x * y), (-a, -x)):
        room = 1e-9 * max(1.0, abs(value))
        assert interval.low - room <= value <= interval.high + room
    if b.low > 0.1 or b.high < -0.1:
        ratio = a / b
        assert ratio.low - 1e-6 <= x / y <= ratio.high + 1e-6
    both = mean([a, b])
    assert both.low - 1e-9 <= (x + y) / 2 <= both.high + 1e-9


def test_relative_change_uses_the_base_once():
    change = relative_change(printed("12.00"), printed("10.00"))
    assert change.low < 20 < change.high
    assert math.isclose(change.high, 100 * (12.005 / 9.995 - 1))
