"""Parse Kubernetes' warning Events about pods, which are the only source for some problems. Pure."""

import re
from dataclasses import dataclass, replace

from muster.api.json_fields import mapping, string
from muster.objects.kubernetes.kinds import EVENTS, Object, Reading

MOUNT = ("FailedMount", "FailedMapVolume")
ATTACH = ("FailedAttachVolume",)
SANDBOX = ("FailedCreatePodSandBox", "NetworkNotReady")
_CACHE_NOT_SYNCED = re.compile(r"failed to sync \w+ cache: timed out")

TELLING = (*MOUNT, *ATTACH, *SANDBOX)
"""Reasons of Events that add information to the pod's status."""


MAX_MESSAGE_CHARS = 1024
"""The limit for a warning's text, since any tenant may write an Event; Kubernetes' own texts are shorter."""

MAX_UID_CHARS = 64

POD_WARNINGS = replace(
    EVENTS,
    reading=Reading(
        marker=b'"Warning"',
        metadata=frozenset({"name", "namespace", "uid", "resourceVersion"}),
        parts=frozenset({"involvedObject", "reason", "message", "type"}),
        max_bytes={"involvedObject": 16 * 1024},
    ),
)
"""Events with the fields that `read_warning` needs."""


@dataclass(frozen=True)
class PodWarning:
    """A warning about a pod of `namespace`, with Kubernetes' text."""

    pod_uid: str
    reason: str
    message: str
    namespace: str = ""


def read_warning(source: Object) -> PodWarning | None:
    """Parse a warning Event about a pod; None for one that adds nothing to the pod's status.

    Event and pod must have the same namespace, because users may write Events only in their own.
    """
    pod = mapping(source.get("involvedObject"))
    warned = PodWarning(
        string(pod.get("uid"))[:MAX_UID_CHARS],
        string(source.get("reason")),
        string(source.get("message"))[:MAX_MESSAGE_CHARS],
        string(mapping(source.get("metadata")).get("namespace")),
    )
    if source.get("type") != "Warning" or pod.get("kind") != "Pod" or not warned.pod_uid:
        return None
    if not warned.namespace or pod.get("namespace") != warned.namespace:
        return None
    # This is the kubelet's summary of mount failures that have Events of their own.
    is_summary = warned.message.startswith("Unable to attach or mount volumes")
    # The kubelet has not read the Secret or ConfigMap yet, so it may exist.
    is_too_early = _CACHE_NOT_SYNCED.search(warned.message) is not None
    return warned if warned.reason in TELLING and not is_summary and not is_too_early else None


def latest(warnings: tuple[PodWarning, ...], reasons: tuple[str, ...]) -> str:
    """The message of the latest warning with one of these reasons; "" for none."""
    return next((warning.message for warning in reversed(warnings) if warning.reason in reasons), "")
