"""The message for a user when a component of the cluster ends before it serves."""

import sys
from pathlib import Path

import pytest

from cluster import components, waiting
from cluster.components import Component
from cluster.places import State
from cluster.say import CannotGoOn


@pytest.fixture
def ended(tmp_path: Path) -> Component:
    """Return a component that printed a reason, and ended."""
    program = "import sys; print('line 1'); sys.exit('port 2379 is taken')"
    started = components.start("etcd", [sys.executable, "-c", program], State(tmp_path), {})
    started.process.wait()
    return started


def test_it_is_named_with_its_exit_code_and_its_last_lines(ended: Component) -> None:
    with pytest.raises(CannotGoOn) as problem:
        waiting.until(lambda: False, ended, "etcd")
    first, *rest = str(problem.value).splitlines()
    assert first == f"etcd ended with exit code 1. The last lines of {ended.log}:"
    assert sorted(rest) == ["line 1", "port 2379 is taken"]


def test_a_mark_of_an_ended_process_is_not_found(ended: Component) -> None:
    assert ended.process.pid not in {found.pid for found in components.marked()}
