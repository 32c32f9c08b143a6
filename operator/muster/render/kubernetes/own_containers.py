"""The security context and resources of muster's own containers in a job's pods."""

from muster.api.json_fields import mapping
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import trainer_of

AS_TRAINER = "as container trainer, which begins when it is gone: the pod asks for no more, and its QoS class stays"

_SHARED = ("cpu", "memory", "ephemeral-storage")
"""Resources other than devices. Quotas may require them for every container, including init containers."""


def restricted() -> Fields:
    """A security context for the restricted Pod Security level, without a user."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def as_trainer(pod: Fields) -> Fields:
    """The resources of the ranks' container without devices, for an init container; empty if there are none.

    An init container with the same resources doesn't raise the pod's total. It also keeps the pod's QoS class:
    Guaranteed requires limits for every container.
    """
    resources = mapping(trainer_of(pod).get("resources"))
    same: Fields = {}
    for kind in ("limits", "requests"):
        amounts = {name: value for name, value in mapping(resources.get(kind)).items() if name in _SHARED}
        if amounts:
            same[kind] = amounts
    return same
