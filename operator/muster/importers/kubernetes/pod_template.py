"""Read the pod template of a manifest, and choose the container of the ranks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_mappings
from muster.api.validation.messages import describe_value
from muster.api.validation.rules.pods.fields import WrongField, find_wrong_fields
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.report import Location, Report

_IGNORED_METADATA = ("name", "generateName", "namespace", "creationTimestamp")
_CONTROLLER_LABELS = ("batch.kubernetes.io/", "jobset.sigs.k8s.io/", "training.kubeflow.org/", "volcano.sh/")
_OLD_CONTROLLER_LABELS = ("controller-uid", "job-name")


@dataclass(frozen=True)
class PodTemplate:
    """A valid pod template without null fields. `location` is the template's."""

    location: Location
    labels: dict[str, JSON]
    annotations: dict[str, JSON]
    pod: dict[str, JSON]
    origins: Mapping[str, Location] = field(default_factory=dict)
    """The locations of fields of the ranks' container that come from elsewhere, such as a TrainJob's trainer."""

    def locate_field(self, index: int, name: str) -> Location:
        """Return the location of a field of the ranks' container at `index`."""
        return self.origins.get(name, self.pod_location.child("containers", index, name))

    @property
    def pod_location(self) -> Location:
        """The location of the pod's spec."""
        return self.location.child("spec")

    @property
    def containers(self) -> tuple[dict[str, JSON], ...]:
        """The containers, without init containers."""
        return read_mappings(self.pod.get("containers"))

    def find_container(self, name: str) -> int | None:
        """Return the position of the container with this name; None if there is none."""
        names = [container.get("name") for container in self.containers]
        return names.index(name) if name in names else None


def read_template(parent: Fields, name: str = "template") -> PodTemplate | None:
    """Read a pod template; None if it is invalid."""
    fields = parent.take_fields(name)
    metadata = fields.take_fields("metadata")
    labels, annotations = metadata.take_text_map("labels"), metadata.take_text_map("annotations")
    for field_name in _IGNORED_METADATA:
        metadata.ignore(field_name, "muster names the pods itself")
    value = fields.take("spec")
    if parent.has_wrong_type or fields.has_wrong_type:
        return None
    return build_template(fields.location, labels, annotations, value, parent.report)


def build_template(
    location: Location, labels: dict[str, JSON], annotations: dict[str, JSON], pod: JSON, report: Report
) -> PodTemplate | None:
    """Return a template of a pod's spec; None if the pod is invalid."""
    place = location.child("spec")
    if not isinstance(pod, dict) or not pod:
        message = "missing, and required: the pod" if pod is None else f"found {describe_value(pod)}; fields of a pod"
        report.add(place, f"{message} with its containers")
        return None
    valid_pod = check_pod_fields(pod, place, report)
    if valid_pod is None:
        return None
    template = PodTemplate(location, _drop_controller_labels(labels, location, report), annotations, valid_pod)
    return template if _has_named_containers(template, report) else None


def check_pod_fields(pod: dict[str, JSON], location: Location, report: Report) -> dict[str, JSON] | None:
    """Return the fields of a pod's spec without nulls; None if some are wrong, which are reported."""
    wrong_fields = list(find_wrong_fields(pod, location.path))
    for wrong_field in wrong_fields:
        report.add(Location(location.document, wrong_field.path), describe_wrong_field(wrong_field))
    return None if wrong_fields else _drop_nulls(pod)


def choose_container(template: PodTemplate, names: tuple[str, ...], report: Report) -> int | None:
    """Return the position of the container called one of `names`, or of the only one; None with a problem."""
    for name in names:
        index = template.find_container(name)
        if index is not None:
            return index
    if len(template.containers) == 1:
        return 0
    wanted = f"call the one that trains {names[0]}" if names else "make the others init containers with restartPolicy"
    report.add(
        template.pod_location.child("containers"),
        f"found {len(template.containers)} containers, and muster can't tell which one trains; {wanted}",
    )
    return None


def _has_named_containers(template: PodTemplate, report: Report) -> bool:
    location = template.pod_location.child("containers")
    if not template.containers:
        report.add(location, "missing, and required: the container that trains")
        return False
    for index, container in enumerate(template.containers):
        for position, variable in enumerate(read_mappings(container.get("env"))):
            if not isinstance(variable.get("name"), str):
                report.add(location.child(index, "env", position), "found no name; each variable needs one")
                return False
    return True


def _drop_controller_labels(labels: Mapping[str, JSON], location: Location, report: Report) -> dict[str, JSON]:
    """Drop the labels that the old controller set in a resource from a cluster."""
    kept: dict[str, JSON] = {}
    for name, value in labels.items():
        if name.startswith(_CONTROLLER_LABELS) or name in _OLD_CONTROLLER_LABELS:
            report.note(location.child("metadata", "labels", name), "left out: a label of the old controller")
        else:
            kept[name] = value
    return kept


def describe_wrong_field(wrong_field: WrongField) -> str:
    """Return the message for a wrong field of a pod."""
    if wrong_field.expected is not None:
        return f"found {describe_value(wrong_field.value)} where {wrong_field.expected} expected"
    nearest = wrong_field.nearest
    return "unknown field of a pod; " + ("remove it" if nearest is None else f"did you mean {nearest}?")


def _drop_nulls(value: dict[str, JSON]) -> dict[str, JSON]:
    return {name: _clean(item) for name, item in value.items() if item is not None}


def _clean(value: JSON) -> JSON:
    if isinstance(value, dict):
        return _drop_nulls(value)
    return [_clean(item) for item in value] if isinstance(value, list) else value


def get_resources(container: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the quantities that a container gets: its requests, and its limits, which have priority."""
    resources = read_mapping(container.get("resources"))
    return {**read_mapping(resources.get("requests")), **read_mapping(resources.get("limits"))}
