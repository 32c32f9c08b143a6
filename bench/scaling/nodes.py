"""Simulated nodes, and kwok's configuration for their pods."""

import json
from typing import Any

NODES = 600

_STATUS = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
{{ range $type := list "Initialized" "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ end }}
"""


def build_stages() -> str:
    """Return kwok's configuration: a pod runs as soon as it has a node, and ends only when it is deleted."""
    is_not_running = [
        {"key": key, "operator": "DoesNotExist"} for key in (".metadata.deletionTimestamp", ".status.podIP")
    ]
    is_deleted = [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]
    documents = (
        _make_stage("pod-runs", "Pod", is_not_running, {"statusTemplate": _STATUS}),
        _make_stage("pod-goes", "Pod", is_deleted, {"finalizers": {"empty": True}, "delete": True}),
        # The nodes are Ready from their creation. Without this stage kwok would use its default stages for nodes.
        _make_stage(
            "node-stays", "Node", [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}], {"delete": True}
        ),
    )
    return "\n---\n".join(json.dumps(document) for document in documents)


def _make_stage(name: str, kind: str, expressions: list[dict[str, str]], next_state: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "next": next_state,
        },
    }


def build_node(number: int) -> dict[str, Any]:
    """Return a ready node that is large enough for every pod."""
    name = f"node-{number}"
    resources = {"cpu": "192", "memory": "2Ti", "pods": "110"}
    address = f"10.200.{number // 250}.{number % 250 + 1}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Simulated", "message": "kwok"}],
        },
    }
