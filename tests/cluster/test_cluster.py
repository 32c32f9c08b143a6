"""The cluster works: nodes, pods on both, the network between them, names, logs."""

import json

import pytest

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.lan import ALL_NODES, NODES
from cluster.shared import Kubectl, Manifest, SharedCluster

PORT = 8080
# A new Service's rules are in the kernel a moment after its pod is ready: until then it refuses connections.
FETCH = """
import sys, time, urllib.request
deadline = time.monotonic() + 20
urls = sys.argv[1:]
while urls:
    try:
        print(urllib.request.urlopen(urls[0], timeout=5).status)
        del urls[0]
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.1)
"""
# The API server by its Service, with the credentials of every pod.
ASK_API = """
import ssl, urllib.request
context = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
print(urllib.request.urlopen("https://kubernetes.default.svc/version", timeout=20, context=context).status)
"""


def server(name: str, node: str, namespace: str) -> Manifest:
    """Return a pod on `node` that serves HTTP."""
    command = ["sh", "-c", f"echo serving on {node}; exec python3 -m http.server {PORT}"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "server",
                    "image": PYTHON_IMAGE,
                    "imagePullPolicy": PULL_POLICY,
                    "command": command,
                    "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                }
            ],
        },
    }


def service(name: str, namespace: str) -> Manifest:
    """Return a Service for the pods of the same name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": PORT}]},
    }


@pytest.fixture(autouse=True)
def _own(shared_cluster: SharedCluster) -> None:
    """These tests are about our own cluster only."""
    shared_cluster.up()


def test_all_nodes_are_ready_and_say_their_version(kubectl: Kubectl) -> None:
    nodes = json.loads(kubectl("get", "nodes", "--output=json"))["items"]
    ready = {
        node["metadata"]["name"]: condition["status"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    }
    assert ready == {node.name: "True" for node in ALL_NODES}
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {
        json.loads(kubectl("version", "--output=json"))["serverVersion"]["gitVersion"]
    }


def test_pods_on_both_nodes_reach_each_other_by_address_and_by_name(kubectl: Kubectl, namespace: str) -> None:
    inside = f"--namespace={namespace}"
    names = [f"on-{node.name}" for node in NODES]
    pods = [server(name, node.name, namespace) for name, node in zip(names, NODES, strict=True)]
    kubectl.apply(*pods, *(service(name, namespace) for name in names))
    kubectl.wait("condition=Ready", *(f"pod/{name}" for name in names), inside)
    for source, target in (names, reversed(names)):
        address = kubectl("get", "pod", target, inside, "--output=jsonpath={.status.podIP}")
        hosts = (address, target, f"{target}.{namespace}.svc.cluster.local")
        urls = [f"http://{host}:{PORT}" for host in hosts]
        assert kubectl("exec", source, inside, "--", "python3", "-c", FETCH, *urls) == "200\n" * len(urls)
    for name, node in zip(names, NODES, strict=True):
        assert f"serving on {node.name}" in kubectl("logs", name, inside)
        assert kubectl("exec", name, inside, "--", "python3", "-c", ASK_API) == "200\n"
