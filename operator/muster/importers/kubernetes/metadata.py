"""Read the metadata of a manifest. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.report import Location

_SERVER_FIELDS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("managedFields", "selfLink"),
)
"""Fields that the API server sets."""

_SERVER_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)


@dataclass(frozen=True)
class Metadata:
    """The metadata of a job. `location` is the manifest's root."""

    location: Location
    name: str
    namespace: str | None
    labels: dict[str, JSON]
    annotations: dict[str, JSON]

    def build(self) -> dict[str, JSON]:
        """Return the metadata of the resource."""
        fields: dict[str, JSON] = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": self.labels,
            "annotations": self.annotations,
        }
        return {name: value for name, value in fields.items() if value}


def read_metadata(root: Fields) -> Metadata:
    """Read metadata, and drop what the API server set in a resource from a cluster."""
    fields = root.take_fields("metadata")
    name = fields.take_text("name")
    if name is None:
        root.report.add(fields.locate("name"), "missing, and required: write the job's name")
    fields.ignore("generateName", "the job gets the name in metadata.name")
    fields.ignore("ownerReferences", "the job has no owner: whoever creates the job deletes it")
    fields.ignore("finalizers", "the job has none of them: they belong to the controllers of the old resource")
    server_fields = [field for field in _SERVER_FIELDS if fields.take(field) is not None]
    if root.take("status") is not None:
        root.report.note(root.locate("status"), "left out: the status of the old resource")
    if server_fields:
        names = ", ".join(server_fields)
        root.report.note(fields.locate(server_fields[0]), f"left out, because the API server sets it: {names}")
    annotations = fields.take_text_map("annotations")
    return Metadata(
        location=root.location,
        name=name or "",
        namespace=fields.take_text("namespace"),
        labels=fields.take_text_map("labels"),
        annotations={key: text for key, text in annotations.items() if key not in _SERVER_ANNOTATIONS},
    )
