"""The memory that a node's processes may pin: the container's maximum, and a report of a low limit."""

import subprocess
import sys
from dataclasses import replace

import pytest

from muster_dev.paths import ROOT
from muster_worker.agent.reports import MAX_INTERFACE_REASON_CHARS, Snapshot, make_report
from muster_worker.agent.state import NodeState
from muster_worker.machine.memory_lock import UNLIMITED, find_warning

PROGRAM = """
import resource
from muster_worker.machine.memory_lock import raise_limit
resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 65536))
print(raise_limit(), resource.getrlimit(resource.RLIMIT_MEMLOCK))
"""


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "training")},
    )
    assert done.stdout == "65536 (65536, 65536)\n"


@pytest.mark.parametrize(
    ("limit", "has_verbs", "said"),
    [
        (UNLIMITED, True, None),
        (65536, False, None),
        (
            65536,
            True,
            "only 0.0625 MiB may be pinned for EFA: set LimitMEMLOCK=infinity for the container runtime",
        ),
        (
            64 * 2**20,
            True,
            "only 64 MiB may be pinned for EFA: set LimitMEMLOCK=infinity for the container runtime",
        ),
    ],
)
def test_a_low_limit_is_reported_where_it_matters(limit: int, has_verbs: bool, said: str | None) -> None:  # noqa: FBT001 - a row
    assert find_warning(limit, has_verbs=has_verbs) == said


def test_the_status_tells_it_wherever_the_nodes_meet() -> None:
    state = NodeState("uid", 0, 0, interface="eth0", interface_why="the fastest", network_warning="only 1 MiB")
    assert make_report(Snapshot(state, {}), 1, 0.0).interface_why == "the fastest; only 1 MiB"
    met = replace(state, interface_why="w" * 250)
    assert len(make_report(Snapshot(met, {}), 1, 0.0).interface_why or "") == MAX_INTERFACE_REASON_CHARS
    assert make_report(Snapshot(replace(state, network_warning=None), {}), 1, 0.0).interface_why == "the fastest"
