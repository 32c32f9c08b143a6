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
_CONTAINERS_WITH_NODE_OPTIONS = (TRAINER_CONTAINER, DOWNLOAD)
"""The containers whose commands have the node's index and its replacement number as options."""


def copy_pod(pod: Object, job_name: str, node: int, replacement: int) -> Object:
    """Return what `render_pod` returns for another node of the job.

    That node has the same overrides, and avoids the same Kubernetes nodes.

    The copy shares its unchanged parts with `pod`: change neither.
    """
    metadata, spec = read_mapping(pod["metadata"]), read_mapping(pod["spec"])
    labels = read_mapping(metadata["labels"])
    option_values = {"--node": str(node), "--replacement": str(replacement)}
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
            **{name: _copy_containers(spec, name, option_values) for name in _CONTAINER_LISTS if name in spec},
        },
    }


def _copy_containers(spec: Fields, name: str, option_values: dict[str, str]) -> list[JSON]:
    containers = spec[name]
    return [_copy_container(each, option_values) for each in containers] if isinstance(containers, list) else []


def _copy_container(container: JSON, option_values: dict[str, str]) -> JSON:
    if not isinstance(container, dict) or container.get("name") not in _CONTAINERS_WITH_NODE_OPTIONS:
        return container
    return {**container, "command": _replace_option_values(container["command"], option_values)}


def _replace_option_values(command: JSON, option_values: dict[str, str]) -> list[JSON]:
    """Replace the value after each option in `option_values`, such as `--node`."""
    arguments = command if isinstance(command, list) else []
    previous: list[JSON] = [None, *arguments]
    return [
        option_values.get(option, argument) if isinstance(option, str) else argument
        for option, argument in zip(previous, arguments, strict=False)
    ]
