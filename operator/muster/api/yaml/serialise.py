"""A job and its status as the resource that people read: camelCase, in the order of the design, nothing unset."""

import yaml
from yaml.nodes import ScalarNode

from muster.api.document import JSON
from muster.api.names import API_VERSION, KIND
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.yaml.scalars import NotJSON, resolve


def resource(job: Job, status: Status | None = None) -> dict[str, JSON]:
    """The whole resource. Reading it again gives an equal job."""
    metadata: dict[str, JSON] = {"name": job.metadata.name, "namespace": job.metadata.namespace}
    if job.metadata.uid:
        metadata.update(uid=job.metadata.uid, generation=job.metadata.generation)
    result: dict[str, JSON] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec_fields(job)}
    if status is not None:
        result["status"] = status_fields(status)
    return result


def spec_fields(job: Job) -> dict[str, JSON]:
    """The spec with every default filled in; empty lists and maps are left out."""
    fields = job.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: value for key, value in fields.items() if value not in ([], {})}


def status_fields(status: Status) -> dict[str, JSON]:
    """The status as it is patched into the resource: what isn't known is left out."""
    fields = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    # of conditions all is kept: to Kubernetes one without its message, empty or not, is not whole
    fields |= status.model_dump(mode="json", by_alias=True, exclude_defaults=True, include={"ranks", "progress"})
    return {key: value for key, value in fields.items() if value not in ([], {}, "")}


def to_yaml(value: JSON) -> str:
    """A resource as YAML that kubectl reads back as the same value."""
    return yaml.dump(value, Dumper=_ReadableDumper, sort_keys=False, allow_unicode=True, width=120)


class _ReadableDumper(yaml.SafeDumper):
    """Long texts as blocks, no anchors, and quotes around what kubectl would not take for text."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML calls it so
        return True

    def text(self, text: str) -> ScalarNode:
        """PyYAML leaves `y` and `3e-5` bare, which kubectl reads as true and as a number."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


_ReadableDumper.add_representer(str, _ReadableDumper.text)


def _style(text: str) -> str | None:
    if not text.replace("\n", "").isprintable():
        return '"'  # its escapes keep what YAML would fold away or take for the end of a line
    if "\n" in text:
        return "|"
    try:
        return None if isinstance(resolve(text), str) else "'"
    except NotJSON:
        return "'"
