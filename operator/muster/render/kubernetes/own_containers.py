"""What muster's own containers in a job's pods have in common: what they may do, and what they ask for."""

from muster.api.json_fields import mapping
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import trainer_of

AS_TRAINER = "as container trainer, which begins when it is gone: the pod asks for no more, and its QoS class stays"

_SHARED = ("cpu", "memory", "ephemeral-storage")
"""What containers ask for that is no device. Quotas want it of every container, an init container included."""


def restricted() -> Fields:
    """A security context as restricted Pod Security wants it, but for who it runs as."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def as_trainer(pod: Fields) -> Fields:
    """The resources of the ranks' container but for devices, for one that ends before it begins; empty for none.

    The pod asks for no more than without. And its quality of service stays: a pod is Guaranteed only when all its
    containers, this one included, have limits.
    """
    resources = mapping(trainer_of(pod).get("resources"))
    same: Fields = {}
    for kind in ("limits", "requests"):
        amounts = {name: value for name, value in mapping(resources.get(kind)).items() if name in _SHARED}
        if amounts:
            same[kind] = amounts
    return same
