"""The shipped reference run: what laws of cost know before anything has run here."""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.schema import load_yaml
from benchmarks.data.cards import all_cards
from workflow.planning.facts import facts_in
from workflow.planning.observed import Observed, read_observed
from workflow.reference import REFERENCE, REFERENCE_CONFIG


def reference_runs(results: Path | None = None) -> tuple[list[Observed], list[str]]:
    """The runs, and what was left out; names mean what they meant in the reference's own
    configuration. Datasets that ``results`` has prepared are known better than by their cards."""
    define = load_yaml(REFERENCE_CONFIG)["define"]
    facts = facts_in(results, all_cards(define.get("datasets")))
    named = {kind: define.get(kind, {}) for kind in ("bases", "variants")}
    return read_observed(REFERENCE, facts, named)
