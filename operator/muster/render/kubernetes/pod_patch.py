"""A pod as a list of patches, each with its source and reason, for rendering and for `muster explain`."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.api.json_fields import mapping
from muster.objects.kubernetes.names import TRAINER
from muster.render.kubernetes.merge import Fields, merge_all


@dataclass(frozen=True)
class PodPatch:
    """A partial pod. `source` is the job's field that requires it, or `muster`."""

    fields: Fields
    source: str
    why: str


MUSTER = "muster"


def merge_patches(patches: Iterable[PodPatch]) -> Fields:
    """Merge patches into one pod, later ones over earlier ones."""
    return merge_all(patch.fields for patch in patches)


def in_spec(fields: Fields) -> Fields:
    """A partial pod with these fields in its spec."""
    return {"spec": fields}


def in_trainer(fields: Fields) -> Fields:
    """A partial pod with these fields in the ranks' container."""
    container: Fields = {"name": TRAINER, **fields}
    return in_spec({"containers": [container]})


def spec_of(pod: Fields) -> Fields:
    """The spec of a partial pod; empty if absent."""
    return mapping(pod.get("spec"))


def trainer_of(pod: Fields) -> Fields:
    """The ranks' container of a partial pod; empty if absent."""
    return next(
        (container for container in entries(spec_of(pod), "containers") if container.get("name") == TRAINER), {}
    )


def entries(fields: Fields, name: str) -> list[Fields]:
    """The objects in list `name`; the API server rejects other values."""
    value = fields.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
