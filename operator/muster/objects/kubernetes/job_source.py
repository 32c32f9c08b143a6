"""The job's resource as the watch passes it to its controller: reduced, with spec and status as JSON text.

Parsed JSON may take 25 times as much memory as its text, so the controller parses it once, when memory is available.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from muster.api.document import JSON
from muster.api.json_fields import mapping, string
from muster.api.validation.validate import MAX_SPEC_BYTES
from muster.objects.kubernetes.kinds import JOBS, Object, Reading
from muster.objects.kubernetes.reading import parsed

MAX_SPEC_TEXT_BYTES = 2 * MAX_SPEC_BYTES
"""Twice the limit of validation, which measures the spec without the API server's escapes and defaults."""

MAX_STATUS_TEXT_BYTES = 256 * 1024
"""Four times the longest status that muster writes."""

ROOM = "room"
"""The path under which an object records that memory for its spec was not available."""

MAX_FINALIZERS_BYTES = 16 * 1024

WATCHED_JOBS = replace(
    JOBS,
    reading=Reading(
        metadata=frozenset(
            {
                *("name", "namespace", "uid", "resourceVersion", "generation"),
                *("creationTimestamp", "deletionTimestamp", "finalizers"),
            }
        ),
        parts=frozenset({"spec", "status"}),
        as_text=frozenset({"spec", "status"}),
        max_bytes={
            "spec": MAX_SPEC_TEXT_BYTES,
            "status": MAX_STATUS_TEXT_BYTES,
            "metadata.finalizers": MAX_FINALIZERS_BYTES,
        },
    ),
)
"""Job resources as the operator reads them."""

JOB_IDENTITIES = replace(
    JOBS,
    reading=Reading(metadata=frozenset({"name", "namespace", "uid", "resourceVersion"}), parts=frozenset()),
)
"""Job resources with only their identity, for listing."""


@dataclass(frozen=True)
class JobIdentity:
    """The identity of one version of a resource."""

    namespace: str
    name: str
    uid: str
    version: str


def identity_of(source: Object) -> JobIdentity:
    """The object's identity."""
    metadata = mapping(source.get("metadata"))
    namespace, name = string(metadata.get("namespace")), string(metadata.get("name"))
    return JobIdentity(namespace, name, string(metadata.get("uid")), string(metadata.get("resourceVersion")))


def part_of(source: Object, name: str) -> Mapping[str, JSON]:
    """The spec or the status, parsed; empty if absent. Raises `TooDeep` and `Malformed`."""
    part = source.get(name)
    return mapping(parsed(part.encode()) if isinstance(part, str) else part)
