"""``python -m workflow.planning [RUNS.csv ...]``: how far off the laws of cost are.

Fits the laws to the runs of all datasets but one and compares what they say of that one with what
it took. Without a file: the shipped reference runs and, if it exists, ``results/runs.csv``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.data.cards import all_cards
from workflow.planning.facts import facts_in
from workflow.planning.laws import (
    Laws,
    Miss,
    by_family,
    fit,
    leave_one_dataset_out,
    spread_of,
)
from workflow.planning.observed import NO_DEFINITIONS, Observed, read_observed
from workflow.planning.plan import RESULTS, earlier_runs


def main(paths: list[str]) -> int:
    """Print the error by base, and the constants fitted to all runs."""
    cards = all_cards()
    if paths:
        read = [read_observed(path, facts_in(Path(path).parent, cards)) for path in paths]
        runs = [run for found, _ in read for run in found]
        left_out = [line for _, skipped in read for line in skipped]
    else:
        runs, left_out = earlier_runs(cards, NO_DEFINITIONS, RESULTS)
    for line in left_out:
        print(f"left out: {line}")
    if not runs:
        print("no runs to learn from")
        return 1
    _print_errors(runs)
    _print_constants(runs, fit(runs))
    return 0


def _print_errors(runs: list[Observed]) -> None:
    misses = leave_one_dataset_out(runs)
    print("CPU seconds of a dataset's runs, by laws fitted to the other datasets' runs")
    print(f"{'base':<16}{'dataset':<26}{'runs':>5}{'took':>10}{'planned':>10}{'factor':>8}  basis")
    groups: dict[tuple[str, str], list[Miss]] = {}
    for miss in misses:
        groups.setdefault((miss.run.work.law, miss.run.cell.dataset), []).append(miss)
    for (law, dataset), own in sorted(groups.items()):
        took = sum(miss.run.seconds for miss in own) / len(own)
        planned = sum(miss.planned for miss in own) / len(own)
        factor = spread_of(miss.factor for miss in own)[0]
        basis = "scaled" if own[0].known else "guess: this base was run on no other dataset"
        figures = f"{len(own):>5}{took:>10.1f}{planned:>10.1f}{factor:>8.2f}"
        print(f"{law:<16}{dataset:<26}{figures}  {basis}")
    for basis, chosen in (("all", misses), ("scaled", [miss for miss in misses if miss.known])):
        _print_spread(basis, chosen)
        for family, own in by_family(chosen).items():
            _print_spread(f"  {basis}, {family}", own)


def _print_spread(what: str, misses: list[Miss]) -> None:
    median, most, within = spread_of(miss.factor for miss in misses)
    print(
        f"{what}: {len(misses)} runs, median factor {median:.2f}, 90 % within {most:.2f}, "
        f"{100 * within:.0f} % within 3"
    )


def _print_constants(runs: list[Observed], laws: Laws) -> None:
    print("\nConstants fitted to all runs: one core's seconds per unit of work")
    shown: set[str] = set()
    for run in runs:
        law = run.work.law
        if law in shown:
            continue
        shown.add(law)
        for name, term in run.work.cost.terms.items():
            fitted = laws.constant(law, name, term.unit_s, run.work.family)
            print(f"  {law}.{name:<14} {fitted:.3g} (round figure {term.unit_s:.3g})")
        print(f"  {law}: grows with the power {laws.exponent(law):.2f} of its work")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
