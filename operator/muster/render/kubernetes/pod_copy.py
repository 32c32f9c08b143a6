"""Copy a rendered pod for another node. Pure.

The pods of nodes with the same overrides differ only in a few fields, and it takes a hundred times as long to render a
pod as to copy it.
"""

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import (
    NODE_LABEL,
    REPLACEMENT_LABEL,
    TRAINER_CONTAINER,
    build_host_name,
    build_pod_name,
)
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.storage import DOWNLOAD

_CONTAINER_LISTS = ("initContainers", "containers")
_OWN_CONTAINERS = (TRAINER_CONTAINER, DOWNLOAD)
"""The containers whose commands muster writes with the node's number."""


def copy_pod(pod: Object, job_name: str, node: int, replacement: int) -> Object:
    """Return what `render.pod` returns for another node with the same overrides and the same avoided nodes.

    The copy shares its unchanged parts with `pod`: change neither.
    """
    metadata, spec = read_mapping(pod["metadata"]), read_mapping(pod["spec"])
    labels = read_mapping(metadata["labels"])
    numbers = {"--node": str(node), "--replacement": str(replacement)}
    return {
        **pod,
        "metadata": {
            **metadata,
            "name": build_pod_name(job_name, node, replacement),
            "labels": {**labels, NODE_LABEL: str(node), REPLACEMENT_LABEL: str(replacement)},
        },
        "spec": {
            **spec,
            "hostname": build_host_name(node),
            **{name: _copy_containers(spec, name, numbers) for name in _CONTAINER_LISTS if name in spec},
        },
    }


def _copy_containers(spec: Fields, name: str, numbers: dict[str, str]) -> list[JSON]:
    containers = spec[name]
    return [_copy_container(each, numbers) for each in containers] if isinstance(containers, list) else []


def _copy_container(container: JSON, numbers: dict[str, str]) -> JSON:
    if not isinstance(container, dict) or container.get("name") not in _OWN_CONTAINERS:
        return container
    return {**container, "command": _set_numbers(container["command"], numbers)}


def _set_numbers(command: JSON, numbers: dict[str, str]) -> list[JSON]:
    """Replace the values that follow these options."""
    arguments = command if isinstance(command, list) else []
    previous: list[JSON] = [None, *arguments]
    return [
        numbers.get(option, argument) if isinstance(option, str) else argument
        for option, argument in zip(previous, arguments, strict=False)
    ]
