"""Objects for these tests, and readers of their fields."""

from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.objects.kubernetes.kinds import Object


def config_map(name: str, labels: Mapping[str, str] | None = None, **data: str) -> Object:
    metadata: dict[str, JSON] = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def pod(name: str, *command: str, scheduler: str = "default-scheduler") -> Object:
    container: dict[str, JSON] = {
        "name": "only",
        "image": "cluster.muster.dev/python:1",
        "imagePullPolicy": "Never",
        "command": list(command),
    }
    spec: dict[str, JSON] = {
        "restartPolicy": "Never",
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def meta(item: Object, field: str) -> str:
    return read_string(read_mapping(item.get("metadata")).get(field))
