"""What Kubernetes warns of about pods: for some problems its Events are the only place that tells. Pure."""

import re
from dataclasses import dataclass, replace

from muster.api.json_fields import mapping, string
from muster.objects.kubernetes.kinds import EVENTS, Object, Reading

MOUNT = ("FailedMount", "FailedMapVolume")
ATTACH = ("FailedAttachVolume",)
SANDBOX = ("FailedCreatePodSandBox", "NetworkNotReady")
_NOT_READ_YET = re.compile(r"failed to sync \w+ cache: timed out")

TELLING = (*MOUNT, *ATTACH, *SANDBOX)
"""The reasons of Events that say what no field of the pod does."""


MAX_MESSAGE_CHARS = 1024
"""The part of a warning that is kept: Kubernetes' own components write no more, and any tenant may write an Event."""

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
"""Events as far as `read_warning` looks at them."""


@dataclass(frozen=True)
class Warned:
    """One warning about a pod of `namespace`, in Kubernetes' own words."""

    pod_uid: str
    reason: str
    message: str
    namespace: str = ""


def read_warning(source: Object) -> Warned | None:
    """The warning that an Event is; None for one that tells nothing that the pod itself doesn't.

    It has to be of its pod's namespace: a user who may write Events there may not describe another namespace's pods.
    """
    about = mapping(source.get("involvedObject"))
    warned = Warned(
        string(about.get("uid"))[:MAX_UID_CHARS],
        string(source.get("reason")),
        string(source.get("message"))[:MAX_MESSAGE_CHARS],
        string(mapping(source.get("metadata")).get("namespace")),
    )
    if source.get("type") != "Warning" or about.get("kind") != "Pod" or not warned.pod_uid:
        return None
    if not warned.namespace or about.get("namespace") != warned.namespace:
        return None
    # The kubelet's summary of mounts that it has told of one by one.
    is_summary = warned.message.startswith("Unable to attach or mount volumes")
    # A busy kubelet hasn't read a Secret or ConfigMap yet, which says nothing of whether it is there.
    is_too_early = _NOT_READ_YET.search(warned.message) is not None
    return warned if warned.reason in TELLING and not is_summary and not is_too_early else None


def latest(warnings: tuple[Warned, ...], reasons: tuple[str, ...]) -> str:
    """The message of the newest warning of one of these reasons; "" for none."""
    return next((one.message for one in reversed(warnings) if one.reason in reasons), "")
