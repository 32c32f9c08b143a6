"""The failures of a test run, printed at the very end, where a truncated log still has them."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FLAKY_LIMIT = 3
"""A run fails with this number of tests that fail first and pass alone. See `count_flaky`."""

PROBLEMS_FILE = "TESTS_PROBLEMS"
"""The variable that names a file to which several commands append their failures. It has no muster prefix, because
muster does not read it.
"""


@dataclass(frozen=True)
class Problem:
    """A failed test, and the first lines of its error. `flaky`: it passed when it ran again, alone."""

    name: str
    error: Sequence[str]
    flaky: bool = False

    def lines(self) -> Iterator[str]:
        """Format the failures for people."""
        yield f"{'FLAKY ' if self.flaky else 'FAILED'} {self.name}"
        yield from (f"    {line}" for line in self.error)


def close(command: str, problems: Sequence[Problem]) -> int:
    """Print the failures; return the exit code."""
    text = "\n".join(verdict(command, problems)) + "\n"
    sys.stdout.write(text)
    sys.stdout.flush()
    if problems and (file := os.environ.get(PROBLEMS_FILE)):
        with Path(file).open("a", encoding="utf-8") as shared:
            shared.write(text)
    return 1 if is_bad(problems) else 0


def is_bad(problems: Sequence[Problem]) -> bool:
    """Whether a run with these failures has failed."""
    return not all(problem.flaky for problem in problems) or count_flaky(problems) >= FLAKY_LIMIT


def count_flaky(problems: Sequence[Problem]) -> int:
    """Count the flaky tests; those of a module that share a failed fixture count once."""
    return len({(problem.name.partition("::")[0], *problem.error) for problem in problems if problem.flaky})


def verdict(command: str, problems: Sequence[Problem]) -> Iterator[str]:
    """Return the list, with the result of the run."""
    flaky, failed = count_flaky(problems), sum(not problem.flaky for problem in problems)
    for problem in problems:
        yield from problem.lines()
    if not problems:
        yield f"{command}: all is well"
        return
    end = f"; {FLAKY_LIMIT} flaky tests fail a run" if flaky >= FLAKY_LIMIT else ""
    said = "failed" if is_bad(problems) else "passed"
    yield f"{command}: {said}: {failed} FAILED, {flaky} FLAKY{end}"
