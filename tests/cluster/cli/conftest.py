"""The command, and jobs without an operator: the tests write their statuses."""

import pytest

from cluster.cli.told_jobs import ToldJobs
from cluster.muster_command import Muster
from cluster.shared import Kubectl
from muster.api.crd import format_crd_yaml


@pytest.fixture
def told(kubectl: Kubectl, namespace: str) -> ToldJobs:
    """Jobs of the test's namespace."""
    kubectl.define(format_crd_yaml())
    return ToldJobs(kubectl, namespace)


@pytest.fixture
def muster(kubectl: Kubectl, namespace: str) -> Muster:
    """Return the command, as the administrator."""
    return Muster(kubectl.kubeconfig, namespace)
