"""A paper's tables with ours beside theirs, as a standalone page."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common.atomic import write_csv, write_text
from benchmarks.papers.compare import Facts, compare
from benchmarks.papers.measurements import Instances
from benchmarks.papers.spec import Folders, Paper, load_paper
from benchmarks.papers.verdicts import MEASURED, OUTCOMES, REPRODUCED
from benchmarks.render.page import render_page


def write_comparison(
    paper: str,
    cells: pd.DataFrame,
    instances: Instances,
    csv_path: str | Path,
    page_path: str | Path,
    *,
    runs: pd.DataFrame | None = None,
    facts: Facts = lambda dataset: None,
    papers: Folders | None = None,
) -> pd.DataFrame:
    """Compare one paper, ours or of ``papers``, with a run; write the verdicts and the page."""
    loaded = load_paper(paper, papers)
    frame = compare(loaded, cells, instances, runs=runs, facts=facts)
    write_csv(csv_path, frame)
    write_text(page_path, render_comparison(loaded, frame))
    return frame


def render_comparison(paper: Paper, frame: pd.DataFrame) -> str:
    """Each table as printed, with our value and the verdict in every cell."""
    values = frame[frame["kind"] == "value"]
    abouts = {table["table"]: table["about"] for table in paper.spec["tables"]}
    tables = []
    for number, part in values.groupby("table", sort=False):
        counts = Counter(part["outcome"])
        measured = sum(counts[o] for o in MEASURED)
        rows = [
            (key, {row["metric"]: _cell(row) for _, row in group.iterrows()})
            for key, group in part.groupby(["dataset", "base", "variant"], sort=False)
        ]
        reasons = part.loc[~part["outcome"].isin(MEASURED), "verdict"]
        tables.append(
            {
                "number": number,
                "about": abouts[str(number)],
                "metrics": list(dict.fromkeys(part["metric"])),
                "rows": rows,
                "score": f"{counts[REPRODUCED]} of {measured} measured values reproduced; "
                f"{measured} of {len(part)} measured",
                "reasons": reasons.value_counts().items(),
                "conventions": ", ".join(sorted(set(part["convention"]))),
            }
        )
    counts = Counter(frame["outcome"])
    return render_page(
        "compare",
        paper=paper,
        tables=tables,
        claims=frame[frame["kind"] == "claim"].to_dict("records"),
        counts=counts,
        outcomes=[outcome for outcome in OUTCOMES if counts[outcome]],
        total=len(frame),
    )


def _cell(row: pd.Series) -> dict[str, Any]:
    ours = row["ours"]
    known = isinstance(ours, float) and not math.isnan(ours)
    detail = row["verdict"]
    if known and not pd.isna(row["tolerance"]):
        detail += f"; tolerance {row['tolerance']:.2f} ({row['tolerance_from']})"
    return {
        "printed": row["printed"],
        "ours": f"{ours:.2f}" if known else "",
        "kind": row["outcome"].replace(" ", "-"),
        "detail": detail,
    }
