"""The security context and resources of muster's own containers in a job's pods."""

from muster.api.json_fields import read_mapping
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import get_trainer

SAME_RESOURCES_REASON = (
    "the same as container trainer, which starts later: so the pod's total and its QoS class don't change"
)

_COPIED_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""The resources other than devices. Quotas may require them for every container, including init containers."""


def make_restricted_security_context() -> Fields:
    """Return a security context for the restricted Pod Security level, without a user."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def get_trainer_resources(pod: Fields) -> Fields:
    """Return the resources of the ranks' container, without devices, for an init container.

    An init container with the same resources doesn't increase the pod's total. It keeps the pod's QoS class, because
    Guaranteed requires limits for every container.
    """
    resources = read_mapping(get_trainer(pod).get("resources"))
    result: Fields = {}
    for kind in ("limits", "requests"):
        amounts = {
            name: value for name, value in read_mapping(resources.get(kind)).items() if name in _COPIED_RESOURCES
        }
        if amounts:
            result[kind] = amounts
    return result
