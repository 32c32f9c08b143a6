"""A job's resource as it travels to its controller: reduced, its spec and status still the text of the API server.

Parsed, a text may take 25 times as much memory. So it is parsed where it is needed, once, by who has room for it.
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
"""What validation measures doesn't have the API server's escapes and defaults; its own limit is the exact one."""

MAX_STATUS_TEXT_BYTES = 256 * 1024
"""Four times the longest status that muster writes."""

ROOM = "room"
"""Under this path an object says that there was no room for its spec."""

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
"""Jobs as the operator reads them, wherever they come from."""

JOB_IDENTITIES = replace(
    JOBS,
    reading=Reading(metadata=frozenset({"name", "namespace", "uid", "resourceVersion"}), parts=frozenset()),
)
"""Jobs as they are listed to see which there are."""


@dataclass(frozen=True)
class JobIdentity:
    """Which version of which resource."""

    namespace: str
    name: str
    uid: str
    version: str


def identity_of(source: Object) -> JobIdentity:
    """Whose object it is."""
    metadata = mapping(source.get("metadata"))
    namespace, name = string(metadata.get("namespace")), string(metadata.get("name"))
    return JobIdentity(namespace, name, string(metadata.get("uid")), string(metadata.get("resourceVersion")))


def part_of(source: Object, name: str) -> Mapping[str, JSON]:
    """The spec or the status; empty where there is none. Raises `TooDeep` and `Malformed`."""
    part = source.get(name)
    return mapping(parsed(part.encode()) if isinstance(part, str) else part)
