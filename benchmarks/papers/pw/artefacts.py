"""The PW paper redrawn: Table 3's summary for any run, Tables 4 and 5, claims, Figs. 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from benchmarks.data.split import Split
from benchmarks.evaluation.losses import (
    hinge_negative,
    hinge_positive,
    surrogate_positive,
    unbiased_positive,
    zero_one_negative,
    zero_one_positive,
)
from benchmarks.papers.artefacts import DATASETS, Artefact
from benchmarks.papers.pw.improvement import relative_improvement
from benchmarks.papers.run_claims import Change, about_changes, claim_tables
from benchmarks.records.results import Results, joined
from benchmarks.render.figure import COLOURS, Figure, panels
from benchmarks.render.report import Section
from benchmarks.render.table import Table


def frequency_data(datasets: Mapping[str, Split]) -> pd.DataFrame:
    """Columns dataset, rank, count, share of pairs: labels of train, most frequent first."""
    frames = []
    for name, train in datasets.items():
        counts = np.sort(train.label_counts())[::-1]
        counts = counts[counts > 0]
        share = np.cumsum(counts) / counts.sum()
        rank = np.arange(1, len(counts) + 1)
        frames.append(
            pd.DataFrame({"dataset": name, "rank": rank, "count": counts, "cumulative": share})
        )
    return joined(frames, ["dataset", "rank", "count", "cumulative"])


def power_law(counts: np.ndarray) -> tuple[float, float]:
    """Scale and beta of n(r) ~ scale r^-beta (PW section 2), by least squares in log-log.

    Ranks are thinned to even steps of their logarithm, or the tail's many labels would decide.
    """
    counts = np.sort(counts[counts > 0])[::-1]
    if len(counts) < 2:
        return float("nan"), float("nan")
    picked = np.unique(np.geomspace(1, len(counts), 200).astype(int)) - 1
    slope, intercept = np.polyfit(np.log(picked + 1.0), np.log(counts[picked]), 1)
    return float(np.exp(intercept)), float(-slope)


def label_frequencies(results: Results) -> Figure:
    """Documents of each label against its rank, both logarithmic (Fig. 1)."""
    data = frequency_data(results.training)

    def draw(axes: np.ndarray) -> None:
        for axis, (name, part) in zip(axes.flat, data.groupby("dataset", sort=False), strict=False):
            scale, beta = power_law(part["count"].to_numpy())
            rank = part["rank"].to_numpy(dtype=float)
            axis.loglog(rank, part["count"], color=COLOURS[0], lw=1.8, label="labels")
            law = rf"power law, $\beta$ = {beta:.2f}"
            axis.loglog(rank, scale * rank**-beta, "--", color=COLOURS[1], lw=1.1, label=law)
            axis.set_ylim(0.7, float(part["count"].max()) * 3)
            axis.set_title(str(name), loc="left", fontweight="bold")
            axis.legend(loc="lower left")
        axes[0, 0].figure.supxlabel("label rank, most frequent first", fontsize=10)
        axes[0, 0].figure.supylabel("training documents", fontsize=10)

    return Figure(panels(data["dataset"].nunique(), 3, draw, (3.1, 2.5)), data)


def loss_curves(p: float = 0.5, points: int = 401) -> pd.DataFrame:
    """The six curves of Fig. 2 on scores from -2 to 2, from the functions that training uses."""
    z = np.linspace(-2.0, 2.0, points)
    w = 1.0 / p
    return pd.DataFrame(
        {
            "score": z,
            "0-1": zero_one_positive(z),
            "0-1 unbiased": unbiased_positive(z, w, zero_one_positive, zero_one_negative),
            "0-1 surrogate": surrogate_positive(z, w, zero_one_positive),
            "hinge": hinge_positive(z),
            "hinge unbiased": unbiased_positive(z, w, hinge_positive, hinge_negative),
            "hinge surrogate": surrogate_positive(z, w, hinge_positive),
        }
    )


def loss_functions(results: Results, p: float = 0.5) -> Figure:
    """Fig. 2: dashed the 0-1 loss, solid the hinge; as it is, unbiased, and as surrogate."""
    curves = loss_curves(p)

    def draw(axes: np.ndarray) -> None:
        axis = axes[0, 0]
        for form, colour in zip(("", " unbiased", " surrogate"), COLOURS, strict=False):
            for kind, style in (("0-1", "--"), ("hinge", "-")):
                name = kind + form
                axis.plot(curves["score"], curves[name], style, color=colour, label=name)
        axis.axhline(0.0, color="#888888", linewidth=0.6)
        axis.set_xlabel("score of a relevant label")
        axis.set_ylabel(f"loss at p = {p:g}")
        axis.legend()

    return Figure(panels(1, 1, draw, (4.6, 3.3)), curves)


def improvement(results: Results) -> Table:
    """Every method of the run with its change over its plain base."""
    return relative_improvement(results.cells, results.ks, results.intervals)


PSP = ("PSP@1", "PSP@3", "PSP@5")
TABLES = {
    "4": ("AttentionXML", ("AttentionXML", "AttentionXML-matched")),
    "5": ("APLC-XLNet, or the same clusters on another encoder", ("APLC-XLNet", "APLC-MiniLM")),
}
"""The deep bases of the paper's tables, and a small AttentionXML as the TailMix paper's run defines
it; Table 3 is the summary of the whole run."""
CHANGES = tuple(
    Change(f"{variant} raises PSP@k of {bases[0]} (Table {table})", variant, PSP, 1, bases)
    for table, bases in (("3", ("DiSMEC",)), *((t, bases) for t, (_, bases) in TABLES.items()))
    for variant in ("PW", "PW-cb")
)
SECTION = Section(
    "pw",
    "PW, claim by claim",
    "The paper has PW and PW-cb raise the propensity-scored metrics of three bases. Judged on the "
    "datasets of this run.",
    order=12,
)


def _deep(table: str, what: str, bases: Sequence[str]) -> Artefact:
    def draw(results: Results) -> Table:
        cells = results.cells[results.cells["base"].isin(bases)]
        return relative_improvement(cells, results.ks, results.intervals)

    return Artefact(
        f"pw_table{table}",
        f"{what}, plain and reweighted (PW Table {table})",
        draw,
        needs=("cells", "intervals"),
        section=SECTION,
    )


ARTEFACTS = (
    *claim_tables("pw", lambda results: about_changes(results.intervals, CHANGES), section=SECTION),
    *(_deep(table, what, bases) for table, (what, bases) in TABLES.items()),
    Artefact(
        "relative_improvement",
        "Every method, and its mean relative change (%) against its plain base",
        improvement,
        needs=("cells", "intervals"),
        section=Section(
            "improvement",
            "Do the variants help the tail?",
            "Propensity-scored metrics (PSP, PSnDCG) weigh a hit on a rare label more; vanilla "
            "metrics (P, nDCG) count every hit alike. The controls bound each column: the oracle "
            "from above, popularity and random from below.",
            order=10,
        ),
    ),
    Artefact(
        "loss_functions",
        "Losses of a relevant label (PW Fig. 2), from the code that trains",
        loss_functions,
        kind="figure",
        section=Section(
            "losses",
            "The losses behind PW",
            "The unbiased loss turns downwards: it has no minimum to train to. Its convex "
            "surrogate keeps the shape of the plain loss and a larger weight.",
            order=30,
        ),
    ),
    Artefact(
        "label_frequencies",
        "Documents per label, labels sorted by frequency (PW Fig. 1)",
        label_frequencies,
        kind="figure",
        needs=("data",),
        section=DATASETS,
    ),
)
