"""What the field's evaluators do differently from one another, as named values.

All take the ranking as given (a :class:`TopK` breaks ties by the lower label index) and all use
the propensity model of Jain et al. Where a source lacks a metric (HTTN and GLaS have no PSnDCG),
the XC repository's definition fills the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from benchmarks.evaluation.declarations import METRICS, split_name


@dataclass(frozen=True)
class Convention:
    """One evaluator's choices.

    ``fixed_ndcg``: the ideal DCG of nDCG@k runs over k places even where a row has fewer labels.
    ``row_normalised_psndcg``: each row's PSDCG and its ideal are divided by the plain ideal DCG
    before they are summed; otherwise PSnDCG is the ratio of the plain sums.
    ``labelled_rows_only``: rows without labels are dropped, from the test set and from the N of
    the propensity model; otherwise they count, with gain 0.
    ``test_propensity``: label counts and N come from the test set.
    ``reranked``: the PS metrics are taken on a second ranking of the top 5, rare labels first.
    ``batch``: the mean of batch means over whole batches only, i.e. the last rows are dropped.
    """

    name: str
    source: str
    fixed_ndcg: bool = False
    row_normalised_psndcg: bool = False
    labelled_rows_only: bool = False
    test_propensity: bool = False
    reranked: bool = False
    batch: int | None = None


DEFAULT = "xc-matlab"

HTTN_BATCH = 90
"""Rows in a batch of HTTN's evaluation, whose F1 is a mean of batches' micro-F1."""

CHOICES = tuple(
    choice.name for choice in fields(Convention) if choice.name not in ("name", "source")
)

CONVENTIONS: dict[str, Convention] = {
    c.name: c
    for c in (
        Convention(DEFAULT, "the Extreme Classification repository's Matlab scripts"),
        Convention("pyxclib", "pyxclib, napkinXC", row_normalised_psndcg=True),
        Convention("attentionxml", "AttentionXML's evaluation (no row without labels exists)"),
        Convention(
            "dismec-java",
            "PW's DiSMEC post-processor",
            row_normalised_psndcg=True,
            labelled_rows_only=True,
            reranked=True,
        ),
        Convention("aplc", "APLC-XLNet's evaluation", fixed_ndcg=True),
        Convention("httn", "HTTN's and LSAN's evaluation", batch=HTTN_BATCH),
        Convention("glas", "GLaS appendix D", test_propensity=True),
    )
}


def get_convention(name: str) -> Convention:
    """The convention of that name, or an error that lists the known ones."""
    try:
        return CONVENTIONS[name]
    except KeyError:
        raise ValueError(
            f"no convention {name!r}; there are {', '.join(sorted(CONVENTIONS))}"
        ) from None


def interchangeable(metric: str, one: str, other: str) -> bool:
    """Whether a metric (``"PSP@3"``) means the same under two conventions."""
    declared = METRICS.get(split_name(metric)[0])
    # Nothing is known of a metric without a declaration: any choice might change it.
    matters = CHOICES if declared is None else declared.depends_on
    a, b = get_convention(one), get_convention(other)
    return all(getattr(a, choice) == getattr(b, choice) for choice in matters)
