"""A pod as patches: what each of them sets, who asked for it and why. Rendered they are one pod, explained a table."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.api.json_fields import mapping
from muster.objects.kubernetes.names import TRAINER
from muster.render.kubernetes.merge import Fields, merge_all


@dataclass(frozen=True)
class PodPatch:
    """A partial pod. `source` is the field of the resource that asks for it, or `muster` where none does."""

    fields: Fields
    source: str
    why: str


MUSTER = "muster"


def stacked(patches: Iterable[PodPatch]) -> Fields:
    """Merge patches into one pod, later ones over earlier ones."""
    return merge_all(patch.fields for patch in patches)


def in_spec(fields: Fields) -> Fields:
    """A partial pod that says so much about the pod's spec."""
    return {"spec": fields}


def in_trainer(fields: Fields) -> Fields:
    """A partial pod that says so much about the ranks' container."""
    container: Fields = {"name": TRAINER, **fields}
    return in_spec({"containers": [container]})


def spec_of(pod: Fields) -> Fields:
    """A pod's spec as far as it is there."""
    return mapping(pod.get("spec"))


def trainer_of(pod: Fields) -> Fields:
    """The ranks' container as far as it is there."""
    return next(
        (container for container in entries(spec_of(pod), "containers") if container.get("name") == TRAINER), {}
    )


def entries(fields: Fields, name: str) -> list[Fields]:
    """The objects in list `name`; what is something else is left to the API server to refuse."""
    value = fields.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
