"""`make check`: all static checks of the code, with one line for each that passes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from muster_dev import agent, generated, lock, package, purity, tree
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


def tool(*command: str) -> Callable[[], Sequence[str]]:
    """A check with a program of .venv: its output is the problem if it fails."""

    def run() -> Sequence[str]:
        completed = subprocess.run(
            [str(BIN / command[0]), *command[1:]], check=False, capture_output=True, text=True, cwd=ROOT
        )
        return [] if completed.returncode == 0 else [(completed.stdout + completed.stderr).strip()]

    return run


STAND_IN = ("-q", "-t=3.9-", "--no-tips", "--violations", "operator/muster/importers/sagemaker/standin")
"""This code runs in the users' launch scripts: the SageMaker SDKs support Python 3.9."""

CHECKS = (
    # Start the slowest check first; the others run in parallel.
    Check("types are strict (mypy)", tool("mypy", "--no-error-summary")),
    Check(
        "format (ruff; `make format` puts it right)", tool("ruff", "format", "--check", "--output-format=concise", ".")
    ),
    Check("lint (ruff)", tool("ruff", "check", "--no-cache", "--quiet", "--output-format=concise", ".")),
    Check("imports go one way (import-linter)", tool("lint-imports", "--no-cache", "--no-logo")),
    Check("pure folders use no clock, randomness, environment or I/O", purity.impure),
    Check("the agent imports only the standard library", agent.foreign_imports),
    Check("the agent's code is Python 3.8 (vermin)", tool("vermin", *agent.VERMIN)),
    Check("what runs in launch scripts' processes is Python 3.9 (vermin)", tool("vermin", *STAND_IN)),
    Check(f"the agent loads on {agent.older_python_name()}", agent.problems_on_older_python),
    Check("generated files are current", generated.stale),
    Check("the lock is current", lock.current),
    Check("the bare package is small", package.unwanted),
    Check("modules and functions are short", tree.too_long),
    Check("no file names a machine's paths or a registry", tree.forbidden_texts),
)


def main(_: Sequence[str]) -> int:
    """Run all checks and print the results; return the exit code."""
    return 1 if any(result.problems for result in run_all()) else 0


def run_all() -> Sequence[Result]:
    """Run all checks and print the results."""
    # PYTHONPATH is only for this package, not for the tools.
    os.environ.pop("PYTHONPATH", None)
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(examine, CHECKS))
    for result in results:
        print(f"check: {'FAILED ' if result.problems else 'ok     '}{result.name} ({result.seconds:.1f} s)")
        for problem in result.problems:
            print("    " + problem.replace("\n", "\n    "))
    failed = sum(1 for result in results if result.problems)
    verdict = f"{failed} of {len(results)} failed" if failed else f"all {len(results)} are fine"
    print(f"check: {verdict}, in {time.monotonic() - started:.0f} s", flush=True)
    return results


def examine(check: Check) -> Result:
    """Run one check."""
    started = time.monotonic()
    problems = check.run()
    return Result(check.name, problems, time.monotonic() - started)
