"""`make cluster-down` removes everything that `make cluster` creates, from any state."""

import signal
import subprocess

import pytest

from cluster import lifecycle, places
from cluster.shared import SharedCluster
from cluster.traces import traces


# Signs that a start is at its beginning, in its middle, near its end.
@pytest.mark.parametrize("component", ["switch", "kube-apiserver", "node-3-kube-proxy"])
def test_an_interrupted_start_leaves_nothing_but_logs(own_cluster: SharedCluster, component: str) -> None:
    before = traces()
    with own_cluster.begin("up") as start:
        wait_until_it_runs(component, start)
        start.send_signal(signal.SIGINT)
        said, _ = start.communicate(timeout=60)
    assert start.returncode == 130, said
    assert traces() - before == {f"file {places.state().logs}"}
    own_cluster.down()
    assert traces() == before


def test_a_start_refuses_other_commands_and_is_taken_down_once_it_was_killed(own_cluster: SharedCluster) -> None:
    before = traces()
    with own_cluster.begin("up") as start:
        wait_until_it_runs("etcd", start)
        with own_cluster.begin("down") as second:
            said, _ = second.communicate(timeout=60)
        start.kill()
    assert (second.returncode, "another command is at work" in said) == (1, True), said
    own_cluster.down()
    assert traces() == before


def wait_until_it_runs(component: str, start: subprocess.Popen[str]) -> None:
    """Poll until it is there: a starting process sends no event."""
    while all(found.name != component for found in lifecycle.running()):
        assert start.poll() is None, start.communicate()[0]
