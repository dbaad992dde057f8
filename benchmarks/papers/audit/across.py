"""Checks that need more than one paper or run: copies, reruns, datasets, features.

Also what follows from a faulty cell: the summaries that rest on it, computed without it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from benchmarks.data.cards import all_cards
from benchmarks.evaluation.statistics import SUMMARY_METRICS
from benchmarks.papers import printed as intervals
from benchmarks.papers.audit.within import NDCG_CHECK, Finding, position, rows_of, with_implied
from benchmarks.papers.printed import Interval
from benchmarks.papers.spec import Paper
from benchmarks.papers.verdicts import DISAGREES, DOES_NOT_FOLLOW, IMPOSSIBLE, ODD, OK
from benchmarks.records.cell import PLAIN

RERUN_CHECK = "own run in line with copied values"

BELOW = 1.0
"""By how many points, on average over P@k, an own run may lie below a copy of the same method."""


def check_copies(papers: Sequence[Paper]) -> Iterator[Finding]:
    """Rows copied from one source must agree wherever they are printed.

    A row that agrees in some cells and not in others mixes sources; one whose PSP is another
    paper's PSnDCG has the wrong metric; one that equals another method's has the wrong name.
    """
    blocks: dict[tuple[str, str], list[str]] = {}
    for a, b in itertools.combinations(_plain_rows(papers), 2):
        if a.paper == b.paper or a.dataset != b.dataset:
            continue
        shared = [m for m in a.values if m in b.values]
        equal = [m for m in shared if _same(a.values[m], b.values[m])]
        renamed = a.base != b.base
        if renamed:
            if len(equal) < 3 or len(equal) <= len(shared) / 2:
                continue
            message = (
                f"{len(equal)} of {len(shared)} values of {a.base} in {a.paper} are those of "
                f"{b.base} in {b.paper}: a row has the wrong name"
            )
            yield _copy_finding(a, b, equal, DISAGREES, "row under one name", message)
        shifts = [(x, y) for x, y in ((a, b), (b, a)) if _psp_is_psndcg(x, y)]
        for x, y in shifts:
            pairs = _psp_is_psndcg(x, y)
            blocks.setdefault((x.paper, x.dataset), []).append(x.base)
            message = f"what {x.paper} prints as PSP is PSnDCG in {y.paper}: " + ", ".join(
                f"{m} {x.values[m].middle:g} = {n} {y.values[n].middle:g}" for m, n in pairs
            )
            yield _copy_finding(
                x, y, [m for m, _ in pairs], DOES_NOT_FOLLOW, "metric as named", message
            )
        if renamed or shifts or not equal:
            continue
        unequal = [m for m in shared if m not in equal]
        mixed = bool(unequal) and len(equal) > 2
        message = (
            f"the row mixes sources: {len(equal)} of {len(shared)} values are those of "
            f"{b.paper}, but not {', '.join(unequal)}"
        )
        yield _copy_finding(
            a,
            b,
            unequal or equal,
            DISAGREES if mixed else OK,
            "row from one source",
            message if mixed else "",
        )
    for (paper_id, dataset), bases in blocks.items():
        yield Finding(
            paper_id,
            "",
            dataset,
            "block of PSP",
            DOES_NOT_FOLLOW,
            f"PSP of {', '.join(sorted(set(bases)))}",
            "PSnDCG",
            f"the {dataset} block of PSP holds PSnDCG for {len(set(bases))} copied methods, "
            "each that another paper prints too; only the paper's own row can be PSP",
        )


def check_reruns(papers: Sequence[Paper]) -> Iterator[Finding]:
    """An own run of a base is not far below the values that another paper copied for it.

    Copies come from a public list of results; a run far below it had other data or settings, and
    what is gained over it is gained more easily.
    """
    for own, copy in itertools.product(_plain_rows(papers, own=True), _plain_rows(papers)):
        metrics = [m for m in own.values if m.startswith("P@") and m in copy.values]
        if own.paper == copy.paper or (own.dataset, own.base) != (copy.dataset, copy.base):
            continue
        if metrics:
            gap = intervals.mean([own.values[m] - copy.values[m] for m in metrics]).middle
            low = gap < -BELOW
            message = (
                f"P lies {-gap:.2f} points below the values copied by {copy.paper}, on average"
            )
            yield _copy_finding(
                own, copy, metrics, ODD if low else OK, RERUN_CHECK, message if low else ""
            )


def check_features(paper: Paper) -> Iterator[Finding]:
    """Runs said to be on other features of a dataset must not equal those on the first."""
    known = with_implied(paper)
    key = ["dataset", "our_base", "our_variant"]
    for (dataset, base, variant), group in known.groupby(key, sort=False):
        for one, other in itertools.combinations(sorted(set(group["our_dataset"])), 2):
            a, b = (group[group["our_dataset"] == name] for name in (one, other))
            both = a.merge(b, on="our_metric", suffixes=("", "_2"))
            same = both[
                [
                    Interval(r.low, r.high).overlaps(Interval(r.low_2, r.high_2))
                    for r in both.itertuples()
                ]
            ]
            if both.empty:
                continue
            repeated = len(same) > 1
            yield Finding(
                paper.id,
                ", ".join(sorted({*both["table"], *both["table_2"]})),
                position(str(dataset), str(base), str(variant)),
                "other features, other values",
                ODD if repeated else OK,
                ", ".join(f"{r.our_metric} {r.value}" for r in same.itertuples()),
                f"{one} and {other}",
                f"the run on {other} has the values of the run on {one}" if repeated else "",
            )


def check_statistics(papers: Sequence[Paper]) -> Iterator[Finding]:
    """Counts of one dataset agree across papers; averages follow from the counts.

    Of counts that differ the one on the dataset's card is right, or else that of most papers; the
    others are charged, all of them where neither decides.
    """
    tables = [p.values[p.values["role"] == "statistic"] for p in papers]
    entries = pd.concat(tables)
    cards = all_cards()
    for (dataset, metric), group in entries.groupby(["our_dataset", "our_metric"], sort=False):
        if not str(metric).startswith("n_") or len(group) < 2:
            continue
        counts = group["value"].astype(float)
        own = cards[str(dataset)].counts.get(str(metric)) if dataset in cards else None
        (first, times), *others = Counter(counts).most_common()
        decided = own is not None or all(times > n for _, n in others)
        right, source = (first, "most papers") if own is None else (float(own), "its card")
        named = ", ".join(f"{p} {v}" for p, v in zip(group["paper"], group["value"], strict=True))
        by = f"; {source}: {right:.0f}" if decided else ""
        for (_, entry), count in zip(group.iterrows(), counts, strict=True):
            agrees = decided and count == right
            yield Finding(
                entry["paper"],
                entry["table"],
                position(entry["dataset"], "", "", entry["metric"]),
                "counts agree across papers",
                OK if agrees else DISAGREES,
                entry["value"],
                f"{right:.0f}" if decided else "one count",
                "" if agrees else f"{dataset}: {named}{by}",
            )
    for (paper_id, table, dataset), group in entries.groupby(
        ["paper", "table", "dataset"], sort=False
    ):
        known = {
            m: Interval(lo, hi) for m, lo, hi in group[["our_metric", "low", "high"]].to_numpy()
        }
        if {"n_train", "n_test", "n_labels", "labels_per_document", "documents_per_label"} <= set(
            known
        ):
            yield _check_average(str(paper_id), str(table), str(dataset), known)


def check_consequences(papers: Sequence[Paper], findings: Sequence[Finding]) -> Iterator[Finding]:
    """Summaries (eq. 30) that rest on a faulty base row, computed with a sound one.

    An impossible nDCG is taken to change as P does at the same k; in a row of mixed sources the
    values that differ are replaced by those of the paper whose row is whole.
    """
    by_id = {paper.id: paper for paper in papers}
    faulty: dict[tuple[str, str, str, str], set[str]] = {}
    for f in findings:
        if f.verdict == IMPOSSIBLE and f.check == NDCG_CHECK:
            dataset, base, variant, metric = f.where.split(", ")
            faulty.setdefault((f.paper, dataset, base, variant), set()).add(metric)
    for (paper_id, dataset, base, variant), bad in faulty.items():
        yield from _without(by_id[paper_id], dataset, base, variant, bad, {}, "")
    copies = _plain_rows(papers)
    for a, b in itertools.permutations(copies, 2):
        if (a.dataset, a.base) != (b.dataset, b.base) or a.paper == b.paper:
            continue
        if not any(
            f.check == "row from one source"
            and f.verdict == DISAGREES
            and (f.paper, f.where) == (a.paper, position(a.dataset, a.base, ""))
            for f in findings
        ):
            continue
        entries = by_id[a.paper].values
        summaries = entries[
            (entries["our_dataset"] == a.dataset)
            & (entries["our_base"] == a.base)
            & (entries["role"] == "mean_change")
        ]
        for dataset, base, over in summaries[["dataset", "base", "over"]].drop_duplicates().values:
            yield from _without(by_id[a.paper], dataset, base, over, set(), b.values, b.paper)


def _without(
    paper: Paper,
    dataset: str,
    base: str,
    variant: str,
    bad: set[str],
    replacement: dict[str, Interval],
    source: str,
) -> Iterator[Finding]:
    entries = paper.values
    summaries = entries[
        (entries["role"] == "mean_change")
        & (entries["dataset"] == dataset)
        & (entries["base"] == base)
        & (entries["over"] == variant)
        & (entries["variant"] != variant)
    ]
    rows = dict(rows_of(paper))
    for _, entry in summaries.iterrows():
        names = SUMMARY_METRICS[entry["terms"][0]]
        used = bad & set(names) or {n for n in names if n in replacement}
        plain = rows[entry["table"], dataset, base, variant]
        moved = {n for n in used if n in bad or not _same(replacement.get(n), plain[n])}
        if not moved:
            continue
        changed = rows[entry["table"], dataset, base, entry["variant"]]
        terms = []
        for name in names:
            term = name.replace("nDCG", "P") if name in bad else name
            reference = plain[term] if name in bad else replacement.get(term, plain[term])
            terms.append(intervals.relative_change(changed[term], reference))
        result = intervals.mean(terms)
        how = (
            f"with {', '.join(sorted(moved))} as {source} prints them"
            if source
            else f"with {', '.join(sorted(moved))} changing as P does"
        )
        yield Finding(
            paper.id,
            entry["table"],
            position(dataset, base, entry["variant"], entry["metric"]),
            "summary rests on a faulty base row",
            DOES_NOT_FOLLOW,
            entry["value"],
            f"about {result.middle:+.2f}",
            f"{entry['value']} % is an artefact of the {variant} row; {how} it would be about "
            f"{result.middle:+.2f} %",
        )


def _check_average(paper_id: str, table: str, dataset: str, known: dict[str, Interval]) -> Finding:
    """Points per label = points x labels per point / labels, over train or over all points."""
    printed = known["documents_per_label"]
    # Averages are often cut off rather than rounded: allow one unit of the last digit upwards.
    roomy = Interval(printed.low, printed.high + printed.half_width)
    per_point = known["labels_per_document"]
    per_point = Interval(per_point.low, per_point.high + per_point.half_width)
    train, both = known["n_train"], known["n_train"] + known["n_test"]
    results = [points * per_point / known["n_labels"] for points in (train, both)]
    holds = any(result.overlaps(roomy) for result in results)
    message = ""
    if not holds:
        swapped = train * roomy / known["n_labels"]
        fits = swapped.overlaps(per_point)
        message = (
            "fits if labels per point and points per label are swapped"
            if fits
            else "neither the training points nor all points give the printed average"
        )
    return Finding(
        paper_id,
        table,
        dataset,
        "points per label = points x labels per point / labels",
        OK if holds else DOES_NOT_FOLLOW,
        f"{printed.middle:g}",
        " or ".join(f"{r.middle:.2f}" for r in results),
        message,
    )


@dataclass(frozen=True)
class Row:
    """A plain row, copied from elsewhere or the paper's own, and the tables it is in."""

    paper: str
    dataset: str
    base: str
    tables: dict[str, str]
    values: dict[str, Interval]


def _plain_rows(papers: Sequence[Paper], *, own: bool = False) -> list[Row]:
    rows = []
    for paper in papers:
        plain = paper.values[
            (paper.values["role"] == "value")
            & ((paper.values["source"] == "own") == own)
            & (paper.values["our_variant"] == PLAIN)
        ]
        for (dataset, base), group in plain.groupby(["our_dataset", "our_base"], sort=False):
            cells = group[["our_metric", "low", "high"]].to_numpy()
            values = {metric: Interval(low, high) for metric, low, high in cells}
            tables = dict(zip(group["our_metric"], group["table"], strict=True))
            rows.append(Row(paper.id, str(dataset), str(base), tables, values))
    return rows


def _psp_is_psndcg(a: Row, b: Row) -> list[tuple[str, str]]:
    """Pairs (PSP of a, PSnDCG of b) that are equal although the two PSP differ."""
    return [
        (f"PSP@{k}", f"PSnDCG@{k}")
        for k in (3, 5)
        if _same(a.values.get(f"PSP@{k}"), b.values.get(f"PSnDCG@{k}"))
        and not _same(a.values.get(f"PSP@{k}"), b.values.get(f"PSP@{k}"))
    ]


def _copy_finding(
    a: Row, b: Row, metrics: Sequence[str], verdict: str, check: str, message: str
) -> Finding:
    shown = [m for m in metrics if m in a.values and m in b.values]
    return Finding(
        a.paper,
        ", ".join(sorted({a.tables[m] for m in shown})),
        position(a.dataset, a.base, ""),
        check,
        verdict,
        ", ".join(f"{m} {a.values[m].middle:g}" for m in shown),
        f"{b.paper}: " + ", ".join(f"{m} {b.values[m].middle:g}" for m in shown),
        message,
    )


def _same(a: Interval | None, b: Interval | None) -> bool:
    """Equal as printed (a trailing zero aside)."""
    return a is not None and b is not None and abs(a.middle - b.middle) < 1e-6
