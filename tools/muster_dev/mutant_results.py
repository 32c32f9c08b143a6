"""Counts how many mutants the tests find, for `make mutants`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from muster_dev.mutants import AREAS, Mutant

KILLED = "killed"
SURVIVED = "survived"
NOT_COVERED = "not covered"
NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Result:
    """What the tests made of one mutant."""

    mutant: Mutant
    outcome: str
    killer: str = ""
    """The test that failed, or that used up its time."""


def make_table(results: Sequence[Result]) -> str:
    """Return the table of all areas, in Markdown."""
    outcomes_by_area: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        if result.outcome != NOT_APPLICABLE:
            outcomes_by_area[result.mutant.area][result.outcome] += 1
    rows = [
        "| area | mutants | killed | survived | not covered | share killed | of those covered |",
        "|---|---|---|---|---|---|---|",
    ]
    for area in AREAS:
        outcomes = outcomes_by_area[area]
        counts = [outcomes[KILLED], outcomes[SURVIVED], outcomes[NOT_COVERED]]
        numbers = " | ".join(str(count) for count in [sum(counts), *counts])
        share = outcomes[KILLED] / max(1, sum(counts))
        of_covered = outcomes[KILLED] / max(1, outcomes[KILLED] + outcomes[SURVIVED])
        rows.append(f"| {area} | {numbers} | {share:.1%} | {of_covered:.1%} |")
    return "\n".join(rows)


def make_list(results: Sequence[Result]) -> str:
    """Return one line for each mutant, the survivors first, in an order that suits a comparison of two runs."""
    order = [SURVIVED, NOT_COVERED, NOT_APPLICABLE, KILLED]
    ordered = sorted(results, key=lambda result: (order.index(result.outcome), result.mutant.identity))
    return "".join(f"{result.outcome}\t{result.mutant.identity}\t{result.killer}\n" for result in ordered)
