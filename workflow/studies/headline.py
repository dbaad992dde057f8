"""The headline figure: what PW and PW-cb change on EURLex-4K, as printed and over a rerun.

``python -m workflow.studies.headline`` reads the committed reference, ``compare_pw.csv`` and
``intervals.csv``, prints the figure's sentence and writes ``headline.png`` beside them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.evaluation.declarations import SUMMARY_NAMES
from benchmarks.records.intervals import read_intervals
from benchmarks.render.figure import COLOURS, panels

FOLDER = Path("results/reference")
DATASET, BASE, VARIANTS = "EURLex-4K", "DiSMEC", ("PW", "PW-cb")
KINDS = {"vanilla": "vanilla metrics (P and nDCG)", "PS": "propensity-scored metrics"}
PRINTED, PAPER, REPOSITORY = "printed", "rerun, the paper's evaluator", "rerun, XC evaluator"
COLUMNS = ["variant", "kind", "source", "value", "low", "high"]


def read_changes(folder: Path = FOLDER) -> pd.DataFrame:
    """Mean relative changes in percent: a row per variant, kind of metrics and source.

    The vanilla metrics are the same under both evaluators, so the rerun has one row of them.
    """
    compared = pd.read_csv(folder / "compare_pw.csv")
    measured = read_intervals(folder / "intervals.csv")
    here = measured[(measured["dataset"] == DATASET) & (measured["base"] == BASE)]
    rows = []
    for variant in VARIANTS:
        for kind in KINDS:
            at = compared[
                (compared["our_dataset"] == DATASET)
                & (compared["our_base"] == BASE)
                & (compared["our_variant"] == variant)
                & (compared["our_metric"] == f"summary_{kind}")
            ]
            (own,) = at.to_dict("records")
            rows.append((variant, kind, PRINTED, float(own["printed"]), np.nan, np.nan))
            rerun = (own["ours"], own["ours_low"], own["ours_high"])
            rows.append((variant, kind, PAPER, *rerun))
            if kind == "PS":
                at = here[(here["variant"] == variant) & (here["metric"] == SUMMARY_NAMES["PS"])]
                (mean,) = at.to_dict("records")
                ends = (mean["change"], mean["change_low"], mean["change_high"])
                rows.append((variant, kind, REPOSITORY, *ends))
    return pd.DataFrame(rows, columns=COLUMNS)


def sentence(changes: pd.DataFrame) -> str:
    """What the figure says, in numbers."""
    parts = []
    for variant in VARIANTS:
        own = changes[changes["variant"] == variant].set_index(["kind", "source"])
        vanilla, printed = own.loc[("vanilla", PAPER)], own.loc[("vanilla", PRINTED)]
        scored = {source: own.loc[("PS", source)] for source in (PAPER, REPOSITORY, PRINTED)}
        parts.append(
            f"{variant} moves the vanilla metrics by {_interval(vanilla)}, where "
            f"{_percent(printed)} is printed, and the propensity-scored metrics by "
            f"{_interval(scored[PAPER])} ({_interval(scored[REPOSITORY])} by the XC repository's "
            f"evaluator), where {_percent(scored[PRINTED])} is printed."
        )
    return f"{BASE} on {DATASET}, over a rerun of the paper's own baseline: {' '.join(parts)}"


def draw(changes: pd.DataFrame, path: Path) -> None:
    """One panel per kind of metrics: printed values hollow, reruns filled with their intervals."""
    styles = {
        PRINTED: {"color": COLOURS[6], "marker": "D", "markerfacecolor": "white"},
        PAPER: {"color": COLOURS[0], "marker": "o"},
        REPOSITORY: {"color": COLOURS[1], "marker": "s"},
    }
    places = {PRINTED: 0.24, PAPER: 0.0, REPOSITORY: -0.24}

    def fill(axes: np.ndarray) -> None:
        for axis, kind in zip(axes.flat, KINDS, strict=True):
            axis.axvline(0, color="#555555", linewidth=1)
            for source, style in styles.items():
                rows = changes[(changes["kind"] == kind) & (changes["source"] == source)]
                heights = [-VARIANTS.index(v) + places[source] for v in rows["variant"]]
                known = rows["low"].notna().all()
                ends = [rows["value"] - rows["low"], rows["high"] - rows["value"]]
                axis.errorbar(
                    *(rows["value"], heights),
                    xerr=ends if known else None,
                    **{"linestyle": "none", "markersize": 7, "capsize": 3, **style},
                )
                for value, height, high in zip(rows["value"], heights, rows["high"], strict=True):
                    at = value if np.isnan(high) else high
                    axis.annotate(
                        f"{_sign_of(value)} %",
                        (at, height),
                        xytext=(7, 0),
                        textcoords="offset points",
                        va="center",
                        color=style["color"],
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                    )
            axis.set_yticks([-VARIANTS.index(v) for v in VARIANTS], VARIANTS, fontsize=11)
            axis.set_ylim(-1.55, 0.55)
            axis.margins(x=0.3)
            axis.grid(visible=False, axis="y")
            axis.set_title(KINDS[kind], loc="left", fontsize=11, fontweight="bold")
            axis.set_xlabel("mean change over plain DiSMEC, %")

    figure = panels(len(KINDS), len(KINDS), fill, size=(4.6, 2.5))
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], linestyle="none", markersize=7, **s) for s in styles.values()]  # type: ignore[arg-type]
    labels = ["printed in the paper", f"{PAPER}, 95 % interval", f"{REPOSITORY}, 95 % interval"]
    figure.legend(
        marks, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False
    )
    figure.suptitle(
        "PW and PW-cb on EURLex-4K: the print and a rerun", x=0.01, ha="left", y=1.05, fontsize=12
    )
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=160, bbox_inches="tight", format="png")


def main(argv: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.studies.headline", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of compare_pw.csv")
    folder = parser.parse_args(argv).folder
    changes = read_changes(folder)
    draw(changes, folder / "headline.png")
    print(sentence(changes))
    return 0


def _sign_of(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def _percent(row: pd.Series) -> str:
    return f"{_sign_of(row['value'])} %"


def _interval(row: pd.Series) -> str:
    return f"{_percent(row)} [{_sign_of(row['low'])}, {_sign_of(row['high'])}]"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
