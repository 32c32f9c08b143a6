"""Chooses the cluster for the tests: the user's, our own, a cluster of kind, or none, with the reason."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from cluster import places

# These variables allow the tests to use the cluster of KUBECONFIG: many shells set KUBECONFIG alone, for another
# purpose.
OPERATOR_IMAGE = "MUSTER_TEST_OPERATOR_IMAGE"
WORKER_IMAGE = "MUSTER_TEST_WORKER_IMAGE"
# This variable names a kind of cluster: without it, root gets our own even if Docker answers.
CLUSTER = "MUSTER_TEST_CLUSTER"
OWN, KIND = "own", "kind"
DOCKER_SECONDS = 20


@dataclass(frozen=True)
class NamedCluster:
    """The cluster of KUBECONFIG, whose nodes have the images or can pull them."""

    kubeconfig: str
    operator_image: str
    worker_image: str


@dataclass(frozen=True)
class Own:
    """Two nodes made of this machine's namespaces."""


@dataclass(frozen=True)
class Kind:
    """Nodes that are Docker containers."""


@dataclass(frozen=True)
class NotRun:
    """No cluster is available."""

    why: str


@dataclass(frozen=True)
class HostTools:
    """The machine's tools. `docker`: a Docker engine answers. `own` is the kubeconfig of the machine's own cluster."""

    root: bool
    docker: bool
    environment: Mapping[str, str]
    own: str


def look() -> HostTools:
    """Detect this machine's tools."""
    root = os.geteuid() == 0
    # Detecting a missing engine takes a while, so it is only done when needed.
    needs_docker = os.environ.get(CLUSTER) == KIND or (not root and os.environ.get(CLUSTER) != OWN)
    return HostTools(root, needs_docker and docker_answers(), dict(os.environ), str(places.state().kubeconfig))


def docker_answers() -> bool:
    """Whether Docker is installed and its engine answers."""
    if shutil.which("docker") is None:
        return False
    try:
        return (
            subprocess.run(["docker", "info"], check=False, capture_output=True, timeout=DOCKER_SECONDS).returncode == 0
        )
    except subprocess.TimeoutExpired:
        return False


def choose(means: HostTools) -> NamedCluster | Own | Kind | NotRun:
    """Choose the cluster. The user's has priority, then our own, which only needs root, unless CLUSTER names one."""
    named = {name: means.environment.get(name, "") for name in ("KUBECONFIG", OPERATOR_IMAGE, WORKER_IMAGE)}
    if named[OPERATOR_IMAGE] or named[WORKER_IMAGE]:
        missing = [name for name, value in named.items() if not value]
        if missing:
            return NotRun(f"to test on a cluster of yours, set {' and '.join(missing)} too (docs/cluster.md)")
        if named["KUBECONFIG"] == means.own:
            return NotRun("the machine's own cluster is loaded with images by the tests: unset MUSTER_TEST_*_IMAGE")
        return NamedCluster(named["KUBECONFIG"], named[OPERATOR_IMAGE], named[WORKER_IMAGE])
    return choose_on_this_machine(means, means.environment.get(CLUSTER, ""))


def choose_on_this_machine(means: HostTools, wanted: str) -> Own | Kind | NotRun:
    """Choose a cluster to create: our own or that of kind. `wanted` is the value of CLUSTER."""
    if means.root and wanted in {"", OWN}:
        return Own()
    if means.docker and wanted in {"", KIND}:
        return Kind()
    needed = {
        OWN: f"{CLUSTER} is {OWN}, which needs root",
        KIND: f"{CLUSTER} is {KIND}, which needs a Docker engine that answers",
        "": "no cluster: it needs root (for namespaces, mounts and cgroups), or a Docker engine that answers, or a "
        f"cluster of yours in KUBECONFIG with {OPERATOR_IMAGE} and {WORKER_IMAGE}",
    }
    why = needed.get(wanted, f"{CLUSTER} is {wanted!r}: set it to {OWN} or {KIND}, or unset it")
    return NotRun(f"{why} (docs/cluster.md)")
