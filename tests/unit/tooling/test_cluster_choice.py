"""The choice of the cluster for the tests."""

import os
from pathlib import Path

import pytest

from cluster.choice import CLUSTER, OPERATOR_IMAGE, WORKER_IMAGE, HostTools, Kind, NamedCluster, NotRun, Own, choose
from cluster.prune import KEPT_SECONDS, stale

OWN = "/state/kubeconfig"
IMAGES = {OPERATOR_IMAGE: "o:1", WORKER_IMAGE: "w:1"}


@pytest.mark.parametrize(
    ("root", "docker", "environment", "expected"),
    [
        (True, False, {}, Own()),
        (False, True, {}, Kind()),
        # A variable that is set by accident doesn't select a user's cluster.
        (True, False, {"KUBECONFIG": "/mine"}, Own()),
        (True, True, {}, Own()),
        (True, True, {CLUSTER: "kind"}, Kind()),
        (True, False, {"KUBECONFIG": "/mine", **IMAGES}, NamedCluster("/mine", "o:1", "w:1")),
        (False, False, {"KUBECONFIG": "/mine", **IMAGES}, NamedCluster("/mine", "o:1", "w:1")),
    ],
)
def test_a_cluster_is_chosen(
    *, root: bool, docker: bool, environment: dict[str, str], expected: NamedCluster | Own | Kind
) -> None:
    assert choose(HostTools(root, docker, environment, OWN)) == expected


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "needs root"),
        (IMAGES, "set KUBECONFIG too"),
        ({"KUBECONFIG": "/mine", OPERATOR_IMAGE: "o:1"}, f"set {WORKER_IMAGE} too"),
        ({"KUBECONFIG": OWN, **IMAGES}, "unset MUSTER_TEST"),
        ({CLUSTER: "own"}, "own, which needs root"),
        ({CLUSTER: "kind"}, "kind, which needs a Docker engine"),
        ({CLUSTER: "minikube"}, "set it to own or kind"),
    ],
)
def test_without_the_means_it_is_said_what_is_missing(environment: dict[str, str], said: str) -> None:
    chosen = choose(HostTools(root=False, docker=False, environment=environment, own=OWN))
    assert isinstance(chosen, NotRun)
    assert said in chosen.why


def test_what_nothing_used_for_long_and_nothing_runs_of_is_removed(tmp_path: Path) -> None:
    now = 1e9
    for name, age in (("old", KEPT_SECONDS + 1), ("running", KEPT_SECONDS + 1), ("lock", 1e8), ("new", 60)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (now - age, now - age))
    assert stale(tmp_path, now, {tmp_path / "running" / "bin" / "etcd"}) == [tmp_path / "old"]
