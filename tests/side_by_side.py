"""Runs tests in parallel or one after another, and repeats failed tests alone."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import outcomes
from outcomes import Outcome
from problems import Problem
from slices import SLICE

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
    return run_together([part], arguments)


def run_together(parts: Sequence[Part], arguments: Sequence[str]) -> list[Problem]:
    """Run parts at the same time, and the failed tests of each once more alone; return the failures.

    The output of the last part is shown as it comes, and that of each other part when it has ended.
    """
    chosen = [narrowed for part in parts if (narrowed := narrow(part, arguments))]
    options = [argument for argument in arguments if not _is_path(argument)]
    with tempfile.TemporaryDirectory() as memory, ThreadPoolExecutor(max_workers=len(parts)) as pool:
        runs = [
            _Run(part, Path(memory, str(number)), options, is_shown=number == len(chosen) - 1)
            for number, part in enumerate(chosen)
        ]
        first = [each.result() for each in [pool.submit(each.begin) for each in runs]]
        return [problem for each, ran in zip(runs, first, strict=True) for problem in each.find_problems(ran)]


def narrow(part: Part, arguments: Sequence[str]) -> Part | None:
    """Return the part with only those of its tests that the arguments name by path, if they name any.

    Return None if they name only tests of other parts.
    """
    named = [argument for argument in arguments if _is_path(argument)]
    if not named:
        return part
    files = [Path(each.partition("::")[0]).resolve() for each in named]
    folders = part.folders or (TESTS,)
    inside = [each for each, file in zip(named, files, strict=True) if any(file.is_relative_to(f) for f in folders)]
    return replace(part, folders=tuple(map(Path, inside))) if inside else None


def _is_path(argument: str) -> bool:
    """Whether an argument of pytest is a file, a folder or a test, rather than an option or its value."""
    file = argument.partition("::")[0]
    return ("/" in file or file.endswith(".py")) and Path(file).exists()


@dataclass(frozen=True)
class _Run:
    """A run of a part. `folder` is for its files, `is_shown` whether its output is shown as it comes."""

    part: Part
    folder: Path
    arguments: Sequence[str]
    is_shown: bool

    def begin(self) -> Ran:
        self.folder.mkdir()
        if self.part.marked:
            _say(f"the tests marked: {self.part.marked}")
        beside = ["-n", str(self.part.beside), "--dist", "loadfile"] if self.part.beside > 1 else []
        if self.is_shown:
            return self._pytest("outcomes", beside, dict(os.environ), None)
        log = self.folder / "log"
        with log.open("wb") as output:
            ran = self._pytest("outcomes", beside, dict(os.environ), output)
        sys.stdout.write(log.read_text(encoding="utf-8", errors="replace"))
        sys.stdout.flush()
        return ran

    def find_problems(self, first: Ran) -> list[Problem]:
        """Run the failed tests once more alone, and return the failures.

        Many tests give real processes and a real cluster some seconds, and a loaded machine may exceed them. A broken
        test fails again.
        """
        if first.code != SOME_FAILED or not first.failed:
            return problems(first)
        _say("the failed tests run once more, alone")
        environment = {name: value for name, value in os.environ.items() if name != SLICE}
        return sorted_out(
            first, self._pytest("alone", ["--last-failed", "--last-failed-no-failures=none"], environment, None)
        )

    def _pytest(self, name: str, how: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | None) -> Ran:
        part, outcomes_file = self.part, self.folder / name
        marked = ["-m", part.marked] if part.marked else []
        plugins = ["-rs", "-p", "slices", "-p", "outcomes", f"--outcomes={outcomes_file}"]
        remembered = [*self.arguments, f"--override-ini=cache_dir={self.folder}/cache"]
        code = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *map(str, part.folders), *marked, *how, *remembered],
            check=False,
            env={**environment, "PYTHONPATH": str(TESTS)},
            stdout=output,
        ).returncode
        return Ran(code, outcomes.read(outcomes_file))


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
