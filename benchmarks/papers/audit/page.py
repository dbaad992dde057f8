"""The audit: what the papers' printed values say about themselves and one another.

It needs no training and no data, only ``benchmarks/papers``. Everything checked is a row of
``audit.csv``, whether sound or not; the page shows what is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from benchmarks.common.atomic import write_csv, write_text
from benchmarks.papers.audit.across import (
    check_consequences,
    check_copies,
    check_features,
    check_reruns,
    check_statistics,
)
from benchmarks.papers.audit.propensity import check_ps_level, check_ps_position, check_ps_span
from benchmarks.papers.audit.statements import check_claims, check_derived
from benchmarks.papers.audit.within import Finding, check_all
from benchmarks.papers.spec import Folders, Paper, load_papers
from benchmarks.papers.verdicts import MEANING, OF_PRINT, OK
from benchmarks.render import page


def audit(papers: Sequence[Paper] | None = None) -> pd.DataFrame:
    """All checks on all papers: one row each, the gravest first within a paper."""
    papers = load_papers() if papers is None else papers
    findings: list[Finding] = []
    for paper in papers:
        findings += check_derived(paper)
        findings += check_claims(paper)
        findings += check_all(paper)
        findings += check_ps_span(paper)
        findings += check_features(paper)
    across = (check_ps_position, check_ps_level, check_copies, check_reruns, check_statistics)
    for check in across:
        findings += check(papers)
    findings += check_consequences(papers, findings)
    order = {paper.id: position for position, paper in enumerate(papers)}
    findings.sort(key=lambda f: (order[f.paper], OF_PRINT.index(f.verdict)))
    return pd.DataFrame([asdict(f) for f in findings])


def write_audit(
    csv_path: str | Path, page_path: str | Path, extra: Folders | None = None
) -> pd.DataFrame:
    """Run the audit on all papers, the user's ``extra`` included; write its table and its page."""
    papers = load_papers(extra)
    frame = audit(papers)
    write_csv(csv_path, frame)
    write_text(page_path, render_page(frame, papers))
    return frame


def render_page(frame: pd.DataFrame, papers: Sequence[Paper]) -> str:
    """A standalone HTML page of what was found and how much was checked."""
    sections = []
    for paper in papers:
        mine = frame[frame["paper"] == paper.id]
        found = mine[mine["verdict"] != OK]
        sections.append(
            {
                "id": paper.id,
                "title": paper.title,
                "year": paper.spec["year"],
                "venue": paper.spec["venue"],
                "n_values": len(paper.values),
                "claims": len(paper.claims),
                "checks": len(mine),
                "counts": Counter(mine["verdict"]),
                "groups": [
                    (verdict, found[found["verdict"] == verdict].to_dict("records"))
                    for verdict in OF_PRINT
                    if (found["verdict"] == verdict).any()
                ],
            }
        )
    checks = (
        frame.assign(sound=frame["verdict"] == OK)
        .groupby(frame["check"].str.replace(r"^claim .*", "claims of the text", regex=True))
        .agg(checked=("sound", "size"), sound=("sound", "sum"))
        .reset_index()
        .to_dict("records")
    )
    return page.render_page(
        "audit",
        sections=sections,
        meaning=MEANING,
        verdicts=[v for v in OF_PRINT if v != OK],
        totals=Counter(frame["verdict"]),
        n_checks=len(frame),
        n_values=sum(len(p.values) for p in papers),
        n_claims=sum(len(p.claims) for p in papers),
        checks=checks,
    )
