"""`python -m suite test|test-cluster|test-long|test-gpu`: the make targets of these names.

It lists all failures at the end. Further arguments are passed to pytest.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cluster.suite
from conftest import ON_GPUS
from muster.backends.local.devices import find_machine_gpus
from muster_dev import check
from problems import Problem, close
from side_by_side import TESTS, Part, run, run_together
from support.searches import AT_LENGTH

SHORT = (
    Part((TESTS / "unit",), "not long"),
    Part((TESTS / "integration",), "not long", beside=3),
)
"""Two processes collect less than more processes that each collect all tests. Integration tests mostly wait for
processes, so more of them than processors run at a time.
"""

SEARCHES = Part(marked="hypothesis and not long", beside=2)
"""All searches, with more examples than `make test` tries. These use a processor all the time."""

LONG = (Part(marked="long and not alone", beside=2), Part(marked="long and alone"))

GPU = Part(marked="gpu")
PROBLEM_LINES = 4


def main(arguments: Sequence[str]) -> int:
    """Run all steps of a command, also after a failure; return the exit code."""
    command, *rest = arguments
    found = [problem for step in STEPS[command] for problem in step(rest)]
    return close(f"make {command}", found)


def run_checks_and_tests(arguments: Sequence[str]) -> list[Problem]:
    """Run `make check` beside the tests that need no cluster and take less than minutes; return the failures.

    mypy uses one processor for as long as a third of the tests.
    """
    with ThreadPoolExecutor() as pool:
        checks = pool.submit(run_checks)
        tests = pool.submit(run_together, SHORT, arguments)
        return [*checks.result(), *tests.result()]


def run_checks() -> list[Problem]:
    """Run `make check`; return its failures."""
    failed = [result for result in check.run_all() if result.problems]
    return [Problem(f"check: {result.name}", first_lines(result.problems)) for result in failed]


def first_lines(texts: Sequence[str]) -> list[str]:
    """Return the first lines of several texts together."""
    return [line for text in texts for line in text.splitlines()][:PROBLEM_LINES]


def run_searches(arguments: Sequence[str]) -> list[Problem]:
    """Run all searches at length."""
    os.environ[AT_LENGTH] = "yes"
    return run(SEARCHES, arguments)


def run_long(arguments: Sequence[str]) -> list[Problem]:
    """Run the tests that take minutes."""
    return [problem for part in LONG for problem in run(part, arguments)]


def run_gpu(arguments: Sequence[str]) -> list[Problem]:
    """Run the tests that need a GPU, on a machine that has one."""
    gpus = find_machine_gpus(os.environ, Path("/dev"))
    if not gpus:
        return [Problem("GPUs", ("this machine has no /dev/nvidia0, or CUDA_VISIBLE_DEVICES is empty",))]
    os.environ[ON_GPUS] = "yes"
    return run(GPU, arguments)


def run_cluster(arguments: Sequence[str]) -> list[Problem]:
    """Run the cluster's tests."""
    return build_cluster() or cluster.suite.run_short(arguments)


def run_cluster_long(arguments: Sequence[str]) -> list[Problem]:
    """Run the cluster's tests that take minutes."""
    return build_cluster() or cluster.suite.run_long(arguments)


def build_cluster() -> list[Problem]:
    """Build the cluster's programs and images, if the tests run on our own cluster."""
    command = [sys.executable, "-m", "cluster", "build", "--if-it-can"]
    code = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": str(TESTS)}).returncode
    return [Problem("python -m cluster build", (f"it ended with exit code {code}: see above",))] if code else []


STEPS: Mapping[str, Sequence[Callable[[Sequence[str]], list[Problem]]]] = {
    "test": (run_checks_and_tests,),
    "test-cluster": (run_cluster,),
    "test-long": (run_cluster_long, run_long, run_searches),
    "test-gpu": (run_gpu,),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
