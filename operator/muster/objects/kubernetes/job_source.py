"""The job's object that the watch passes to the job's controller. Its spec and its status are JSON text.

Parsed JSON may take 25 times as much memory as its text, so the controller parses it only when memory is available.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import (
    MAX_CONFIG_MAP_NAME_CHARS,
    MAX_RESTART_REQUEST_CHARS,
    RESTART_ANNOTATION,
    SOURCE_ANNOTATION,
)
from muster.api.validation.validate import MAX_SPEC_BYTES
from muster.objects.kubernetes.kinds import JOBS, Object, ParseOptions
from muster.objects.kubernetes.object_parser import parse_json

MAX_SPEC_TEXT_BYTES = 2 * MAX_SPEC_BYTES
"""The limit for a spec's text: twice the limit of validation, because the API server adds escapes and defaults."""

MAX_STATUS_TEXT_BYTES = 256 * 1024
"""The limit for a status' text: four times the longest status that muster writes."""

MISSING_MEMORY = "room"
"""The key of an object whose spec was dropped because no memory was available for it."""

MAX_FINALIZERS_BYTES = 16 * 1024

WATCHED_JOBS = replace(
    JOBS,
    parse_options=ParseOptions(
        metadata=frozenset(
            {
                *("name", "namespace", "uid", "resourceVersion", "generation"),
                *("creationTimestamp", "deletionTimestamp", "finalizers"),
            }
        ),
        annotations={
            RESTART_ANNOTATION: MAX_RESTART_REQUEST_CHARS,
            # Read one more character, so that a name that is too long is not truncated to a valid one.
            SOURCE_ANNOTATION: MAX_CONFIG_MAP_NAME_CHARS + 1,
        },
        parts=frozenset({"spec", "status"}),
        text_fields=frozenset({"spec", "status"}),
        max_bytes={
            "spec": MAX_SPEC_TEXT_BYTES,
            "status": MAX_STATUS_TEXT_BYTES,
            "metadata.finalizers": MAX_FINALIZERS_BYTES,
        },
    ),
)
"""The jobs' resources, with the fields that the operator reads."""

JOB_IDENTITIES = replace(
    JOBS,
    parse_options=ParseOptions(metadata=frozenset({"name", "namespace", "uid", "resourceVersion"}), parts=frozenset()),
)
"""The jobs' resources, with only their identities."""


@dataclass(frozen=True)
class JobIdentity:
    """The identity of one version of a resource."""

    namespace: str
    name: str
    uid: str
    version: str


def read_identity(source: Object) -> JobIdentity:
    """Return the object's identity."""
    metadata = read_mapping(source.get("metadata"))
    namespace, name = read_string(metadata.get("namespace")), read_string(metadata.get("name"))
    return JobIdentity(namespace, name, read_string(metadata.get("uid")), read_string(metadata.get("resourceVersion")))


def parse_part(source: Object, name: str) -> Mapping[str, JSON]:
    """Parse the object's spec or status; empty if it is absent. Raises `NestingTooDeep` and `MalformedJson`."""
    part = source.get(name)
    return read_mapping(parse_json(part.encode()) if isinstance(part, str) else part)
