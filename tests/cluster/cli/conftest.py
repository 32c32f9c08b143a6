"""The command, and jobs without an operator: the tests write their statuses."""

import pytest

from cluster.cli.told_jobs import ToldJobs
from cluster.muster_command import Muster
from cluster.shared import Kubectl


@pytest.fixture
def told(crd: None, kubectl: Kubectl, namespace: str) -> ToldJobs:
    """Jobs of the test's namespace."""
    del crd  # the cluster has it
    return ToldJobs(kubectl, namespace)


@pytest.fixture
def muster(kubectl: Kubectl, namespace: str) -> Muster:
    """Return the command, as the administrator."""
    return Muster(kubectl.kubeconfig, namespace)
