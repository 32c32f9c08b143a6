"""Useless objects as text, because json can't write everything that the API server accepts. Pure."""

import json
from collections.abc import Mapping
from typing import Any

API_VERSION = "muster.dev/v1alpha1"
KIND = "DistributedTrainingJob"
NOBODY = "nobody"
"""A scheduler that doesn't exist: the pods cost the operator as much as any, and the cluster's scheduler nothing."""

_HERE = "@HERE@"
_DEEP = "@DEEP@"

DEEPEST = 9_000
"""Nearly the API server's limit for an object without a schema; its JSON parser stops at 10,000 levels."""


def text(body: object) -> str:
    """Return an object as JSON."""
    return json.dumps(body)


def job(name: str, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a job that the API server accepts; no scheduler places its pods."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {
            "launcher": {"direct": {}},
            "image": "x",
            "command": ["x"],
            "template": {"spec": {"schedulerName": NOBODY}},
            **spec,
        },
    }


def pod(name: str, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod that looks like a job's; no scheduler places it."""
    labels = {"muster.dev/job-uid": "x", "muster.dev/job": "x", "muster.dev/node": "0", "muster.dev/replacement": "0"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, **(metadata or {})},
        "spec": {"schedulerName": NOBODY, "containers": [{"name": "trainer", "image": "x"}], **spec},
    }


def event(name: str, kind: str, about: str, uid: str, message: str) -> dict[str, Any]:
    """Return a warning about an object of the tenant's namespace, or a false one about another object."""
    group = "v1" if kind == "Pod" else API_VERSION
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "{namespace}"},
        "involvedObject": {
            "apiVersion": group,
            "kind": kind,
            "namespace": "{namespace}",
            "name": about,
            "uid": uid,
        },
        "type": "Warning",
        "reason": "FailedMount",
        "message": message,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "source": {"component": "kubelet"},
    }


def nested(levels: int) -> str:
    """Return an object in an object, this many times."""
    return '{"a":' * levels + "1" + "}" * levels


def nested_lists(levels: int) -> str:
    """Return a list in a list, this many times."""
    return "[" * levels + "]" * levels


def with_deep_fields(body: dict[str, Any], levels: int) -> str:
    """Return an object with deep metadata.managedFields. Any client may write them to any object."""
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": body["apiVersion"],
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": _DEEP,
    }
    whole = {**body, "metadata": {**body["metadata"], "managedFields": [entry]}}
    deep = '{"f:a":' * levels + "{}" + "}" * levels
    return text(whole).replace(f'"{_DEEP}"', f'{{"f:metadata":{{"f:annotations":{deep}}}}}')


def here(body: dict[str, Any], what: str) -> str:
    """Return the object as text, with `what` instead of HERE."""
    return text(body).replace(f'"{_HERE}"', what)


HERE = _HERE
"""A placeholder for a text."""
