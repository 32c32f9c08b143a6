"""The coscheduling plug-in on the cluster, as the chart of scheduler-plugins installs it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.helm import Helm
from cluster.queues.source import SCHEDULER_PLUGINS
from cluster.shared import Kubectl, SharedCluster

NAMESPACE = "scheduler-plugins"
_CHART = "manifests/install/charts/as-a-second-scheduler"


@contextmanager
def install(cluster: SharedCluster, kubectl: Kubectl, helm: Helm) -> Iterator[None]:
    """Install the scheduler with the plug-in and the controller of PodGroups, and uninstall both."""
    image, files = SCHEDULER_PLUGINS.provide()
    cluster.load(image)
    definitions = [file.read_text(encoding="utf-8") for file in sorted((files / "config/crd/bases").glob("*.yaml"))]
    for definition in definitions:
        kubectl.define(definition)
    values = {
        "scheduler": {"image": image.name},
        "controller": {"image": image.name},
        "plugins": {"enabled": ["Coscheduling"]},
    }
    helm.install("scheduler-plugins", NAMESPACE, values, files / _CHART)
    try:
        yield
    finally:
        helm.uninstall("scheduler-plugins", NAMESPACE)
        for definition in definitions:
            kubectl("delete", "-f", "-", stdin=definition)
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def measure_half_a_machine(kubectl: Kubectl) -> str:
    """Return a CPU request of which each Kubernetes node has room for two pods, but not for three."""
    [cores] = {
        node["status"]["allocatable"]["cpu"] for node in json.loads(kubectl("get", "nodes", "--output=json"))["items"]
    }
    return f"{int(cores) * 450}m"
