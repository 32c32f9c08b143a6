"""A namespace with an operator and a LocalQueue of Kueue, which runs on the cluster as its own chart installs it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from cluster.helm import Helm
from cluster.places import ROOT
from cluster.queues.source import KUEUE
from cluster.shared import Kubectl, SharedCluster
from integration.docs.pages import blocks

NAMESPACE = "kueue-system"
QUEUE = "team-a"
RACK_QUEUE = "racks"
HOST_LABEL = "kubernetes.io/hostname"
PRIORITIES = {"low": 100, "high": 1000}
POD_CPU = "100m"
CPU = "250m"
"""The quota: room for one gang of two pods."""

API = "kueue.x-k8s.io/v1beta2"


@contextmanager
def install(cluster: SharedCluster, kubectl: Kubectl, helm: Helm, namespace: str) -> Iterator[None]:
    """Install Kueue for the pods of one namespace, and uninstall it with all that it holds."""
    image, files = KUEUE.provide()
    cluster.load(image)
    repository, _, tag = image.name.rpartition(":")
    manager = {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    }
    config = {"controllerManagerConfigYaml": json.dumps(_make_config(namespace))}
    probe = {"initialDelaySeconds": 1}
    values = {"controllerManager": {"manager": manager, "readinessProbe": probe}, "managerConfig": config}
    helm.install("kueue", NAMESPACE, values, files / "charts" / "kueue", options=())
    try:
        _wait_until_ready(kubectl)
        yield
    finally:
        # Kueue's finalizers would keep the namespace's pods and Workloads forever.
        kubectl("delete", "dtj", "--all", f"--namespace={namespace}")
        kubectl("wait", "--for=delete", "pods", "--all", f"--namespace={namespace}", "--timeout=120s")
        kubectl("delete", "localqueues,workloads", "--all", f"--namespace={namespace}")
        kubectl("delete", "clusterqueues,resourceflavors,topologies", "--all")
        helm.uninstall("kueue", NAMESPACE)
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _wait_until_ready(kubectl: Kubectl) -> None:
    """Wait until Kueue serves its webhooks.

    It writes its certificate into a Secret that its own pod mounts. A change of the pod lets the kubelet update the
    mounted files at once, instead of after a minute or two.
    """
    here = f"--namespace={NAMESPACE}"
    kubectl.wait("jsonpath={.data.tls\\.crt}", "secret/kueue-webhook-server-cert", here)
    kubectl("annotate", "pods", "--all", here, "muster.dev/certificate=written")
    kubectl.wait("condition=Available", "deployment/kueue-controller-manager", here)


def _make_config(namespace: str) -> dict[str, Any]:
    """Return the chart's configuration with the integration of pods, for one namespace."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": ["pod"]},
        "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }


def make_queues(namespace: str) -> Iterator[Any]:
    """Yield the queue of docs/queues.md with room for one gang, and priorities."""
    for block in blocks(ROOT / "docs" / "queues.md"):
        document = yaml.safe_load(block.text) if block.language == "yaml" else {}
        if document.get("apiVersion") == API:
            yield _adapt(document, namespace)
    for name, value in PRIORITIES.items():
        yield {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def make_rack_queue(namespace: str) -> list[dict[str, Any]]:
    """Return a queue that knows the topology of the cluster, in which each Kubernetes node is a domain."""
    quota = {"name": "racks", "resources": [{"name": "cpu", "nominalQuota": CPU}]}
    return [
        {
            "apiVersion": API,
            "kind": "Topology",
            "metadata": {"name": "racks"},
            "spec": {"levels": [{"nodeLabel": HOST_LABEL}]},
        },
        {
            "apiVersion": API,
            "kind": "ResourceFlavor",
            "metadata": {"name": "racks"},
            "spec": {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": "racks"},
        },
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": RACK_QUEUE},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            },
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": RACK_QUEUE, "namespace": namespace},
            "spec": {"clusterQueue": RACK_QUEUE},
        },
    ]


def _adapt(document: Any, namespace: str) -> Any:
    if document["kind"] == "LocalQueue":
        return {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    if document["kind"] == "ClusterQueue":
        [group] = document["spec"]["resourceGroups"]
        [flavor] = group["flavors"]
        flavor["resources"] = [{"name": "cpu", "nominalQuota": CPU}]
    return document
