"""Read the lists and maps of partial pod templates that muster merges."""

from collections.abc import Iterator

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Spec

CONTAINERS = ("containers", "initContainers")

LISTS_MERGED_BY_NAME = (*CONTAINERS, "volumes", "env", "volumeMounts")
"""Lists whose entries muster merges by name."""

_POD_LISTS = (*CONTAINERS, "ephemeralContainers", "volumes", "tolerations", "imagePullSecrets", "hostAliases",
              "topologySpreadConstraints", "readinessGates", "schedulingGates", "resourceClaims")  # fmt: skip
_POD_FIELDS = ("securityContext", "dnsConfig", "affinity", "nodeSelector", "overhead")
_CONTAINER_LISTS = ("env", "envFrom", "volumeMounts", "volumeDevices", "ports", "resizePolicy")
_CONTAINER_FIELDS = ("resources", "securityContext", "lifecycle")


def list_templates(spec: Spec) -> Iterator[tuple[FieldPath, dict[str, JSON]]]:
    """Yield every partial template of the job, with its path below `spec`."""
    yield ("template",), dict(spec.template)
    for index, override in enumerate(spec.node_overrides):
        yield ("nodeOverrides", index, "template"), dict(override.template)


def list_pods(spec: Spec) -> Iterator[tuple[FieldPath, dict[str, JSON]]]:
    """Yield the pod spec of every template."""
    for path, template in list_templates(spec):
        yield (*path, "spec"), read_mapping(template.get("spec"))


def list_containers(spec: Spec) -> Iterator[tuple[FieldPath, dict[str, JSON]]]:
    """Yield every container of every template, including init containers."""
    for path, pod in list_pods(spec):
        for field in CONTAINERS:
            for index, container in enumerate_entries(pod.get(field)):
                yield (*path, field, index), container


def enumerate_entries(value: JSON) -> list[tuple[int, dict[str, JSON]]]:
    """Return the entries of a list that are maps, with their positions."""
    return [
        (index, item) for index, item in enumerate(value if isinstance(value, list) else []) if isinstance(item, dict)
    ]


def find_wrong_types(spec: Spec) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield the values that are neither null nor of the type, list or map, that they have in a pod."""
    for path, template in list_templates(spec):
        yield from _find_non_fields(path, template, ("metadata", "spec"))
        metadata = read_mapping(template.get("metadata"))
        yield from _find_non_fields((*path, "metadata"), metadata, ("labels", "annotations"))
    for path, pod in list_pods(spec):
        yield from _find_non_lists(path, pod, _POD_LISTS)
        yield from _find_non_fields(path, pod, _POD_FIELDS)
    for path, container in list_containers(spec):
        yield from _find_non_lists(path, container, _CONTAINER_LISTS)
        yield from _find_non_fields(path, container, _CONTAINER_FIELDS)


def _find_non_fields(
    path: FieldPath, parent: dict[str, JSON], names: tuple[str, ...]
) -> Iterator[tuple[FieldPath, JSON]]:
    for name in names:
        value = parent.get(name)
        if value is not None and not isinstance(value, dict):
            yield (*path, name), value


def _find_non_lists(
    path: FieldPath, parent: dict[str, JSON], names: tuple[str, ...]
) -> Iterator[tuple[FieldPath, JSON]]:
    for name in names:
        value = parent.get(name)
        if isinstance(value, list):
            yield from (((*path, name, index), item) for index, item in enumerate(value) if not isinstance(item, dict))
        elif value is not None:
            yield (*path, name), value
