"""Parse Kubernetes' warning Events about pods: some problems appear only there. Pure."""

import re
from dataclasses import dataclass, replace

from muster.api.json_fields import read_mapping, read_string
from muster.objects.kubernetes.kinds import EVENTS, Object, ParseOptions

MOUNT_REASONS = ("FailedMount", "FailedMapVolume")
ATTACH_REASONS = ("FailedAttachVolume",)
SANDBOX_REASONS = ("FailedCreatePodSandBox", "NetworkNotReady")
_CACHE_NOT_SYNCED = re.compile(r"failed to sync \w+ cache: timed out")

INFORMATIVE_REASONS = (*MOUNT_REASONS, *ATTACH_REASONS, *SANDBOX_REASONS)
"""The reasons of Events that contain more than the pod's status."""


MAX_MESSAGE_CHARS = 1024
"""The maximum length of a warning's text, because users may write Events. Kubernetes' own texts are shorter."""

MAX_UID_CHARS = 64

POD_WARNINGS = replace(
    EVENTS,
    parse_options=ParseOptions(
        required_text=b'"Warning"',
        metadata=frozenset({"name", "namespace", "uid", "resourceVersion"}),
        parts=frozenset({"involvedObject", "reason", "message", "type"}),
        max_bytes={"involvedObject": 16 * 1024},
    ),
)
"""The Events, with the fields that `read_warning` needs."""


@dataclass(frozen=True)
class PodWarning:
    """A warning Event about a pod in `namespace`."""

    pod_uid: str
    reason: str
    message: str
    namespace: str = ""


def read_warning(source: Object) -> PodWarning | None:
    """Parse a warning Event about a pod; None if the pod's status contains the same.

    The Event must be in the pod's namespace, because users may write Events in their own namespaces.
    """
    pod = read_mapping(source.get("involvedObject"))
    warning = PodWarning(
        read_string(pod.get("uid"))[:MAX_UID_CHARS],
        read_string(source.get("reason")),
        read_string(source.get("message"))[:MAX_MESSAGE_CHARS],
        read_string(read_mapping(source.get("metadata")).get("namespace")),
    )
    if source.get("type") != "Warning" or pod.get("kind") != "Pod" or not warning.pod_uid:
        return None
    if not warning.namespace or pod.get("namespace") != warning.namespace:
        return None
    # Skip the kubelet's summary of mount failures, which have their own Events.
    is_summary = warning.message.startswith("Unable to attach or mount volumes")
    # The kubelet has not read the Secret or ConfigMap yet, but it may exist.
    is_too_early = _CACHE_NOT_SYNCED.search(warning.message) is not None
    return warning if warning.reason in INFORMATIVE_REASONS and not is_summary and not is_too_early else None


def find_latest_message(warnings: tuple[PodWarning, ...], reasons: tuple[str, ...]) -> str:
    """Return the message of the latest warning with one of these reasons; "" without one."""
    return next((warning.message for warning in reversed(warnings) if warning.reason in reasons), "")
