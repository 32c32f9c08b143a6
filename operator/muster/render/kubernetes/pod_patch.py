"""Build a pod from patches. Each patch has a source and a reason, which `muster explain` prints."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.api.json_fields import read_mapping
from muster.objects.kubernetes.names import TRAINER_CONTAINER
from muster.render.kubernetes.merge import Fields, merge_all


@dataclass(frozen=True)
class PodPatch:
    """A part of a pod. `source` is the job's field that requires it, or `muster`."""

    fields: Fields
    source: str
    reason: str


MUSTER = "muster"


def merge_patches(patches: Iterable[PodPatch]) -> Fields:
    """Merge patches into one pod. Later patches override earlier patches."""
    return merge_all(patch.fields for patch in patches)


def wrap_in_spec(fields: Fields) -> Fields:
    """Return a partial pod with these fields in its spec."""
    return {"spec": fields}


def wrap_in_trainer(fields: Fields) -> Fields:
    """Return a partial pod with these fields in the ranks' container."""
    container: Fields = {"name": TRAINER_CONTAINER, **fields}
    return wrap_in_spec({"containers": [container]})


def get_pod_spec(pod: Fields) -> Fields:
    """Return the spec of a partial pod, or {}."""
    return read_mapping(pod.get("spec"))


def get_trainer(pod: Fields) -> Fields:
    """Return the ranks' container of a partial pod, or {}."""
    return next(
        (
            container
            for container in get_entries(get_pod_spec(pod), "containers")
            if container.get("name") == TRAINER_CONTAINER
        ),
        {},
    )


def get_entries(fields: Fields, name: str) -> list[Fields]:
    """Return the objects in list `name`. Other values are ignored: the API server rejects them."""
    value = fields.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
