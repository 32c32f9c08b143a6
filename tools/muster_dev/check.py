"""`make check`: runs all static checks and prints a line for each."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from muster_dev import agent_checks, file_checks, generated_files, lock, package_checks, purity
from muster_dev.paths import BIN, ROOT


@dataclass(frozen=True)
class Check:
    """A check: `run` returns the problems it detects."""

    name: str
    run: Callable[[], Sequence[str]]


@dataclass(frozen=True)
class Result:
    """The problems of a check, and its duration in seconds."""

    name: str
    problems: Sequence[str]
    seconds: float


def build_program_check(*command: str) -> Callable[[], Sequence[str]]:
    """Return a check that runs a program of .venv. If the program fails, its output is the problem."""

    def run() -> Sequence[str]:
        completed = subprocess.run(
            [str(BIN / command[0]), *command[1:]], check=False, capture_output=True, text=True, cwd=ROOT
        )
        return [] if completed.returncode == 0 else [(completed.stdout + completed.stderr).strip()]

    return run


STAND_IN_VERMIN_OPTIONS = ("-q", "-t=3.9-", "--no-tips", "--violations", "operator/muster/importers/sagemaker/standin")
"""Options for code that runs in users' launch scripts, which may run on Python 3.9, as the SageMaker SDKs do."""

CHECKS = (
    # The checks run in parallel. Start the slowest one first.
    Check("types are strict (mypy)", build_program_check("mypy", "--no-error-summary")),
    Check(
        "format (ruff; `make format` repairs it)",
        build_program_check("ruff", "format", "--check", "--output-format=concise", "."),
    ),
    Check("lint (ruff)", build_program_check("ruff", "check", "--no-cache", "--quiet", "--output-format=concise", ".")),
    Check("imports go one way (import-linter)", build_program_check("lint-imports", "--no-cache", "--no-logo")),
    Check("pure folders use no clock, randomness, environment or I/O", purity.find_violations),
    Check("the agent imports only the standard library", agent_checks.find_foreign_imports),
    Check("the agent's code is Python 3.8 (vermin)", build_program_check("vermin", *agent_checks.VERMIN_OPTIONS)),
    Check(
        "what runs in launch scripts' processes is Python 3.9 (vermin)",
        build_program_check("vermin", *STAND_IN_VERMIN_OPTIONS),
    ),
    Check(f"the agent loads on {agent_checks.describe_oldest_python()}", agent_checks.check_oldest_python),
    Check("generated files are current", generated_files.find_outdated_files),
    Check("the lock is current", lock.find_outdated_files),
    Check("the bare package is small", package_checks.find_unwanted_packages),
    Check("modules and functions are short", file_checks.find_long_code),
    Check("no file names a machine's paths or a registry", file_checks.find_forbidden_texts),
)


def main(_: Sequence[str]) -> int:
    """Run all checks and print the results; return the exit code."""
    return 1 if any(result.problems for result in run_all()) else 0


def run_all() -> Sequence[Result]:
    """Run all checks and print the results."""
    # The Makefile sets PYTHONPATH for this package. The programs don't need it.
    os.environ.pop("PYTHONPATH", None)
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(run_check, CHECKS))
    # All lines at once, because `make test` prints, too.
    print("\n".join(describe(results, time.monotonic() - started)), flush=True)
    return results


def describe(results: Sequence[Result], seconds: float) -> Iterator[str]:
    """Yield the lines about all results."""
    for result in results:
        yield f"check: {'FAILED ' if result.problems else 'ok     '}{result.name} ({result.seconds:.1f} s)"
        for problem in result.problems:
            yield "    " + problem.replace("\n", "\n    ")
    failed = sum(1 for result in results if result.problems)
    verdict = f"{failed} of {len(results)} failed" if failed else f"all {len(results)} are fine"
    yield f"check: {verdict}, in {seconds:.0f} s"


def run_check(check: Check) -> Result:
    """Run one check."""
    started = time.monotonic()
    problems = check.run()
    return Result(check.name, problems, time.monotonic() - started)
