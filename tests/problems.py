"""What is wrong after a run of the tests, and how it is said: at the very end, where a cut log still shows it."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FLAKY_LIMIT = 3
"""So many tests that fail beside others and pass alone fail a run: then it is no accident any more."""

PROBLEMS_FILE = "TESTS_PROBLEMS"
"""Names a file that the lists of several commands are added to. muster has no part in it, so its name has none."""


@dataclass(frozen=True)
class Problem:
    """What failed, and the first lines of its error. `flaky`: it failed beside other tests, and passed alone."""

    name: str
    error: Sequence[str]
    flaky: bool = False

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{'FLAKY ' if self.flaky else 'FAILED'} {self.name}"
        yield from (f"    {line}" for line in self.error)


def close(command: str, problems: Sequence[Problem]) -> int:
    """Say what is wrong; the exit code."""
    text = "\n".join(verdict(command, problems)) + "\n"
    sys.stdout.write(text)
    sys.stdout.flush()
    if problems and (file := os.environ.get(PROBLEMS_FILE)):
        with Path(file).open("a", encoding="utf-8") as shared:
            shared.write(text)
    return 1 if is_bad(problems) else 0


def is_bad(problems: Sequence[Problem]) -> bool:
    """Whether a run with these problems has failed."""
    flaky = sum(problem.flaky for problem in problems)
    return flaky < len(problems) or flaky >= FLAKY_LIMIT


def verdict(command: str, problems: Sequence[Problem]) -> Iterator[str]:
    """The list, with what it means for the run."""
    flaky = sum(problem.flaky for problem in problems)
    for problem in problems:
        yield from problem.lines()
    if not problems:
        yield f"{command}: all is well"
        return
    end = f"; {FLAKY_LIMIT} flaky tests fail a run" if flaky >= FLAKY_LIMIT else ""
    said = "failed" if is_bad(problems) else "passed"
    yield f"{command}: {said}: {len(problems) - flaky} FAILED, {flaky} FLAKY{end}"
