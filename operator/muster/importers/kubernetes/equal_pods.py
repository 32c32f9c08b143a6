"""Find the first difference between two pod templates. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.pod_template import PodTemplate
from muster.importers.kubernetes.report import Location


@dataclass(frozen=True)
class Difference:
    """A field of the second template that differs from the first."""

    location: Location


def find_difference(first: PodTemplate, second: PodTemplate) -> Difference | None:
    """Return the first field of `second` that differs; None if the pods are equal."""
    parts: tuple[tuple[JSON, JSON, Location], ...] = (
        (first.labels, second.labels, second.location.child("metadata", "labels")),
        (first.annotations, second.annotations, second.location.child("metadata", "annotations")),
        (
            {name: value for name, value in first.pod.items() if name != "restartPolicy"},
            {name: value for name, value in second.pod.items() if name != "restartPolicy"},
            second.pod_location,
        ),
    )
    for one, other, location in parts:
        place = _compare(one, other, location)
        if place is not None:
            return Difference(place)
    return None


def _compare(first: JSON, second: JSON, location: Location) -> Location | None:
    if isinstance(first, dict) and isinstance(second, dict):
        for name in [*second, *(name for name in first if name not in second)]:
            place = _compare(first.get(name), second.get(name), location.child(name))
            if place is not None:
                return place
        return None
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            place = _compare(one, other, location.child(index))
            if place is not None:
                return place
        return None
    # 1 and True are equal in Python.
    return None if type(first) is type(second) and first == second else location
