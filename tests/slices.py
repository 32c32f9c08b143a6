"""A pytest plug-in: TESTS_SLICE=2/6 runs the second of six slices of the tests, so that six runs cover all.

A slice consists of whole files. The slices are of similar length by the times below.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

import pytest

SLICE = "TESTS_SLICE"
"""The variable that names a slice. It has no muster prefix, because muster does not read it."""

SECONDS: Mapping[str, float] = {
    "tests/cluster/security/test_attacks.py": 386.0,
    "tests/cluster/crashes/test_answers.py": 184.0,
    "tests/cluster/queues/test_coscheduling.py": 182.0,
    "tests/cluster/installed/test_uninstall.py": 165.0,
    "tests/cluster/reasons/test_chaos.py": 155.0,
    "tests/cluster/crashes/test_random_kills.py": 154.0,
    "tests/integration/examples/test_examples_muster_run.py": 125.0,
    "tests/integration/rank_truth/test_first_failure.py": 119.0,
    "tests/integration/examples/test_examples_digits.py": 115.0,
    "tests/cluster/installed/test_twenty_jobs.py": 114.0,
    "tests/cluster/reasons/test_lost_node.py": 114.0,
    "tests/integration/rank_side/test_busy_time.py": 110.0,
    "tests/cluster/test_scale.py": 101.0,
    "tests/integration/sagemaker_life/test_many_jobs.py": 86.0,
    "tests/integration/run/test_chaos.py": 76.0,
    "tests/integration/agent/test_agent_fence.py": 72.0,
    "tests/integration/gpu/test_gpu.py": 63.0,
    "tests/integration/run/test_run_hangs.py": 63.0,
    "tests/integration/rank_side/test_rank_torch.py": 62.0,
}
"""The seconds that files of long tests take, with one core for each worker. Add a file that takes a minute or more."""

OTHER_SECONDS = 10.0
"""For a file that has no time above."""


def choose_files(files: Collection[str], number: int, count: int) -> frozenset[str]:
    """Return the files of slice `number`, from 1 to `count`: each file, longest first, joins the shortest slice."""
    slices: list[list[str]] = [[] for _ in range(count)]
    for file in sorted(files, key=lambda file: (-find_seconds(file), file)):
        min(slices, key=lambda chosen: sum(map(find_seconds, chosen))).append(file)
    return frozenset(slices[number - 1])


def find_seconds(file: str) -> float:
    """Return how long the tests of a file take."""
    return SECONDS.get(file, OTHER_SECONDS)


def parse_slice(text: str) -> tuple[int, int]:
    """Return the number and the count of 2/6. Raises ValueError for anything else."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"{SLICE}={text}: expected NUMBER/COUNT, such as 2/6")
    return int(match[1]), int(match[2])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen slice. Other options have chosen tests before."""
    if SLICE not in os.environ:
        return
    number, count = parse_slice(os.environ[SLICE])
    files = {item: item.nodeid.partition("::")[0] for item in items}
    chosen = choose_files(frozenset(files.values()), number, count)
    config.hook.pytest_deselected(items=[item for item in items if files[item] not in chosen])
    items[:] = [item for item in items if files[item] in chosen]
