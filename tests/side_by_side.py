"""Runs tests in parallel or one after another, and repeats failed tests alone."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import outcomes
from outcomes import Outcome
from problems import Problem

TESTS = Path(__file__).resolve().parent
SOME_FAILED = 1
NONE_CHOSEN = 5
GOOD = (0, NONE_CHOSEN)


@dataclass(frozen=True)
class Part:
    """A group of tests: those in `folders` (none: pytest's default folders) with these markers (none: all).

    `beside` is the number of files that run at a time.
    """

    folders: tuple[Path, ...] = ()
    marked: str = ""
    beside: int = 1


@dataclass(frozen=True)
class Ran:
    """A pytest process that has ended."""

    code: int
    outcomes: Sequence[Outcome]

    @property
    def failed(self) -> Sequence[Outcome]:
        """The failed tests."""
        return [each for each in self.outcomes if not each.passed]


def run(part: Part, arguments: Sequence[str]) -> list[Problem]:
    """Run a part, and its failed tests once more alone; return the failures."""
    if part.marked:
        _say(f"the tests marked: {part.marked}")
    with tempfile.TemporaryDirectory() as memory:
        remembered = [*arguments, f"--override-ini=cache_dir={memory}/cache"]
        beside = ["-n", str(part.beside), "--dist", "loadfile"] if part.beside > 1 else []
        first = _pytest(part, Path(memory, "outcomes"), [*beside, *remembered])
        if first.code != SOME_FAILED or not first.failed:
            return problems(first)
        # Many tests give real processes and a real cluster some seconds, and a loaded machine may exceed them. A broken
        # test fails again.
        _say("the failed tests run once more, alone")
        failed = ["--last-failed", "--last-failed-no-failures=none"]
        return sorted_out(first, _pytest(part, Path(memory, "alone"), [*failed, *remembered]))


def problems(ran: Ran) -> list[Problem]:
    """Return the failures of a run that is not repeated."""
    result = [Problem(each.test, each.error) for each in ran.failed]
    if ran.code not in GOOD and not result:
        return [Problem("pytest", (f"it ended with exit code {ran.code}, and no test failed: see above",))]
    return result


def sorted_out(beside: Ran, alone: Ran) -> list[Problem]:
    """Sort the failures of a run into real and flaky ones, by a second run of the failed tests alone."""
    again = problems(alone)
    failed_again = {each.name.partition(" (at ")[0] for each in again}
    passed = {each.test for each in alone.outcomes if each.passed} - failed_again
    result = []
    for each in beside.failed:
        test = each.test.partition(" (at ")[0]
        if test not in failed_again:
            result.append(Problem(each.test, each.error, flaky=test in passed))
    return again + result


def _say(text: str) -> None:
    sys.stdout.write(f"tests: {text}\n")
    sys.stdout.flush()


def _pytest(part: Part, file: Path, arguments: Sequence[str]) -> Ran:
    marked = ["-m", part.marked] if part.marked else []
    options = ["-rs", "-p", "time_limit", "-p", "outcomes", f"--outcomes={file}"]
    command = [sys.executable, "-m", "pytest", *options, *map(str, part.folders), *marked, *arguments]
    code = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": str(TESTS)}).returncode
    return Ran(code, outcomes.read(file))
